// Runs two training steps in a dry run and records every memory request.
#include "models/planning/plan.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <numeric>
#include <set>
#include <utility>

#include "autograd/tape.h"
#include "core/error.h"
#include "core/memory/dry_run.h"
#include "core/memory/memory.h"
#include "cuda/device/device.h"
#include "cuda/device/graph.h"
#include "models/layers/layers.h"
#include "models/model.h"
#include "models/training/train_step.h"

namespace ricci {
namespace {

Device dry_device(const StepShape& shape) { return shape.device == Device::cpu ? Device::cpu : Device::cuda_emulated; }

// The last rank: no rank has more micro-batches. In a dry run, it sends nothing.
class LastRank final : public Ranks {
 public:
  explicit LastRank(int64_t count) {
    count_ = static_cast<int>(count);
    rank_ = count_ - 1;
    machines_.assign(static_cast<size_t>(count), "");
  }
};

std::vector<Batch> micro_batches_of(const ModelConfig& model, const StepShape& shape, const Ranks& rank, Device device) {
  const auto ids = [&](const Shape& s) { return zeros(s, Dtype::i64, device); };
  const Shape bc{shape.sequences, shape.context}, b{shape.sequences};
  const bool classifier = model.traits().objective == Objective::label;
  std::vector<Batch> all;
  const Range mine = share_of(shape.micro_batches, rank);
  for (int64_t i = mine.lo; i < mine.hi; ++i)
    all.push_back({ids(bc), ids(classifier ? b : bc), classifier ? ids(b) : Tensor(), shape.sequences * shape.context});
  return all;
}

// A model, its optimizer and the tensors of a step, on one rank.
struct Setup {
  Device device;
  LastRank rank;
  Model model;
  std::optional<Optimizer> optimizer;
  std::vector<Batch> micro_batches;
  TrainStepOptions options;

  Setup(const ModelConfig& config, const OptimizerConfig& optimizer_config, const StepShape& shape, Device on)
      : device(on), rank(shape.ranks), model(config), options{.seed = 1, .clip = 1, .reduce_dtype = shape.reduce_dtype} {
    if (shape.freeze) shape.freeze(model);
    model.place_for_training(shape.dtype, device);
    model.recompute_blocks(shape.recompute_blocks);
    optimizer.emplace(model.trained_parameters(), optimizer_config);
    micro_batches = micro_batches_of(config, shape, rank, device);
  }
  int64_t trained_numbers() {
    int64_t numbers = 0;
    for (const Parameter* p : model.trained_parameters()) numbers += p->value.size();
    return numbers;
  }
  void step(int64_t number) {
    TrainStep step(model, *optimizer, device, options, rank);
    step.run(micro_batches, number, 1e-3);
  }
};

// Records the memory peaks. Gradients, activations and buffers are included only after begin_steps(). Until then, new parameters have no
// holder.
class PeakNotes {
 public:
  PeakNotes(Device device, StepMemory& memory, bool by_use = true)
      : device_(device), before_(memory_use(device).current), by_use_(by_use), memory_(memory) {}
  void begin_steps() { steps_ = true; }

  // Called with the bytes of each tensor before its allocation, and with -1 when the tensor is released.
  void operator()(const void*, int64_t bytes) {
    if (bytes < 0) return;
    const int64_t now = memory_use(device_).current + bytes - before_;
    if (!by_use_) memory_.peak = std::max(memory_.peak, now);
    if (!by_use_ || (now <= memory_.peak && !steps_)) return;
    HeldBytes held = held_on(device_);
    held[static_cast<size_t>(HeldFor::other)] += bytes - before_;
    if (steps_) {
      memory_.working = std::max(memory_.working, working_bytes(held));
      memory_.gradients = std::max(memory_.gradients, held[static_cast<size_t>(HeldFor::gradients)]);
    }
    if (now > memory_.peak) {
      memory_.peak = now;
      memory_.at_peak = held;
    }
  }

 private:
  Device device_;
  int64_t before_;
  bool by_use_;
  bool steps_ = false;
  StepMemory& memory_;
};

// The memory block of a recorded step (cuda/device/graph.h): it contains the tensors that the step makes and releases.
class RecordedBlock {
 public:
  void operator()(const void* block, int64_t bytes) {
    if (bytes >= 0) {
      offset_of_[block] = heap_.allocate(bytes);
    } else if (const auto found = offset_of_.find(block); found != offset_of_.end()) {
      heap_.release(found->second);
      offset_of_.erase(found);
    }
  }
  int64_t bytes() const { return heap_.extent(); }

 private:
  OffsetHeap heap_;
  std::map<const void*, int64_t> offset_of_;
};

std::vector<Plan::Kept> kept_by_forward(Setup& training) {
  const Training on;
  const Tape tape;
  const Tensor loss = training.model.loss(training.micro_batches[0]);
  std::set<const Storage*> seen;
  training.model.each_tensor([&](const Tensor& t, HeldFor) {
    if (t) seen.insert(t.storage());
  });
  std::vector<Plan::Kept> all;
  std::map<std::pair<std::string, std::string>, size_t> row_of;
  for (const auto& node : tape.nodes()) {
    const std::pair<std::string, std::string> name(node->op, format_message("{}:{}", {node->site.file, node->site.line}));
    const auto emplaced = row_of.emplace(name, all.size());
    const size_t row = emplaced.first->second;
    if (emplaced.second) all.push_back({name.first, name.second});
    ++all[row].count;
    node->each_kept([&](const Tensor& t) {
      if (t && seen.insert(t.storage()).second) all[row].bytes += t.storage()->bytes;
    });
  }
  return all;
}

void check_shape(const ModelConfig& config, const StepShape& shape) {
  if (shape.context > config.ctx) fail("plan: the context is {}, expected at most the model's {}", {shape.context, config.ctx});
  if (shape.ranks > 1 && shape.cuda_graph) fail("cuda_graph: is not supported with multiple ranks");
  if (shape.ranks > shape.micro_batches) fail("plan: {} micro-batches cannot be shared by {} ranks", {shape.micro_batches, shape.ranks});
}

}  // namespace

int64_t program_bytes() {
  constexpr int64_t kOwnBytes = 3 << 19;  // measured: thread stacks, open files, parameter lists
  static const int64_t bytes = [] {
    std::ifstream statm("/proc/self/statm");
    int64_t size = 0, resident = 0, shared = 0;  // in pages
    statm >> size >> resident >> shared;
    return shared * sysconf(_SC_PAGESIZE) + kOwnBytes;
  }();
  return bytes;
}

double Plan::flops() const {
  return std::accumulate(work.begin(), work.end(), 0.0, [](double sum, const auto& line) { return sum + line.second.flops; });
}

double Plan::bytes() const {
  return std::accumulate(work.begin(), work.end(), 0.0, [](double sum, const auto& line) { return sum + line.second.bytes; });
}

Plan plan_step(const ModelConfig& config, const OptimizerConfig& optimizer, const StepShape& shape, bool by_use) {
  check_shape(config, shape);
  const Device device = dry_device(shape);
  Plan plan;
  PeakNotes notes(device, plan, by_use);
  const DryRun dry(device);
  RecordedBlock recorded;
  bool is_recording = false;
  const RequestWatch watch(device, [&](const void* block, int64_t bytes) {
    notes(block, bytes);
    if (is_recording) recorded(block, bytes);
  });
  Setup training(config, optimizer, shape, device);
  plan.parameters = training.trained_numbers();
  notes.begin_steps();
  training.step(0);  // allocates memory that later steps reuse
  const trace::Counter counter;
  is_recording = true;
  training.step(1);
  is_recording = false;
  plan.work = counter.work();
  if (const auto sum = plan.work.find("sum of gradients"); sum != plan.work.end()) plan.summed = static_cast<int64_t>(sum->second.bytes);
  plan.recorded = shape.cuda_graph ? recorded.bytes() : 0;
  plan.process = device == Device::cpu ? dry.arena_bytes() + program_bytes() : plan.peak + plan.recorded;
  if (!by_use) return plan;
  const int64_t peak = plan.peak, working = plan.working;
  plan.kept = kept_by_forward(training);
  if (plan.peak != peak || plan.working != working) fail("plan: the forward pass needs more memory than the step");
  return plan;
}

void print_tape(const ModelConfig& config, const StepShape& shape, std::FILE* file) {
  check_shape(config, shape);
  const Device device = dry_device(shape);
  const DryRun dry(device);
  const Setup training(config, {}, shape, device);
  const Training on;
  const Tape tape;
  const Tensor loss = training.model.loss(training.micro_batches[0]);
  tape.print(file);
}

bool fits(const ModelConfig& model, const OptimizerConfig& optimizer, const StepShape& shape, int64_t bytes) {
  try {
    return plan_step(model, optimizer, shape, false).process <= bytes;
  } catch (const Error&) {  // a dry run uses addresses, and `ulimit -v` limits them
    return false;
  }
}

int64_t most_sequences(const ModelConfig& model, const OptimizerConfig& optimizer, StepShape shape, int64_t bytes) {
  const auto fit_in = [&](int64_t sequences) {
    shape.sequences = sequences;
    return fits(model, optimizer, shape, bytes);
  };
  int64_t fit = 0, too_many = 1;
  while (too_many < (int64_t{1} << 30) && fit_in(too_many)) {
    fit = too_many;
    too_many *= 2;
  }
  while (too_many - fit > 1) {
    const int64_t middle = fit + (too_many - fit) / 2;
    (fit_in(middle) ? fit : too_many) = middle;
  }
  return fit;
}

}  // namespace ricci
