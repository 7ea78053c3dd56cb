#include "core/memory/dry_run.h"

#include <sys/mman.h>

#include "core/error.h"
#include "core/memory/memory.h"

namespace ricci {

bool dry_run_state::alive = false;
thread_local int64_t dry_run_state::threads = 1;

namespace {

Device dry_device = Device::cpu;
ArenaCounter arena;  // the newest dry run's

}  // namespace

bool dry_run_state::takes(Device device) { return alive && device == dry_device; }

int64_t dry_run_state::count(int64_t bytes) { return arena.allocate(bytes); }

// Without memory: hardly anything touches them, and a reader finds zeros.
void* dry_run_state::addresses(int64_t bytes) {
  const auto size = static_cast<size_t>(bytes + 1);  // nothing cannot be mapped
  void* const block = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return block == MAP_FAILED ? nullptr : block;
}

void dry_run_state::release(void* addresses, int64_t bytes, int64_t counted) {
  arena.release(bytes, counted);
  if (addresses) ::munmap(addresses, static_cast<size_t>(bytes + 1));
}

DryRun::DryRun(Device device) {
  if (is_dry_run()) fail("dry run: one is alive");
  if (device == Device::cuda) fail("dry run: expected cpu or cuda_emulated, whose kernels ask for the same memory as on cuda, got cuda");
  dry_device = device;
  arena = {};
  dry_run_state::alive = true;
}

DryRun::~DryRun() { dry_run_state::alive = false; }

int64_t DryRun::arena_bytes() const { return arena.touched(); }

}  // namespace ricci
