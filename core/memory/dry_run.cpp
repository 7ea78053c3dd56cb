#include "core/memory/dry_run.h"

#include <sys/mman.h>

#include <mutex>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/memory/arena.h"
#include "core/memory/memory.h"
#include "core/memory/scratch.h"

namespace ricci {

bool dry_run_state::alive = false;

namespace {

// Takes the place of a device's allocator from its first dry run on and passes other requests to it. Its own blocks are addresses without
// memory: hardly anything touches them, and a reader of them finds zeros.
class DryAllocator final : public Allocator {
 public:
  explicit DryAllocator(Allocator& real) : real_(real) {}

  void* allocate(int64_t bytes) override {
    if (!is_dry_run()) return real_.allocate(bytes);
    if (on_request) on_request(bytes);
    const auto size = static_cast<size_t>(bytes < 1 ? 1 : bytes);
    void* block = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED) return nullptr;
    const std::lock_guard locked(mutex_);
    blocks_[block] = arena.allocate(bytes);
    return block;
  }

  void release(void* data, int64_t bytes) override {
    const std::unique_lock locked(mutex_);
    const auto block = blocks_.find(data);
    if (block == blocks_.end()) return real_.release(data, bytes);
    arena.release(bytes, block->second);
    blocks_.erase(block);
    ::munmap(data, static_cast<size_t>(bytes < 1 ? 1 : bytes));
  }

  int64_t system_allocations() const override { return real_.system_allocations(); }
  std::string room() const override { return real_.room(); }

  DryRun::OnRequest on_request;
  ArenaCounter arena;

 private:
  Allocator& real_;
  std::mutex mutex_;
  std::unordered_map<void*, int64_t> blocks_;  // what the arena gave for each
};

DryAllocator& dry_allocator(Device device) {
  static DryAllocator* made[3] = {};  // they live to the end of the program
  DryAllocator*& one = made[static_cast<int>(device)];
  if (!one) {
    one = new DryAllocator(allocator_of(device));
    set_allocator(device, one);
  }
  return *one;
}

DryAllocator* used = nullptr;

}  // namespace

DryRun::DryRun(Device device, OnRequest on_request) {
  if (is_dry_run()) fail("dry run: one is alive");
  if (device == Device::cuda) fail("dry run: expected cpu or cuda_emulated, whose kernels ask for the same memory as on cuda, got cuda");
  used = &dry_allocator(device);
  used->on_request = std::move(on_request);
  used->arena = {};
  dry_run_state::alive = true;
}

DryRun::~DryRun() {
  dry_run_state::alive = false;
  used->on_request = {};
}

int64_t DryRun::arena_bytes() const { return used->arena.touched(); }

thread_local int64_t DryScratch::threads = 1;

DryScratch::DryScratch(int64_t bytes) : bytes_(bytes) {
  for (int64_t i = 0; i < threads; ++i) blocks_.push_back(used->arena.allocate(bytes));
}

DryScratch::~DryScratch() {
  for (const int64_t block : blocks_) used->arena.release(bytes_, block);
}

}  // namespace ricci
