#include "core/memory/memory.h"

#include <atomic>
#include <utility>

#include "core/error.h"
#include "core/memory/arena.h"

namespace ricci {
namespace {

constexpr int kDevices = 3;

struct Account {
  std::atomic<int64_t> current{0}, peak{0};
  std::atomic<Allocator*> allocator{nullptr};
};

Account& account_of(Device device) {
  static Account accounts[kDevices];
  return accounts[static_cast<int>(device)];
}

struct MemoryWatch {
  Device device = Device::cpu;
  RequestWatch::OnRequest on_request;  // empty if the requests are not watched
  RequestWatch::OnBlock on_block;
};
thread_local MemoryWatch watch;

}  // namespace

RequestWatch::RequestWatch(Device device, OnRequest on_request, OnBlock on_block) {
  if (watch.on_request) fail("request watch: one is alive");
  watch = {device, std::move(on_request), std::move(on_block)};
}
RequestWatch::~RequestWatch() { watch = {}; }

Allocator& allocator_of(Device device) {
  Account& account = account_of(device);
  Allocator* allocator = account.allocator.load(std::memory_order_acquire);
  if (allocator) return *allocator;
  if (device != Device::cpu) fail("device {}: not available", {name_of(device)});
  return cpu_arena();
}

std::string room_on(Device device) { return allocator_of(device).room(); }

MemoryUse memory_use(Device device) {
  const Account& account = account_of(device);
  Allocator* allocator = device == Device::cpu ? &allocator_of(device) : account.allocator.load();
  return {account.current, account.peak, allocator ? allocator->system_allocations() : 0};
}

void reset_peak(Device device) { account_of(device).peak = account_of(device).current.load(); }

void set_allocator(Device device, Allocator* allocator) { account_of(device).allocator.store(allocator, std::memory_order_release); }

Storage* allocate_storage(int64_t bytes, Device device, CallSite asker) {
  if (watch.on_request && watch.device == device) watch.on_request(bytes);
  void* data = allocator_of(device).allocate(bytes);
  Account& account = account_of(device);
  if (!data && bytes > 0) fail("{}", {out_of_memory(bytes, device, asker)});
  if (watch.on_block && watch.device == device) watch.on_block(data, bytes);
  const int64_t now = account.current += bytes;
  int64_t peak = account.peak.load();
  while (now > peak && !account.peak.compare_exchange_weak(peak, now)) {
  }
  return new Storage{data, bytes, 1, device, 0, "", 0};
}

void release_storage(Storage* storage) {
  if (watch.on_block && watch.device == storage->device) watch.on_block(storage->data, -1);
  allocator_of(storage->device).release(storage->data, storage->bytes);
  account_of(storage->device).current -= storage->bytes;
  delete storage;
}

}  // namespace ricci
