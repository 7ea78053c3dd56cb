// Training with a CUDA graph has the bits of training without one.
#include "apps/shared/step_graph.h"

#include "apps/shared/evaluation.h"
#include "apps/shared/train_step.h"
#include "models/optim/optimizer.h"
#include "tests/ops/values.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

constexpr int64_t kContext = 7, kVocabulary = 11;

ModelConfig small(double dropout = 0) {
  ModelConfig c;
  c.vocab = kVocabulary, c.ctx = kContext, c.d = 12, c.heads = 3, c.layers = {1}, c.dropout = dropout;
  return c;
}

TokenFile text() {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 300; ++i) ids.push_back((i * i / 3 + i * 7) % kVocabulary);
  return TokenFile::of_ids(ids, kVocabulary);
}

// Of a step; in some of them targets are missing, so that the parts weigh differently.
std::vector<Batch> parts_of(const RandomCrops& crops, const TrainConfig& config, int64_t step) {
  std::vector<Batch> parts = batches_of_step(crops, config, step);
  for (int64_t i = 0; i < step % 4; ++i) parts[0].targets_bc[static_cast<size_t>(i)] = kNoTarget, --parts[0].scored;
  return parts;
}

struct Outcome {
  std::vector<double> numbers;  // losses and norms
  std::vector<Tensor> values;
};

Outcome trained(Device device, bool graph, bool recompute, Dtype dtype) {
  TrainConfig config;
  config.accumulation = 2, config.batch = 2;
  Model model(small());
  model.init(3);
  model.place_for_training(dtype, device);
  model.recompute_blocks(recompute);
  Optimizer optimizer(model.parameters(), {});
  const TrainStep train_step(model, device, 5, graph);
  const RandomCrops crops(text(), config.batch, kContext, 5);
  const Windows validation(text(), 2, kContext, kContext);
  Outcome outcome;
  for (int64_t step = 0; step < 6; ++step) {
    outcome.numbers.push_back(train_step.forward_backward(parts_of(crops, config, step), step));
    outcome.numbers.push_back(optimizer.gradient_norm());
    optimizer.step(1e-2 / static_cast<double>(step + 1), 1 / (1 + outcome.numbers.back()));
    if (step % 2) outcome.numbers.push_back(evaluate(model, validation, device, 1).nats_per_token);  // work between two steps
  }
  for (const Parameter* p : model.parameters()) outcome.values.push_back(to(p->value, Device::cpu));
  return outcome;
}

}  // namespace

TEST_CASE("step graph: losses, gradient norms and weights have the bits of steps without a graph") {
  for (Device device : {Device::cuda_emulated, Device::cuda}) {
    if (!available(device)) {
      MESSAGE("skipped on cuda: ", std::string(why_not(device)));
      continue;
    }
    for (const auto& [recompute, dtype] : {std::pair{false, Dtype::f32}, {true, Dtype::f32}, {false, Dtype::bf16}}) {
      CAPTURE(recompute);
      CAPTURE(name_of(dtype));
      const Outcome plain = trained(device, false, recompute, dtype), graph = trained(device, true, recompute, dtype);
      CHECK(plain.numbers == graph.numbers);
      CHECK(plain.numbers[0] > plain.numbers[plain.numbers.size() - 3]);
      for (size_t i = 0; i < plain.values.size(); ++i) CHECK(values_of(plain.values[i]) == values_of(graph.values[i]));
    }
  }
}

TEST_CASE("step graph: messages") {
  const Device device = Device::cuda_emulated;
  TrainConfig config;
  config.batch = 2;
  const RandomCrops crops(text(), config.batch, kContext, 5), wider(text(), 3, kContext, 5);
  const auto parts = batches_of_step(crops, config, 0);
  Model model(small());
  model.init(3);
  model.place(Dtype::f32, device);
  const TrainStep step(model, device, 5, true);
  step.forward_backward(parts, 0);
  CHECK(message_of([&] { step.forward_backward(parts, 1); }) == "cuda_graph: the gradient of " + model.parameters()[0]->path + " is left from the step before");
  for (const Parameter* p : model.parameters()) p->grad = {};
  CHECK(message_of([&] { step.forward_backward({parts[0], parts[0]}, 1); }) == "cuda_graph: 2 batches after 1");
  CHECK(message_of([&] { step.forward_backward(batches_of_step(wider, config, 0), 1); }) == "cuda_graph: a batch of [3 7] after batches of [2 7]");
  CHECK(message_of([&] { TrainStep(model, Device::cpu, 5, true); }) == "graph: the cpu has no graphs");
  Model drawing(small(0.5));
  drawing.init(3);
  drawing.place(Dtype::f32, device);
  CHECK(message_of([&] { TrainStep(drawing, device, 5, true).forward_backward(parts, 0); }) ==
        "cuda_graph: the step draws random numbers, and they would be the same at every step");
}

TEST_CASE("step graph: what a run file may ask for") {
  TrainConfig config;
  config.cuda_graph = true;
  CHECK(message_of([&] { check(config); }) == "cuda_graph: device cpu has no graphs, expected cuda");
  config.device = "cuda", config.model.dropout = 0.25;
  CHECK(message_of([&] { check(config); }) == "cuda_graph: model.dropout is 0.25, expected 0");
  config.model.dropout = 0;
  CHECK(message_of([&] { check(config); }) == "no error");
}
