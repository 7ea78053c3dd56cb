// Predicts the memory and work of a training step by a dry run (core/memory/dry_run.h) of the step itself. A formula per layer would be
// wrong as soon as a model, op or kernel changes.
#pragma once
#include <cstdint>
#include <cstdio>
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

// The bytes that training on the CPU holds in addition to tensors: code and libraries, measured once in this process, and an allowance for
// threads, files and matrix products. The value differs by a few pages between runs.
int64_t program_bytes();

struct StepShape {
  int64_t sequences = 1, context = 1, micro_batches = 1;
  Dtype dtype = Dtype::f32;  // weights and activations
  bool recompute_blocks = false;
  Device device = Device::cpu;              // cuda is planned on cuda_emulated, with the same kernels
  std::function<void(Model&)> freeze = {};  // sets Parameter::frozen
  bool cuda_graph = false;                  // the step is recorded (StepGraph)
  int64_t ranks = 1;                        // ranks that share the micro-batches
  Dtype reduce_dtype = Dtype::f32;          // for the sum of gradients over ranks
};

struct StepMemory {
  int64_t parameters = 0;  // number of trained elements
  int64_t peak = 0;        // peak bytes of tensors
  HeldBytes at_peak{};     // by purpose; `other` means values between ops, and kernel buffers
  int64_t gradients = 0;   // peak bytes of gradients in a step
  int64_t working = 0;     // most bytes of activations and `other` at any time, not always at the peak
};

struct Plan : StepMemory {
  // On the CPU: the peak memory of the process in a step, including freed blocks kept for tensors of the same size, and the threads'
  // buffers (core/memory/scratch.h). On a GPU: the peak plus the block of a recorded step (the driver's pool keeps the memory of earlier
  // steps).
  int64_t process = 0;
  int64_t recorded = 0;  // bytes of the recorded step's block (Graph::bytes)
  int64_t summed = 0;    // bytes of gradients summed over ranks; 0 for one rank

  struct Kept {
    std::string op, place;  // such as "linear", "models/layers/block.h:31"
    int64_t count = 0, bytes = 0;
  };
  // The memory that the ops of the tape keep after the forward pass of a micro-batch, in order. Memory that ops share is listed for the
  // first of them.
  std::vector<Kept> kept;

  std::map<std::string, trace::Work> work;  // by op, for one step
  double flops() const;                     // for products and attention
  double bytes() const;                     // read and written by ops
};

// With multiple ranks, the plan is for a rank with the most micro-batches; nothing is communicated. Without by_use, the plan lacks at_peak,
// gradients, working and kept: these require a pass over all tensors at each memory request, so the time is quadratic in the number
// of layers. Errors: as for Model, Optimizer and TrainStep; the context is longer than the model's; there are fewer micro-batches than
// ranks.
Plan plan_step(const ModelConfig& model, const OptimizerConfig& optimizer, const StepShape& shape, bool by_use = true);

// Prints the tape after the forward pass of one micro-batch, from a dry run. Errors: as for plan_step.
void print_tape(const ModelConfig& model, const StepShape& shape, std::FILE* file);

// True if Plan::process is at most `bytes` and the dry run finds enough addresses.
bool fits(const ModelConfig& model, const OptimizerConfig& optimizer, const StepShape& shape, int64_t bytes);

// The largest number of sequences in a micro-batch that fit into `bytes`; 0 if not even one fits.
int64_t most_sequences(const ModelConfig& model, const OptimizerConfig& optimizer, StepShape shape, int64_t bytes);

}  // namespace ricci
