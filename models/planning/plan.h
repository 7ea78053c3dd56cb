// The memory and work of a training step before it is taken: a dry run (core/memory/dry_run.h) of the step itself, so that the plan
// is right for whatever the models, ops and kernels ask for.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/memory/memory.h"
#include "cuda/trace.h"
#include "models/config.h"
#include "models/model.h"
#include "models/training/optimizer.h"

namespace ricci {

// Bytes that a training on the CPU holds beside tensors: code and libraries, measured on this process when a plan first asks for
// them, so that they differ by some pages from run to run; and what threads, files and matrix products take of their own.
int64_t program_bytes();

struct StepShape {
  int64_t sequences = 1, context = 1, micro_batches = 1;
  Dtype dtype = Dtype::f32;  // weights and activations
  bool recompute_blocks = false;
  Device device = Device::cpu;              // cuda is planned with the kernels of cuda_emulated, which are the same
  std::function<void(Model&)> freeze = {};  // sets Parameter::frozen where nothing is trained
  bool cuda_graph = false;                  // the step is recorded (StepGraph)
  int64_t ranks = 1;                        // that share the micro-batches
  Dtype reduce_dtype = Dtype::f32;          // in which they add up their gradients
};

struct StepMemory {
  int64_t parameters = 0;  // numbers that are trained
  int64_t peak = 0;        // most bytes of tensors at one time
  HeldBytes at_peak{};     // what they are held for; `other` are values between ops and buffers of kernels
  int64_t gradients = 0;   // most bytes of gradients at one time, in a step
  int64_t working = 0;     // most bytes of activations and `other` at one time, which need not be the time of the peak
};

struct Plan : StepMemory {
  // On the CPU the most memory that the process holds in a step, with freed blocks that wait for a tensor of their size, and the buffers
  // of the threads (core/memory/scratch.h). On a GPU: the peak, and the block of a recorded step, because memory of the steps before it
  // stays in the driver's pool.
  int64_t process = 0;
  int64_t recorded = 0;  // bytes of that block (Graph::bytes)
  int64_t summed = 0;    // bytes of the gradients that the ranks add up; 0 for one rank

  struct Kept {
    std::string op, place;  // "linear", "models/layers/block.h:31"
    int64_t count = 0, bytes = 0;
  };
  std::vector<Kept> kept;  // by the tape after the forward of a micro-batch, in its order; memory kept by several counts for the first

  std::map<std::string, trace::Work> work;  // by op, for one step
  double flops() const;                     // products and attention
  double bytes() const;                     // that ops read and write
};

// With multiple ranks the plan is for one with the most micro-batches; nothing is communicated. Without by_use the plan lacks at_peak,
// gradients, working and kept, which ask for all tensors at each request: their time grows as the square of the layers.
// Errors: as for Model, Optimizer and TrainStep; a context longer than the model's; fewer micro-batches than ranks.
Plan plan_step(const ModelConfig& model, const OptimizerConfig& optimizer, const StepShape& shape, bool by_use = true);

// The same memory, measured: two steps of a model with drawn weights are taken on a text of zeros. Errors also: no memory left, a device
// that is not available, multiple ranks.
StepMemory measure_step(const ModelConfig& model, const OptimizerConfig& optimizer, const StepShape& shape);

// The tape after the forward of one micro-batch, as Tape::print writes it, from a dry run. Errors: as for plan_step.
std::string tape_of_step(const ModelConfig& model, const StepShape& shape);

// True if Plan::process is at most `bytes`, and there are addresses for the plan.
bool fits(const ModelConfig& model, const OptimizerConfig& optimizer, const StepShape& shape, int64_t bytes);

// The most sequences in a micro-batch that fit into `bytes`; 0 if not even one does.
int64_t most_sequences(const ModelConfig& model, const OptimizerConfig& optimizer, StepShape shape, int64_t bytes);

}  // namespace ricci
