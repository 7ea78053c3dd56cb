// Training with a CUDA graph has the bits of training without one.
#include "apps/shared/step_graph.h"

#include <cmath>
#include <functional>
#include <set>

#include "apps/shared/evaluation.h"
#include "apps/shared/train_step.h"
#include "cuda/arithmetic.h"
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

struct Variant {
  double dropout = 0;
  Dtype dtype = Dtype::f32;
  int64_t accumulation = 2;
  bool recompute = false;
  const char* optimizer = "adamw";
  double momentum = 0.9;
  int64_t width = 12;
};

// Six steps with a rate, a bias correction, a clipping and random numbers of their own, and work between two of them.
Outcome trained(Device device, bool graph, const Variant& v) {
  TrainConfig config;
  config.accumulation = v.accumulation, config.batch = 2, config.seed = 5, config.clip = 0.5, config.cuda_graph = graph;
  config.optimizer = v.optimizer, config.momentum = v.momentum;
  ModelConfig of_model = small(v.dropout);
  of_model.d = v.width;
  Model model(of_model);
  model.init(3);
  model.place_for_training(v.dtype, device);
  model.recompute_blocks(v.recompute);
  Optimizer optimizer(model.parameters(), optimizer_config(config));
  TrainStep train_step(model, optimizer, device, config);
  const RandomCrops crops(text(), config.batch, kContext, 5);
  const Windows validation(text(), 2, kContext, kContext);
  Outcome outcome;
  for (int64_t step = 0; step < 6; ++step) {
    const StepResult result = train_step.run(parts_of(crops, config, step), step, 1e-2 / static_cast<double>(step + 1));
    outcome.numbers.insert(outcome.numbers.end(), {result.loss, result.gradient_norm});
    if (step % 2) outcome.numbers.push_back(evaluate(model, validation, device, 1).nats_per_token);
  }
  for (const Parameter* p : model.parameters()) outcome.values.push_back(to(p->unrounded(), Device::cpu));
  return outcome;
}

void on_devices_with_graphs(const std::function<void(Device)>& f) {
  for (Device device : {Device::cuda_emulated, Device::cuda}) {
    if (available(device))
      f(device);
    else
      MESSAGE("skipped on cuda: ", std::string(why_not(device)));
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
    for (const Variant& v : std::vector<Variant>{{.dropout = 0.2},
                                                 {.dropout = 0.2, .recompute = true},
                                                 {.dropout = 0.2, .dtype = Dtype::bf16, .width = 96},  // flash attention
                                                 {.accumulation = 1, .optimizer = "adam"},
                                                 {.dropout = 0.2, .accumulation = 1, .optimizer = "sgd"},
                                                 {.accumulation = 1, .optimizer = "sgd", .momentum = 0}}) {
      CAPTURE(v.optimizer);
      CAPTURE(v.dropout);
      const Outcome plain = trained(device, false, v);
      CHECK(same(plain, trained(device, true, v)));
      for (size_t i = 0; i < plain.numbers.size(); ++i) CHECK(std::isfinite(plain.numbers[i]));
      CHECK(plain.numbers[1] > 0.5);  // so that it is clipped
    }
  });
}

TEST_CASE("step graph: a step draws its own random numbers") {
  on_devices_with_graphs([](Device device) {
    TrainConfig config;
    config.batch = 2, config.lr = 0, config.cuda_graph = true;
    Model model(small(0.5));
    model.init(3);
    model.place(Dtype::f32, device);
    Optimizer optimizer(model.parameters(), optimizer_config(config));
    TrainStep train_step(model, optimizer, device, config);
    const auto parts = batches_of_step(RandomCrops(text(), config.batch, kContext, 5), config, 0);
    std::set<double> losses;
    for (int64_t step : std::initializer_list<int64_t>{0, 1, 2, 3, 4, 1 << 30}) losses.insert(train_step.run(parts, step, 0).loss);  // weights stay
    CHECK(losses.size() == 6);
    CHECK(losses.count(train_step.run(parts, 3, 0).loss) == 1);
    CHECK(losses.count(train_step.forward_backward(parts, 4)) == 1);
  });
}

TEST_CASE("step graph: where the loss is not finite nothing is updated, and the op is named") {
  on_devices_with_graphs([](Device device) {
    for (bool graph : {false, true}) {
      TrainConfig config;
      config.batch = 2, config.cuda_graph = graph;
      Model model(small(0.2));
      model.init(3);
      model.place(Dtype::f32, device);
      Optimizer optimizer(model.parameters(), optimizer_config(config));
      TrainStep train_step(model, optimizer, device, config);
      const auto parts = batches_of_step(RandomCrops(text(), config.batch, kContext, 5), config, 0);
      for (int64_t step = 0; step < 4; ++step) train_step.run(parts, step, 1e-3);
      std::vector<Tensor> before;
      model.each_parameter([&](const std::string& path, Parameter& p) {
        if (path == "blocks.0.fc.weight") fill(p.value, HUGE_VAL);
        before.push_back(to(p.value, Device::cpu));
      });
      const StepResult result = train_step.run(parts, 4, 1e-3);
      CHECK(!std::isfinite(result.loss));
      size_t i = 0;
      for (const Parameter* p : model.parameters()) CHECK(same_bits(to(p->value, Device::cpu), before[i++]));
      CHECK(message_of([&] { train_step.explain_nonfinite(parts, 4, result.loss); }).find("linear (") != std::string::npos);
    }
  });
}

TEST_CASE("step graph: messages") {
  const Device device = Device::cuda_emulated;
  TrainConfig config;
  config.batch = 2, config.cuda_graph = true;
  const RandomCrops crops(text(), config.batch, kContext, 5), wider(text(), 3, kContext, 5);
  const auto parts = batches_of_step(crops, config, 0);
  Model model(small());
  model.init(3);
  model.place(Dtype::f32, device);
  Optimizer optimizer(model.parameters(), {});
  TrainStep step(model, optimizer, device, config);
  step.run(parts, 0, 1e-3);
  CHECK(message_of([&] { step.run({parts[0], parts[0]}, 1, 1e-3); }) == "cuda_graph: 2 batches after 1");
  CHECK(message_of([&] { step.run(batches_of_step(wider, config, 0), 1, 1e-3); }) == "cuda_graph: a batch of [3 7] after batches of [2 7]");
  CHECK(message_of([&] { TrainStep(model, optimizer, Device::cpu, config); }) == "graph: the cpu has no graphs");
  step.forward_backward(parts, 0);
  CHECK(message_of([&] { step.run(parts, 1, 1e-3); }) == "train step: the gradient of " + model.parameters()[0]->path + " is left from before");
}

TEST_CASE("step graph: what a run file may ask for") {
  TrainConfig config;
  config.cuda_graph = true;
  CHECK(message_of([&] { check(config); }) == "cuda_graph: device cpu has no graphs, expected cuda");
  config.device = "cuda";
  CHECK(message_of([&] { check(config); }) == "no error");
}
