// A dry run: tensors have addresses, are counted, and nothing is computed. It finds the memory and the work that a computation would take,
// on a machine that has less.
//   const DryRun dry(Device::cpu);
//   train_step.run(batches, 0, 0.1);          memory_use(Device::cpu).peak is the real step's
// A reader of a tensor finds zeros. A kernel is not launched, a loop over chunks not begun, bytes are not copied.
#pragma once
#include <cstdint>
#include <functional>

#include "core/tensor.h"

namespace ricci {

// One at a time, on one thread. Tensors that were made before, or outlive it, are what they are.
class DryRun {
 public:
  // `on_request` is called with the bytes of each tensor on the device before they are counted; it may be empty.
  using OnRequest = std::function<void(int64_t bytes)>;
  explicit DryRun(Device device, OnRequest on_request = {});
  ~DryRun();
  // The bytes of the system's memory that the CPU's arena would hold by now.
  int64_t arena_bytes() const;
  DryRun(const DryRun&) = delete;
  DryRun& operator=(const DryRun&) = delete;
};

namespace dry_run_state {
extern bool alive;
}

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
