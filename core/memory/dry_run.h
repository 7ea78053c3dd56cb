// A dry run: tensors have addresses, are counted, and nothing is computed. It finds the memory and the work that a computation would take,
// on a machine that has less.
//   const DryRun dry(Device::cpu);
//   train_step.run(batches, 0, 0.1);          memory_use(Device::cpu).peak is the real step's
// A reader of a tensor finds zeros. A kernel is not launched, a loop over chunks not begun, bytes are not copied.
#pragma once
#include <cstdint>

#include "core/tensor.h"

namespace ricci {

// One at a time, on one thread. Tensors that were made before, or outlive it, are what they are.
class DryRun {
 public:
  explicit DryRun(Device device);
  ~DryRun();
  // The bytes of the system's memory that the CPU's arena would hold by now.
  int64_t arena_bytes() const;
  DryRun(const DryRun&) = delete;
  DryRun& operator=(const DryRun&) = delete;
};

// For core/memory/memory.cpp and scratch.h. A block is counted as the arena would take it (ArenaCounter); release() gets that number back.
namespace dry_run_state {
extern bool alive;
extern thread_local int64_t threads;  // that would be at work in the present loop
bool takes(Device device);
int64_t count(int64_t bytes);
void* addresses(int64_t bytes);  // null if there are none left
void release(void* addresses, int64_t bytes, int64_t counted);
}  // namespace dry_run_state

// True while one is alive: the verbs ask this before they begin.
inline bool is_dry_run() { return dry_run_state::alive; }

// Suspends a dry run for a tensor that is made once and lives as long as the program.
class OutsideDryRun {
 public:
  OutsideDryRun() : before_(dry_run_state::alive) { dry_run_state::alive = false; }
  ~OutsideDryRun() { dry_run_state::alive = before_; }
  OutsideDryRun(const OutsideDryRun&) = delete;

 private:
  bool before_;
};

}  // namespace ricci
