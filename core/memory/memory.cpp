// Counts memory by device and by purpose, writes the out-of-memory message, and gives dry runs their addresses.
#include "core/memory/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/memory/dry_run.h"

namespace ricci {
namespace {

struct Account {
  std::atomic<int64_t> current{0}, peak{0};
  std::atomic<Allocator*> allocator{nullptr};
};

Account& account_of(Device device) {
  static Account accounts[choices(Device()).size()];
  return accounts[static_cast<int>(device)];
}

thread_local const RequestWatch* watch = nullptr;
thread_local bool counts = true;
constexpr int64_t kNotCounted = -2;  // Storage::counted

// The holders of all threads. An out-of-memory error lists only its own thread's holders.
std::mutex lock;
std::vector<std::pair<const MemoryHolder*, std::thread::id>>& registered() {
  static auto& all = *new std::vector<std::pair<const MemoryHolder*, std::thread::id>>;  // outlives every holder
  return all;
}

// This thread's holders, the newest last.
std::vector<const MemoryHolder*> holders() {
  const std::lock_guard locked(lock);
  std::vector<const MemoryHolder*> mine;
  for (const auto& [holder, thread] : registered())
    if (thread == std::this_thread::get_id()) mine.push_back(holder);
  return mine;
}

// Lists the uses of the memory, the largest first.
std::string list_of(const HeldBytes& bytes) {
  std::vector<std::pair<int64_t, const char*>> uses;
  int64_t all = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    uses.emplace_back(bytes[i], name_of(static_cast<HeldFor>(i)));
    all += bytes[i];
  }
  std::stable_sort(uses.begin(), uses.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [n, name] : uses)
    if (n > 0) text += std::string(name) + " " + show_bytes(n) + ", ";
  return text + "together " + show_bytes(all);
}

// "softmax (ops/rows/softmax.cu:30)", or "softmax: forward (ops/rows/softmax.cu:30)" if the function and the file have different names. The
// file has the name of its op.
std::string name_of(const CallSite& caller) {
  const std::string_view file = caller.file, base = file.substr(file.rfind('/') + 1), signature = caller.function;
  const std::string_view function = signature.substr(0, signature.find('<'));  // without template arguments
  std::string name(base.substr(0, base.find('.')));
  if (function != name && function != "operator()") name += ": " + std::string(function);
  return format_message("{} ({}:{})", {name, file, caller.line});
}

}  // namespace

RequestWatch::RequestWatch(Device on, OnBlock call) : device(on), on_block(std::move(call)) {
  if (watch) fail("request watch: already active on this thread");
  watch = this;
}
RequestWatch::~RequestWatch() { watch = nullptr; }

UncountedMemory::UncountedMemory() { counts = false; }
UncountedMemory::~UncountedMemory() { counts = true; }

Allocator& allocator_of(Device device) {
  if (Allocator* const allocator = account_of(device).allocator.load(std::memory_order_acquire)) return *allocator;
  if (device != Device::cpu) fail("device {}: not available", {name_of(device)});
  return cpu_arena();
}

MemoryUse memory_use(Device device) {
  const Account& account = account_of(device);
  return {account.current, account.peak};
}

void reset_peak(Device device) { account_of(device).peak = account_of(device).current.load(); }

void set_allocator(Device device, Allocator* allocator) { account_of(device).allocator.store(allocator, std::memory_order_release); }

Storage* allocate_storage(int64_t bytes, Device device, CallSite caller) {
  const bool is_dry = dry_run_state::takes(device);
  void* data = is_dry ? dry_run_state::addresses(bytes) : allocator_of(device).allocate(bytes);
  Account& account = account_of(device);
  if (!data && bytes > 0) fail("{}", {out_of_memory(bytes, device, caller)});
  if (watch && watch->device == device) watch->on_block(data, bytes);
  if (!counts) return new Storage{data, bytes, 1, device, 0, "", 0, kNotCounted};
  const int64_t now = account.current += bytes;
  int64_t peak = account.peak.load();
  while (now > peak && !account.peak.compare_exchange_weak(peak, now)) {
  }
  return new Storage{data, bytes, 1, device, 0, "", 0, is_dry ? dry_run_state::count(bytes) : -1};
}

void release_storage(Storage* storage) {
  if (watch && watch->device == storage->device) watch->on_block(storage->data, -1);
  if (storage->counted >= 0) dry_run_state::release(storage->data, storage->bytes, storage->counted);
  else allocator_of(storage->device).release(storage->data, storage->bytes);
  if (storage->counted != kNotCounted) account_of(storage->device).current -= storage->bytes;
  delete storage;
}

HeldBytes held_on(Device device) {
  std::vector<std::pair<const Storage*, HeldFor>> held;  // a map is slower, and ricci plan calls this very often
  for (const MemoryHolder* holder : holders()) {
    holder->each_tensor([&](const Tensor& t, HeldFor use) {
      if (t && t.device() == device) held.emplace_back(t.storage(), use);
    });
  }
  std::sort(held.begin(), held.end());
  HeldBytes bytes{};
  int64_t known = 0;
  const Storage* last = nullptr;
  for (const auto& [storage, use] : held) {
    if (storage == std::exchange(last, storage)) continue;  // only its first use is counted
    bytes[static_cast<size_t>(use)] += storage->bytes;
    known += storage->bytes;
  }
  bytes[static_cast<size_t>(HeldFor::other)] += memory_use(device).current - known;
  return bytes;
}

MemoryHolder::MemoryHolder() {
  const std::lock_guard locked(lock);
  registered().emplace_back(this, std::this_thread::get_id());
}

MemoryHolder::~MemoryHolder() {
  const std::lock_guard locked(lock);
  std::erase_if(registered(), [this](const auto& r) { return r.first == this; });
}

std::string show_bytes(int64_t bytes) {
  if (bytes < 1024) return format_message("{} bytes", {bytes});
  const char* units[] = {"KiB", "MiB", "GiB", "TiB"};
  double size = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; size >= 1023.95 && unit < 3; ++unit) size /= 1024;
  return format_message("{:.1f} {}", {size, units[unit]});
}

std::string out_of_memory(int64_t bytes, Device device, const CallSite& caller) {
  std::string work;
  for (const MemoryHolder* holder : holders())
    if (const std::string now = holder->current_work(); !now.empty()) work = ", " + now + ",";
  std::string room = allocator_of(device).room();
  if (!room.empty()) room = "; " + room;
  const std::string exactly = bytes < 1024 ? "" : format_message(" ({} bytes)", {bytes});
  return format_message("out of memory on {}: {}{} asked for {}{}{}; held: {}",
      {name_of(device), name_of(caller), work, show_bytes(bytes), exactly, room, list_of(held_on(device))});
}

// ---- Dry runs

bool dry_run_state::alive = false;
thread_local int64_t dry_run_state::threads = 1;

namespace {

Device dry_device = Device::cpu;
ArenaCounter arena;  // for the newest dry run

}  // namespace

bool dry_run_state::takes(Device device) { return alive && device == dry_device; }

int64_t dry_run_state::count(int64_t bytes) { return arena.allocate(bytes); }

// Reserves addresses without memory. Pages get memory when they are touched, and a dry run touches very few.
void* dry_run_state::addresses(int64_t bytes) {
  const auto size = static_cast<size_t>(bytes + 1);  // 0 bytes cannot be mapped
  void* const block = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return block == MAP_FAILED ? nullptr : block;
}

void dry_run_state::release(void* addresses, int64_t bytes, int64_t counted) {
  arena.release(bytes, counted);
  if (addresses) ::munmap(addresses, static_cast<size_t>(bytes + 1));
}

DryRun::DryRun(Device device) {
  if (is_dry_run()) fail("dry run: already active");
  if (device == Device::cuda) fail("dry run: expected cpu or cuda_emulated (needs the same memory as cuda), got cuda");
  dry_device = device;
  arena = {};
  dry_run_state::alive = true;
}

DryRun::~DryRun() { dry_run_state::alive = false; }

int64_t DryRun::arena_bytes() const { return arena.touched(); }

}  // namespace ricci
