// Training steps: the division of a batch changes nothing, the op that made a NaN is named, bf16 learns as f32 does.
#include "models/training/train_step.h"

#include <cmath>
#include <map>
#include <optional>

#include "cuda/verbs/arithmetic.h"
#include "models/layers/layers.h"
#include "models/training/checkpoint.h"
#include "models/training/optimizer.h"
#include "models/training/parameter_groups.h"
#include "tests/data/files.h"
#include "tests/models/training/forward_backward.h"
#include "tests/models/training/small_training.h"
#include "tests/ops/values.h"
#include "tests/skip.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

constexpr int64_t kContext = 7;

ModelConfig small(double dropout, Preset preset = Preset::gpt) {
  return small_model({.preset = preset, .context = kContext, .dropout = dropout});
}

Model made(const ModelConfig& config, Dtype dtype, Device device) {
  Model model(config);
  model.init(3);
  model.place(dtype, device);
  return model;
}

TrainConfig cut(int64_t accumulation, int64_t batch, bool invariant) {
  TrainConfig c;
  c.accumulation = accumulation;
  c.batch = batch;
  c.batch_invariant = invariant;
  c.seed = 5;
  return c;
}

struct Trained {
  Model model;
  std::vector<double> losses;
};

Trained trained(const TrainConfig& config, const ModelConfig& of, Dtype dtype, Device device, int64_t steps) {
  Trained out{Model(of, 3), {}};
  out.model.place_for_training(dtype, device);
  Optimizer optimizer(out.model.parameters(), {.weight_decay = 0.1});
  const RandomCrops crops = crops_of(config, of.ctx);
  for (int64_t step = 0; step < steps; ++step) {
    out.losses.push_back(forward_backward(out.model, micro_batches_of(crops, config, step, device), step, config.seed));
    optimizer.begin_step(2e-3);
    CHECK(std::isfinite(item(optimizer.update(0, zeros({}, Dtype::f64, device)))));
  }
  return out;
}

// Six rows without some of their targets, in micro-batches of `rows` rows.
std::vector<Batch> six_rows(int64_t rows = 6, Device device = Device::cpu) {
  std::vector<int64_t> ids, targets;
  for (int64_t i = 0; i < 6 * kContext; ++i) {
    const bool counts = i / kContext != 2 && i % 3 != i / kContext % 3;  // row 2 has no targets
    ids.push_back(i * 5 % kVocabulary), targets.push_back(counts ? i * 3 % kVocabulary : kNoTarget);
  }
  const Tensor ids_bc = ids_of(ids, {6, kContext}, Device::cpu), targets_bc = ids_of(targets, {6, kContext}, Device::cpu);
  std::vector<Batch> all;
  for (int64_t b = 0; b < 6; b += rows) all.push_back(to(make_batch(ids_bc.rows(b, rows), targets_bc.rows(b, rows)), device));
  return all;
}

// The loss of step 3, and the error for a loss or gradient that is not finite.
std::pair<double, std::string> explained(Model& model, const std::vector<Batch>& micro_batches) {
  Optimizer optimizer(model.parameters(), {});
  const TrainStep train_step(model, optimizer, Device::cpu, {.seed = 1});
  const double loss = forward_backward(model, micro_batches, 2);
  return {loss, message_of([&] { train_step.explain_nonfinite(micro_batches, 2, loss); })};
}

// The gradients of the model are the expected ones, none of them zero. The first model gives them.
void check_gradients(Model& model, std::map<std::string, Values>& expected) {
  model.each_parameter([&](const std::string& path, Parameter& p) {
    CAPTURE(path);
    if (!expected.count(path)) expected[path] = values_of(p.grad);
    double size = 0;
    for (double g : expected[path]) size = std::max(size, std::abs(g));
    CHECK(size > 0);
    CHECK(error_of(p.grad, expected[path]) < 1e-11);
  });
}

ModelConfig wider(Preset preset) { return small_model({.preset = preset, .context = 8, .d = 16, .heads = 2}); }

// The root of the mean square of the logits minus their mean over the vocabulary.
double size_of_logits(const Tensor& logits) {
  const Values l = values_of(logits);
  double squares = 0;
  for (size_t row = 0; row < l.size(); row += kVocabulary) {
    double mean = 0;
    for (size_t v = 0; v < kVocabulary; ++v) mean += l[row + v] / kVocabulary;
    for (size_t v = 0; v < kVocabulary; ++v) squares += (l[row + v] - mean) * (l[row + v] - mean);
  }
  return std::sqrt(squares / static_cast<double>(l.size()));
}

}  // namespace

TEST_CASE("train step: micro-batches have the loss and gradient of the whole, -1 targets and dropout included") {
  on_training_devices([](Device device) {
    for (Preset preset : {Preset::gpt, Preset::msa}) {
      if (device == Device::cuda_emulated && preset == Preset::msa) continue;  // nothing new, and slow
      std::map<std::string, Values> expected;
      double expected_loss = 0;
      for (int64_t rows : {6, 3, 2, 1}) {
        if (device == Device::cuda_emulated && rows % 3) continue;
        CAPTURE(rows);
        Model model = made(small(0.3, preset), Dtype::f64, device);
        const double loss = forward_backward(model, six_rows(rows, device), 4, 8);
        if (rows == 6) expected_loss = loss;
        CHECK(loss == doctest::Approx(expected_loss).epsilon(1e-12));
        check_gradients(model, expected);
      }
    }
  });
}

TEST_CASE("train step: dropout depends on seed and step") {
  Model model = made(small(0.3), Dtype::f64, Device::cpu);
  const auto loss = [&](uint64_t seed, int64_t step) { return forward_backward(model, six_rows(), step, seed); };
  CHECK(loss(8, 4) == loss(8, 4));
  CHECK(loss(8, 4) != loss(8, 5));
  CHECK(loss(8, 4) != loss(9, 4));
}

TEST_CASE("train step: a step without any target has loss 0 and no gradient") {
  Model model = made(small(0), Dtype::f32, Device::cpu);
  std::vector<Batch> micro_batches = six_rows(3);
  for (Batch& one : micro_batches) one.scored = 0, std::fill_n(one.targets.data<int64_t>(), 3 * kContext, kNoTarget);
  CHECK(forward_backward(model, micro_batches) == 0);
  for (const Parameter* p : model.parameters())
    for (double g : values_of(p->grad)) CHECK(g == 0);
}

TEST_CASE("train step: 1 x 8, 2 x 4 and 4 x 2 agree to 1e-6, and in all bits when batch_invariant") {
  on_training_devices([](Device device) {
    const int64_t steps = device == Device::cuda_emulated ? 2 : 10;  // a step there is slow
    for (bool invariant : {false, true})
      for (double dropout : {0.0, 0.2}) {
        CAPTURE(invariant);
        CAPTURE(dropout);
        if (device == Device::cuda_emulated && (dropout == 0 || !invariant)) continue;
        const auto cut_in = [&](int64_t accumulation, int64_t batch) {
          return trained(cut(accumulation, batch, invariant), small(dropout), Dtype::f32, device, steps);
        };
        Trained one = cut_in(1, 8);
        if (steps == 10 && dropout == 0) CHECK(one.losses[9] < one.losses[0]);
        for (const auto& [accumulation, batch] : {std::pair{2, 4}, {4, 2}}) {
          Trained other = cut_in(accumulation, batch);
          for (size_t i = 0; i < one.model.parameters().size() && invariant; ++i)
            CHECK(same_bits(other.model.parameters()[i]->value, one.model.parameters()[i]->value));
          for (size_t i = 0; i < one.losses.size(); ++i)
            CHECK(other.losses[i] == doctest::Approx(one.losses[i]).epsilon(invariant ? 1e-15 : 1e-6));
        }
      }
  });
}

TEST_CASE("train step: a step that is given up changes nothing, and can be taken again") {
  static int64_t asked = 0, most = 0;
  Model model = made(small(0.3), Dtype::f32, Device::cpu), straight = made(small(0.3), Dtype::f32, Device::cpu);
  Optimizer optimizer(model.parameters(), {}), straight_optimizer(straight.parameters(), {});
  TrainStep train_step(model, optimizer, Device::cpu, {.seed = 1, .clip = 1});
  const StepResult expected = TrainStep(straight, straight_optimizer, Device::cpu, {.seed = 1, .clip = 1}).run(six_rows(2), 0, 1e-2);
  set_random_state({7, 8, 9});
  std::optional<StepResult> result;
  int64_t given_up = 0;
  for (most = 0; !result; most += 17) {
    CHECK(random_state().next_stream == 8);
    asked = 0;
    result = train_step.run_unless([] { return ++asked > most; }, six_rows(2), 0, 1e-2);
    given_up += !result;
  }
  CHECK(given_up > 5);
  CHECK(asked < most);  // the update did not ask
  CHECK(result->loss == expected.loss);
  CHECK(result->gradient_norm == expected.gradient_norm);
  CHECK(optimizer.steps() == 1);
  const NamedTensors weights = weights_of(model), straight_weights = weights_of(straight);
  for (size_t i = 0; i < weights.size(); ++i) CHECK(values_of(weights[i].second) == values_of(straight_weights[i].second));
}

TEST_CASE("train step: the op that made the first NaN is named") {
  Model model = made(small(0), Dtype::f32, Device::cpu);
  model.each_parameter([&](const std::string& path, Parameter& p) {
    if (path == "blocks.1.fc.weight") fill(p.value, NAN);
  });
  const auto [loss, message] = explained(model, six_rows());
  CHECK(std::isnan(loss));
  CHECK(message.find("step 3: the loss is nan: linear (") == 0);
  CHECK(message.find("models/layers/block.h") != message.npos);
}

TEST_CASE("train step: a NaN in a later part is not blamed on an earlier one with NaN gradients") {
  ModelConfig config = small(0);
  config.output.tie = false;
  Model model = made(config, Dtype::f32, Device::cpu);
  model.each_parameter([&](const std::string& path, Parameter& p) {
    if (path == "tok.weight") fill(p.value.rows(kVocabulary - 1, 1), NAN);
  });
  const std::vector<Batch> micro_batches = six_rows(3);
  for (int64_t i = 0; i < 3 * kContext; ++i) micro_batches[0].ids_bc.data<int64_t>()[i] %= kVocabulary - 1;
  micro_batches[1].ids_bc.data<int64_t>()[3] = kVocabulary - 1;
  const std::pair found = explained(model, micro_batches);
  const std::string& message = found.second;
  CHECK(std::isnan(found.first));
  CHECK_MESSAGE(message.find("step 3: the loss is nan: embedding (") == 0, message);
}

TEST_CASE("train step: a gradient that is not finite is distinguished from such a loss") {
  Model model = made(small(0), Dtype::f32, Device::cpu);
  // ln2 gives 0, so the large weights do not affect the forward; the gradient contains them twice.
  model.each_parameter([&](const std::string& path, Parameter& p) {
    if (path.starts_with("blocks.0.ln2") || path == "blocks.0.fc.bias") fill(p.value, 0);
    if (path == "blocks.0.fc.weight" || path == "blocks.0.fc_out.weight") fill(p.value, 1e38);
  });
  const std::pair found = explained(model, six_rows());
  const std::string& message = found.second;
  CHECK(std::isfinite(found.first));
  CHECK_MESSAGE(message.find("step 3: the gradient is not finite: linear (") == 0, message);
  CHECK_MESSAGE(message.find("of a gradient it returned are NaN or infinite") != message.npos, message);
}

// Each of the n ops between ids and loss rounds its results, with independent relative errors of at most the unit u. To first order the
// logits are wrong by sqrt(n) u of their size, and the weights, rounded again before each op, double the square. A loss, the difference of
// log sum exp and a logit, has the error of two logits. If the bound is small against the learned difference, bf16 learned the same. At
// five times the learning rate training becomes chaotic: any difference grows.
TEST_CASE("training in bf16: the losses are those of f32 within the rounding of weights and activations") {
  on_training_devices([](Device device) {
    if (device == Device::cuda_emulated && !test::everything()) return;
    for (Preset preset : {Preset::gpt, Preset::msa}) {
      CAPTURE(std::string(name_of(preset)));
      const TrainConfig config = cut(1, 4, false);
      const Trained wide = trained(config, wider(preset), Dtype::f32, device, 100),
                    narrow = trained(config, wider(preset), Dtype::bf16, device, 100);
      const Tape tape;
      const Batch first = crops_of(config, 8).next();
      const Tensor logits = wide.model.logits(to(first, device));
      const auto roundings = static_cast<double>(tape.nodes().size());  // each op rounds its result
      const double bound = 2 * std::sqrt(2.0 * roundings) * unit(Dtype::bf16) * size_of_logits(logits);
      double worst = 0;
      for (size_t i = 0; i < wide.losses.size(); ++i) raise_to(worst, std::abs(narrow.losses[i] - wide.losses[i]));
      CAPTURE(worst);
      CHECK(worst <= bound);
      CHECK(worst > 0);  // the run was bf16
      CHECK(bound < (wide.losses.front() - wide.losses.back()) / 10);
    }
  });
}

TEST_CASE("training in bf16: the master weights start as drawn, and rounding them gives the values") {
  on_every_device([](Device device) {
    Model drawn(wider(Preset::gpt)), placed(wider(Preset::gpt));
    drawn.init(3), placed.init(3);
    placed.place_for_training(Dtype::bf16, device);
    std::vector<Parameter*> from = drawn.parameters(), to = placed.parameters();
    int rounded = 0;
    for (size_t i = 0; i < from.size(); ++i) {
      if (!from[i]->value) continue;
      CHECK(same_bits(to[i]->master, from[i]->value));
      CHECK(same_bits(to[i]->value, convert(from[i]->value, Dtype::bf16)));
      CHECK(to[i]->value.device() == device);
      rounded += !same_bits(convert(to[i]->value, Dtype::f32), from[i]->value);
    }
    CHECK(rounded > 5);
    placed.place(Dtype::bf16, device);
    for (Parameter* p : to) CHECK(!p->master);
  });
}

TEST_CASE("parameter groups: the numbered names at the start of a path, else the first name") {
  for (const auto& [path, group] : {std::pair("tok.weight", "tok"), {"ln_f.bias", "ln_f"}, {"weight", "weight"}, {"", ""},
           {"blocks.0.mixer.qkv.weight", "blocks.0"}, {"blocks.12.fc.bias", "blocks.12"}, {"blocks.3.mixer.down.4.weight", "blocks.3"},
           {"stack.4.blocks.11.ln1.weight", "stack.4.blocks.11"}, {"stack.4.pos.weight", "stack.4"}, {"down.16.weight", "down.16"},
           {"agg.ln_q.2.weight", "agg"}, {"a.1b.c", "a"}, {"a.1", "a"}})
    CHECK(group_of(path) == group);
}

TEST_CASE("train step: norms of groups are those of the gradients before clipping and of the weights after the update") {
  on_training_devices([](Device device) {
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
      Model model(small(0), 3), plain(small(0), 3);
      for (Model* const each : {&model, &plain}) {
        each->place_for_training(dtype, device);
        freeze_parameters(*each, {"pos", "blocks.1.fc"});
      }
      const auto group_by_hand = [](const std::string& path) { return path.substr(0, path.starts_with("blocks.") ? 8 : path.find('.')); };
      const auto add_square = [](double& sum, const Tensor& t) {
        for (const double x : values_of(t)) sum += x * x;
      };
      Optimizer optimizer(model.trained_parameters(), {}), other(plain.trained_parameters(), {});
      TrainStep watched(model, optimizer, device, {.clip = 0.01, .norms_every = 2}), step(plain, other, device, {.clip = 0.01});
      const std::vector<Batch> batches = six_rows(3, device);
      CHECK(watched.run(batches, 0, 1e-2).norms.empty());
      CHECK(step.run(batches, 0, 1e-2).norms.empty());
      std::map<std::string, double> squares;
      forward_backward(model, batches, 1);
      model.each_parameter([&](const std::string& path, Parameter& p) {
        if (p.grad) add_square(squares["grad_norm." + group_by_hand(path)], p.grad);
        p.grad = {};
      });
      const NamedNumbers norms = watched.run(batches, 1, 1e-2).norms;
      step.run(batches, 1, 1e-2);
      model.each_parameter(
          [&](const std::string& path, Parameter& p) { add_square(squares["weight_norm." + group_by_hand(path)], p.unrounded()); });
      REQUIRE(norms.size() == squares.size());
      for (const auto& [name, norm] : norms) CHECK(std::abs(norm / std::sqrt(squares.at(name)) - 1) < 1e-12);
      CHECK(squares.contains("weight_norm.pos"));
      CHECK(!squares.contains("grad_norm.pos"));
      for (size_t i = 0; i < model.parameters().size(); ++i)
        CHECK(same_bits(model.parameters()[i]->unrounded(), plain.parameters()[i]->unrounded()));
    }
  });
  Model model(small(0), 3);
  Optimizer optimizer(model.parameters(), {});
  CHECK(message_of([&] { TrainStep(model, optimizer, Device::cuda_emulated, {.cuda_graph = true, .norms_every = 1}); }) ==
        "norms_every: is not supported with cuda_graph");
}
