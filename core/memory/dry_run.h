// A dry run executes a program without computing: tensors get addresses and are counted, but kernels and loops over chunks do not run and
// no bytes are copied. It shows how much memory and work a training step needs, even on a smaller machine:
//   const DryRun dry(Device::cpu);
//   train_step.run(batches, 0, 0.1);          memory_use(Device::cpu).peak is the peak of the real step
// A program that reads a tensor finds zeros. The code of the step itself runs, so the numbers are exact. A separate formula for the memory
// would soon be wrong.
#pragma once
#include <cstdint>

#include "core/tensor.h"

namespace ricci {

// One dry run at a time is possible, on one thread. Tensors that are made before it or outlive it stay valid.
class DryRun {
 public:
  explicit DryRun(Device device);
  ~DryRun();
  // The bytes that the CPU's arena would hold now.
  int64_t arena_bytes() const;
  DryRun(const DryRun&) = delete;
  DryRun& operator=(const DryRun&) = delete;
};

// For memory.cpp and scratch.h. count() returns the bytes that the arena would use for a block (ArenaCounter); release() needs this number.
namespace dry_run_state {
extern bool alive;
extern thread_local int64_t threads;  // number of threads that would work on the current loop
bool takes(Device device);
int64_t count(int64_t bytes);
void* addresses(int64_t bytes);  // null if no addresses are left
void release(void* addresses, int64_t bytes, int64_t counted);
}  // namespace dry_run_state

// The verbs (cuda/verbs/) call this before they begin.
inline bool is_dry_run() { return dry_run_state::alive; }

// Suspends a dry run while this object is alive, for a tensor that is made once and lives as long as the program.
class OutsideDryRun {
 public:
  OutsideDryRun() : before_(dry_run_state::alive) { dry_run_state::alive = false; }
  ~OutsideDryRun() { dry_run_state::alive = before_; }
  OutsideDryRun(const OutsideDryRun&) = delete;

 private:
  bool before_;
};

}  // namespace ricci
