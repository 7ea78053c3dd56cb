#include "models/planning/plan.h"

#include <numeric>
#include <set>
#include <utility>

#include "autograd/tape.h"
#include "core/error.h"
#include "core/memory/dry_run.h"
#include "cuda/device/device.h"
#include "models/drop.h"
#include "models/model.h"
#include "models/training/train_step.h"

namespace ricci {
namespace {

Device device_of(const StepShape& shape) { return shape.device == Device::cpu ? Device::cpu : Device::cuda_emulated; }

std::vector<MicroBatch> micro_batches_of(const ModelConfig& model, const StepShape& shape) {
  const auto ids = [&](const Shape& s) { return zeros(s, Dtype::i64, device_of(shape)); };
  const Shape bc{shape.sequences, shape.context}, b{shape.sequences};
  const bool classifier = model.family == Family::classifier;
  std::vector<MicroBatch> all;
  for (int64_t i = 0; i < shape.micro_batches; ++i)
    all.push_back({{ids(bc), ids(classifier ? b : bc), classifier ? ids(b) : Tensor()}, shape.sequences * shape.context});
  return all;
}

// A model with its optimizer and the tensors of a step, none of which has memory.
struct DryTraining {
  Model model;
  std::optional<Optimizer> optimizer;
  std::vector<MicroBatch> micro_batches;

  DryTraining(const ModelConfig& config, const OptimizerConfig& optimizer_config, const StepShape& shape) : model(config) {
    if (shape.freeze) shape.freeze(model);
    model.place_for_training(shape.dtype, device_of(shape));
    model.recompute_blocks(shape.recompute_blocks);
    optimizer.emplace(model.trained_parameters(), optimizer_config);
    micro_batches = micro_batches_of(config, shape);
  }
  void step(Device device, int64_t number) {
    TrainStep step(model, *optimizer, device, {.seed = 1, .clip = 1});
    step.run(micro_batches, number, 1e-3);
  }
};

std::vector<Plan::Kept> kept_by_forward(DryTraining& training) {
  const Training on;
  const Tape tape;
  const Tensor loss = training.model.loss(training.micro_batches[0].inputs);
  std::set<const Storage*> seen;
  training.model.each_held([&](const Tensor& t, HeldFor) {
    if (t) seen.insert(t.storage());
  });
  std::vector<Plan::Kept> all;
  std::map<std::pair<std::string, std::string>, size_t> row_of;
  tape.each_node([&](const Node& node) {
    const std::pair<std::string, std::string> name(node.op, format_message("{}:{}", {node.site.file, node.site.line}));
    const auto [row, is_new] = row_of.emplace(name, all.size());
    if (is_new) all.push_back({name.first, name.second});
    ++all[row->second].count;
    node.each_kept([&](const Tensor& t) {
      if (t && seen.insert(t.storage()).second) all[row->second].bytes += t.storage()->bytes;
    });
  });
  return all;
}

}  // namespace

double Plan::flops() const {
  return std::accumulate(work.begin(), work.end(), 0.0, [](double sum, const auto& line) { return sum + line.second.flops; });
}

double Plan::bytes() const {
  return std::accumulate(work.begin(), work.end(), 0.0, [](double sum, const auto& line) { return sum + line.second.bytes; });
}

Plan plan_step(const ModelConfig& config, const OptimizerConfig& optimizer, const StepShape& shape) {
  if (shape.context > config.ctx) fail("plan: a context of {}, the model's is {}", {shape.context, config.ctx});
  const Device device = device_of(shape);
  const int64_t before = memory_use(device).current;
  Plan plan;
  const auto note_peak = [&](int64_t bytes) {
    const int64_t now = memory_use(device).current + bytes - before;
    if (now <= plan.peak) return;
    plan.peak = now;
    plan.at_peak = held_on(device);
    plan.at_peak[static_cast<size_t>(HeldFor::other)] += bytes - before;
  };
  const DryRun dry(device, note_peak);
  DryTraining training(config, optimizer, shape);
  for (const Parameter* p : training.model.trained_parameters()) plan.parameters += p->value.size();
  training.step(device, 0);  // makes what later steps find
  const trace::Counter counter;
  training.step(device, 1);
  plan.work = counter.work();
  plan.process = device == Device::cpu ? dry.arena_bytes() + kProgramBytes : plan.peak;
  const int64_t peak = plan.peak;
  plan.kept = kept_by_forward(training);
  if (plan.peak != peak) fail("plan: the forward alone holds more than the step");
  return plan;
}

int64_t most_sequences(const ModelConfig& model, const OptimizerConfig& optimizer, const StepShape& shape, int64_t bytes) {
  const auto fits = [&](int64_t sequences) {
    StepShape tried = shape;
    tried.sequences = sequences;
    return plan_step(model, optimizer, tried).process <= bytes;
  };
  int64_t fit = 0, too_many = 1;
  while (too_many < (int64_t{1} << 20) && fits(too_many)) fit = too_many, too_many *= 2;
  while (too_many - fit > 1) {
    const int64_t middle = fit + (too_many - fit) / 2;
    (fits(middle) ? fit : too_many) = middle;
  }
  return fit;
}

}  // namespace ricci
