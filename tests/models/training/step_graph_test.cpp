// Training with a CUDA graph has the bits of training without one.
#include <cmath>
#include <functional>

#include "cuda/verbs/arithmetic.h"
#include "data/feeds/evaluation.h"
#include "models/inference/evaluation.h"
#include "models/training/optimizer.h"
#include "models/training/train_step.h"
#include "tests/models/training/forward_backward.h"
#include "tests/models/training/small_training.h"
#include "tests/ops/values.h"
#include "tests/skip.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

ModelConfig one_block(double dropout = 0, int64_t width = 12) { return small_model({.d = width, .layers = 1, .dropout = dropout}); }

// A model of one block with its optimizer, two sequences of seven tokens at a time.
struct Trainer {
  Model model;
  Optimizer optimizer;
  TrainStep step;

  Trainer(Device on, const TrainConfig& config, const ModelConfig& of, Dtype dtype = Dtype::f32)
      : model(placed(on, of, dtype)), optimizer(model.parameters(), config.optimizer), step(model, optimizer, on, step_options(config)) {}

 private:
  static Model placed(Device on, const ModelConfig& of, Dtype dtype) {
    Model model(of);
    model.init(3);
    model.place_for_training(dtype, on);
    return model;
  }
};

constexpr int64_t kContext = SmallModel{}.context;

TrainConfig with_graph(bool graph = true) {
  TrainConfig config;
  config.batch = 2, config.cuda_graph = graph;
  return config;
}

// The micro-batches of a step; some lack targets and so weigh less.
std::vector<Batch> some_targets(const RandomCrops& crops, const TrainConfig& config, int64_t step) {
  std::vector<Batch> all = micro_batches_of(crops, config, step, Device::cpu);
  for (int64_t i = 0; i < step % 4; ++i) all[0].targets.data<int64_t>()[i] = kNoTarget, --all[0].scored;
  return all;
}

struct Outcome {
  std::vector<double> numbers;  // losses and norms
  std::vector<Tensor> values;
};

struct Variant {
  double dropout = 0;
  Dtype dtype = Dtype::f32;
  int64_t accumulation = 2;
  bool recompute = false;
  OptimizerConfig optimizer = {};
  int64_t width = 12;
};

// Steps with a rate, a bias correction, a clipping and random numbers that change, and work between two steps.
Outcome trained(Device device, bool graph, const Variant& v) {
  TrainConfig config = with_graph(graph);
  config.accumulation = v.accumulation, config.seed = 5, config.clip = 0.5;
  config.optimizer = v.optimizer;
  Trainer trainer(device, config, one_block(v.dropout, v.width), v.dtype);
  trainer.model.recompute_blocks(v.recompute);
  const RandomCrops crops = crops_of(config, kContext);
  EvaluationBatches validation = EvaluationBatches::windows(small_text(), 2, kContext, kContext);
  validation.keep_first(1);
  Outcome outcome;
  std::vector<int64_t> steps{0, 3, 1 << 30};  // a step samples its own random numbers, whichever came before it
  if (!test::kSanitized && test::everything()) steps.insert(steps.end(), {3, 2, 1});
  for (const int64_t step : steps) {
    const StepResult result = trainer.step.run(some_targets(crops, config, step), step, 1e-2 / static_cast<double>(step + 1));
    outcome.numbers.insert(outcome.numbers.end(), {result.loss, result.gradient_norm});
    if (step % 2) outcome.numbers.push_back(evaluate(trainer.model, validation, device).nats_per_token);
  }
  for (const Parameter* p : trainer.model.parameters()) outcome.values.push_back(to(p->unrounded(), Device::cpu));
  return outcome;
}

void on_devices_with_graphs(const std::function<void(Device)>& f) {
  for (Device device : {Device::cuda_emulated, Device::cuda}) {
    if (!is_tested(device)) continue;
    if (available(device)) f(device);
    else MESSAGE("skipped on cuda: ", std::string(why_not(device)));
  }
}

bool same(const Outcome& a, const Outcome& b) {
  bool same = a.numbers == b.numbers;
  for (size_t i = 0; i < a.values.size(); ++i) same = same && same_bits(a.values[i], b.values[i]);
  return same;
}

}  // namespace

TEST_CASE("step graph: losses, gradient norms and weights have the bits of steps without a graph") {
  on_devices_with_graphs([](Device device) {
    std::vector<Variant> variants{{.dropout = 0.2, .dtype = Dtype::bf16, .width = 96},  // flash attention
        {.accumulation = 1, .optimizer = OptimizerConfig::with(Sgd())}, {.optimizer = OptimizerConfig::with(Muon())},
        {.dropout = 0.2, .recompute = true}, {.accumulation = 1, .optimizer = OptimizerConfig::with(Adam())},
        {.dropout = 0.2, .accumulation = 1, .optimizer = OptimizerConfig::with(Sgd{.momentum = 0})}};
    if (test::kSanitized) variants.resize(2);
    for (const Variant& v : variants) {
      CAPTURE(std::string(name_of(v.optimizer.kind)));
      CAPTURE(v.dropout);
      const Outcome plain = trained(device, false, v);
      CHECK(same(plain, trained(device, true, v)));
      for (size_t i = 0; i < plain.numbers.size(); ++i) CHECK(std::isfinite(plain.numbers[i]));
      CHECK(plain.numbers[1] > 0.5);  // so it is clipped
    }
  });
}

TEST_CASE("step graph: a classifier of sequences with different lengths") {
  on_devices_with_graphs([](Device device) {
    ModelConfig classifier = one_block();
    classifier.family = family_of<Classifier>, classifier.causal = false;
    for (const int64_t accumulation : {1, 2}) {
      std::vector<double> losses[2];
      for (const bool graph : {false, true}) {
        const TrainConfig config = with_graph(graph);
        Trainer trainer(device, config, classifier);
        for (int64_t step = 0; step < 5; ++step) {
          std::vector<Batch> micro_batches;
          for (int64_t i = 0; i < accumulation; ++i)
            micro_batches.push_back({ids_of({1, 2, 3, step, 5, 4, 3, 2, 1, i, 5, 6, 7, 8}, {2, kContext}, device),
                ids_of({step % 2, i}, {2}, device), ids_of({kContext - step, 4 + i}, {2}, device), 2});
          losses[graph].push_back(trainer.step.run(micro_batches, step, 1e-2).loss);
        }
      }
      CHECK(losses[0] == losses[1]);
      CHECK(losses[0][4] != losses[0][3]);
    }
  });
}

TEST_CASE("step graph: if the loss is not finite, nothing is updated and the op is named") {
  on_devices_with_graphs([](Device device) {
    for (bool graph : {false, true}) {
      const TrainConfig config = with_graph(graph);
      Trainer trainer(device, config, one_block(0.2));
      const auto micro_batches = micro_batches_of(crops_of(config, kContext), config, 0, device);
      for (int64_t step = 0; step < 4; ++step) trainer.step.run(micro_batches, step, 1e-3);
      std::vector<Tensor> before;
      trainer.model.each_parameter([&](const std::string& path, Parameter& p) {
        if (path == "blocks.0.fc.weight") fill(p.value, HUGE_VAL);
        before.push_back(to(p.value, Device::cpu));
      });
      const StepResult result = trainer.step.run(micro_batches, 4, 1e-3);
      CHECK(!std::isfinite(result.loss));
      size_t i = 0;
      for (const Parameter* p : trainer.model.parameters()) CHECK(same_bits(to(p->value, Device::cpu), before[i++]));
      CHECK(message_of([&] { trainer.step.explain_nonfinite(micro_batches, 4, result.loss); }).find("linear (") != std::string::npos);
    }
  });
}

TEST_CASE("step graph: messages") {
  const TrainConfig config = with_graph();
  TrainConfig of_three = config;
  of_three.batch = 3;
  const auto micro_batches = micro_batches_of(crops_of(config, kContext), config, 0, Device::cuda_emulated),
             wider = micro_batches_of(crops_of(of_three, kContext), of_three, 0, Device::cuda_emulated);
  Trainer trainer(Device::cuda_emulated, config, one_block());
  TrainStep& step = trainer.step;
  step.run(micro_batches, 0, 1e-3);
  CHECK(message_of([&] {
    step.run({micro_batches[0], micro_batches[0]}, 1, 1e-3);
  }) == "cuda_graph: there are 2 batches, expected 1 as before");
  CHECK(message_of([&] { step.run(wider, 1, 1e-3); }) == "cuda_graph: the batch has shape [3 7], expected [2 7] as before");
  CHECK(message_of([&] { TrainStep(trainer.model, trainer.optimizer, Device::cpu, step_options(config)); }) ==
        "graph: graphs are not available on the cpu");
  forward_backward(trainer.model, micro_batches);
  CHECK(message_of([&] { step.run(micro_batches, 1, 1e-3); }) ==
        "train step: " + trainer.model.parameters()[0]->path + " still has a gradient from an earlier backward pass");
}

TEST_CASE("step graph: devices in a run file") {
  TrainConfig config;
  config.cuda_graph = true;
  CHECK(message_of([&] { check(config); }) == "cuda_graph: is not supported with device: cpu, expected device: cuda");
  config.device = Device::cuda;
  CHECK(message_of([&] { check(config); }) == "no error");
}
