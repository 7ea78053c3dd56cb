#include "models/training/train_step.h"

#include <map>

#include "cuda/verbs/arithmetic.h"
#include "models/layers/layers.h"
#include "models/training/optimizer.h"
#include "tests/models/training/small_training.h"
#include "tests/ops/values.h"

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

struct Outcome {
  std::map<std::string, Tensor> values;
  std::vector<double> losses;
};

Outcome trained(const TrainConfig& config, double dropout, Device device, int64_t steps) {
  Model model = made(small(dropout), Dtype::f32, device);
  Optimizer optimizer(model.parameters(), {.weight_decay = 0.1});
  const TrainStep train_step(model, device, config.seed);
  const RandomCrops crops(small_text(), layout_of(config).sequences, kContext, config.seed);
  Outcome outcome;
  for (int64_t step = 0; step < steps; ++step) {
    outcome.losses.push_back(train_step.forward_backward(micro_batches_of(crops, config, step, device), step));
    optimizer.step(1e-3);
  }
  model.each_parameter([&](const std::string& path, Parameter& p) { outcome.values[path] = p.value; });
  return outcome;
}

// One batch with some targets missing, and the same rows as parts of `rows` rows.
Batch whole_batch() {
  Batch batch{6, kContext, {}, {}, 0};
  for (int64_t i = 0; i < 6 * kContext; ++i) {
    batch.ids_bc.push_back(i * 5 % kVocabulary);
    const bool counts = i / kContext != 2 && i % 3 != i / kContext % 3;  // row 2 has no target at all
    batch.targets_bc.push_back(counts ? i * 3 % kVocabulary : kNoTarget);
    batch.scored += counts;
  }
  return batch;
}

std::vector<Batch> parts_of(const Batch& whole, int64_t rows) {
  std::vector<Batch> parts;
  for (int64_t b = 0; b < whole.batch; b += rows) {
    const auto begin = b * kContext, end = (b + rows) * kContext;
    Batch part{rows, kContext, {whole.ids_bc.begin() + begin, whole.ids_bc.begin() + end},
        {whole.targets_bc.begin() + begin, whole.targets_bc.begin() + end}, 0};
    for (int64_t target : part.targets_bc) part.scored += target != kNoTarget;
    parts.push_back(part);
  }
  return parts;
}

// The gradients of the model are the expected ones, none of them zero. The first model of several gives them.
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

}  // namespace

TEST_CASE("train step: micro-batches have the loss and gradient of the whole, -1 targets and dropout included") {
  on_training_devices([](Device device) {
    for (Preset preset : {Preset::gpt, Preset::msa}) {
      if (device == Device::cuda_emulated && preset == Preset::msa) continue;  // slow, and nothing new
      std::map<std::string, Values> expected;
      double expected_loss = 0;
      for (int64_t rows : {6, 3, 2, 1}) {
        CAPTURE(rows);
        Model model = made(small(0.3, preset), Dtype::f64, device);
        const double loss = TrainStep(model, device, 8).forward_backward(on_device(parts_of(whole_batch(), rows), device), 4);
        if (rows == 6) expected_loss = loss;
        CHECK(loss == doctest::Approx(expected_loss).epsilon(1e-12));
        check_gradients(model, expected);
      }
    }
  });
}

TEST_CASE("train step: bag losses of whole windows are the same in micro-batches") {
  Batch batch = whole_batch();
  for (size_t i = 0; i < batch.targets_bc.size(); ++i) batch.targets_bc[i] = batch.ids_bc[i] * 3 % kVocabulary;
  std::map<std::string, Values> expected;
  double without = 0, expected_loss = 0;
  for (const auto& [weight, rows] : {std::pair{0.0, 6}, {0.5, 6}, {0.5, 2}, {0.5, 1}}) {
    const int64_t micro_batch = rows;
    CAPTURE(micro_batch);
    ModelConfig config = small(0.3);
    config.family = family_of<TopDown>, config.scales.scales = {1, 2}, config.stack_layers.layers = {1, 1},
    config.settings<TopDown>().bag_weights = {weight};
    Model model = made(config, Dtype::f64, Device::cpu);
    const double loss = TrainStep(model, Device::cpu, 8).forward_backward(on_device(parts_of(batch, rows), Device::cpu), 4);
    if (weight == 0) {
      without = loss;
      continue;
    }
    if (rows == 6) expected_loss = loss;
    CHECK(loss > without + 0.1);
    CHECK(loss == doctest::Approx(expected_loss).epsilon(1e-12));
    check_gradients(model, expected);
  }
}

TEST_CASE("train step: dropout depends on seed and step") {
  Model model = made(small(0.3), Dtype::f64, Device::cpu);
  const auto loss = [&](uint64_t seed, int64_t step) {
    return TrainStep(model, Device::cpu, seed).forward_backward(on_device({whole_batch()}, Device::cpu), step);
  };
  CHECK(loss(8, 4) == loss(8, 4));
  CHECK(loss(8, 4) != loss(8, 5));
  CHECK(loss(8, 4) != loss(9, 4));
}

TEST_CASE("train step: a step without any target has loss 0 and no gradient") {
  Model model = made(small(0), Dtype::f32, Device::cpu);
  Batch batch = whole_batch();
  batch.targets_bc.assign(batch.targets_bc.size(), kNoTarget), batch.scored = 0;
  CHECK(TrainStep(model, Device::cpu, 1).forward_backward(on_device({batch, batch}, Device::cpu), 0) == 0);
  for (const Parameter* p : model.parameters())
    for (double g : values_of(p->grad)) CHECK(g == 0);
}

TEST_CASE("train step: 1 x 8, 2 x 4 and 4 x 2 agree to 1e-6, and in all bits when batch_invariant") {
  on_training_devices([](Device device) {
    const int64_t steps = device == Device::cuda_emulated ? 2 : 10;  // a step there takes a second
    for (bool invariant : {false, true}) {
      for (double dropout : {0.0, 0.2}) {
        CAPTURE(invariant);
        CAPTURE(dropout);
        if (device == Device::cuda_emulated && dropout == 0) continue;
        const Outcome one = trained(cut(1, 8, invariant), dropout, device, steps);
        if (steps == 10 && dropout == 0) CHECK(one.losses[9] < one.losses[0]);
        for (const auto& [accumulation, batch] : {std::pair{2, 4}, {4, 2}}) {
          const Outcome other = trained(cut(accumulation, batch, invariant), dropout, device, steps);
          for (const auto& [each_path, value] : one.values) {
            const std::string& path = each_path;
            CAPTURE(path);
            if (invariant) CHECK(same_bits(other.values.at(path), value));
          }
          for (size_t i = 0; i < one.losses.size(); ++i)
            CHECK(other.losses[i] == doctest::Approx(one.losses[i]).epsilon(invariant ? 1e-15 : 1e-6));
        }
      }
    }
  });
}

TEST_CASE("train step: recomputed blocks change no bit, dropout included, and keep less") {
  on_training_devices([](Device device) {
    for (Preset preset : {Preset::gpt, Preset::msa}) {
      std::vector<Tensor> gradients;
      double loss = 0;
      for (bool recompute : {false, true}) {
        Model model = made(small(0.3, preset), Dtype::f32, device);
        model.recompute_blocks(recompute);
        const double got = TrainStep(model, device, 8).forward_backward(on_device(parts_of(whole_batch(), 3), device), 4);
        if (!recompute) loss = got;
        CHECK(got == loss);
        size_t i = 0;
        model.each_parameter([&](const std::string& path, Parameter& p) {
          CAPTURE(path);
          if (!recompute) return gradients.push_back(p.grad);
          CHECK(same_bits(p.grad, gradients[i++]));
        });
      }
    }
  });
}

TEST_CASE("train step: the tape keeps less with recomputed blocks") {
  for (Preset preset : {Preset::gpt, Preset::msa}) {
    Model model = made(small(0.3, preset), Dtype::f32, Device::cpu);
    const auto kept = [&](bool recompute) {
      model.recompute_blocks(recompute);
      const Training training;
      const Tape tape;
      const Tensor y = model.logits({ids_of(whole_batch().ids_bc, {6, kContext}, Device::cpu)});
      return tape.kept_bytes();
    };
    CHECK(kept(true) < kept(false) / 3);
  }
}

TEST_CASE("train step: the op that made the first NaN is named") {
  Model model = made(small(0), Dtype::f32, Device::cpu);
  model.each_parameter([&](const std::string& path, Parameter& p) {
    if (path == "blocks.1.fc.weight") fill(p.value, NAN);
  });
  const TrainStep train_step(model, Device::cpu, 1);
  const double loss = train_step.forward_backward(on_device({whole_batch()}, Device::cpu), 2);
  CHECK(std::isnan(loss));
  const std::string message = message_of([&] { train_step.explain_nonfinite(on_device({whole_batch()}, Device::cpu), 2, loss); });
  CHECK(message.find("step 3: the loss is nan: linear (") == 0);
  CHECK(message.find("models/layers/block.h") != message.npos);
}

TEST_CASE("train step: a NaN in a later part is not blamed on an earlier one, whose gradients it has reached") {
  ModelConfig config = small(0);
  config.output.tie = false;
  Model model = made(config, Dtype::f32, Device::cpu);
  model.each_parameter([&](const std::string& path, Parameter& p) {
    if (path == "tok.weight") fill(p.value.rows(kVocabulary - 1, 1), NAN);
  });
  Batch sound = whole_batch(), spoilt = sound;
  for (int64_t& id : sound.ids_bc) id %= kVocabulary - 1;
  spoilt.ids_bc[3] = kVocabulary - 1;
  const TrainStep train_step(model, Device::cpu, 1);
  const double loss = train_step.forward_backward(on_device({sound, spoilt}, Device::cpu), 2);
  CHECK(std::isnan(loss));
  const std::string message = message_of([&] { train_step.explain_nonfinite(on_device({sound, spoilt}, Device::cpu), 2, loss); });
  CHECK_MESSAGE(message.find("step 3: the loss is nan: embedding (") == 0, message);
}

TEST_CASE("train step: beside f32 master weights gradients are f32, summed over micro-batches and never rounded to bf16") {
  constexpr int64_t kMicroBatches = 32;  // a power of 2: the weight of one changes no digit of its gradient
  const RandomCrops crops(small_text(), 1, kContext, 5);
  const TrainConfig config = cut(kMicroBatches, 1, false);
  const std::vector<MicroBatch> micro_batches = micro_batches_of(crops, config, 0, Device::cpu);
  Model model(small(0));
  model.init(3);
  model.place_for_training(Dtype::bf16, Device::cpu);
  const TrainStep train_step(model, Device::cpu, 1);
  std::map<std::string, Values> sum, sizes;
  for (const MicroBatch& one : micro_batches) {
    train_step.forward_backward({one}, 0);
    model.each_parameter([&](const std::string& path, Parameter& p) {
      const Values terms = values_of(p.grad);
      sum[path].resize(terms.size()), sizes[path].resize(terms.size());
      for (size_t i = 0; i < terms.size(); ++i)
        sum[path][i] += terms[i] / kMicroBatches, sizes[path][i] += std::abs(terms[i]) / kMicroBatches;
      p.grad = {};
    });
  }
  train_step.forward_backward(micro_batches, 0);
  model.each_parameter([&](const std::string& path, Parameter& p) {
    CAPTURE(path);
    CHECK(p.grad.dtype() == Dtype::f32);
    const Values got = values_of(p.grad);
    bool finer_than_bf16 = false;
    for (size_t i = 0; i < got.size(); ++i) {
      CHECK(std::abs(got[i] - sum[path][i]) <= kMicroBatches * unit(Dtype::f32) * sizes[path][i]);
      finer_than_bf16 |= static_cast<double>(float(bf16(static_cast<float>(got[i])))) != got[i];
    }
    CHECK(finer_than_bf16);
  });
}

TEST_CASE("train step: a gradient that is not finite is told from such a loss") {
  Model model = made(small(0), Dtype::f32, Device::cpu);
  // ln2 gives 0, so nothing of the large weights is in the forward; the gradient meets them twice.
  model.each_parameter([&](const std::string& path, Parameter& p) {
    if (path.starts_with("blocks.0.ln2") || path == "blocks.0.fc.bias") fill(p.value, 0);
    if (path == "blocks.0.fc.weight" || path == "blocks.0.fc_out.weight") fill(p.value, 1e38);
  });
  const TrainStep train_step(model, Device::cpu, 1);
  const double loss = train_step.forward_backward(on_device({whole_batch()}, Device::cpu), 2);
  CHECK(std::isfinite(loss));
  const std::string message = message_of([&] { train_step.explain_nonfinite(on_device({whole_batch()}, Device::cpu), 2, loss); });
  CHECK_MESSAGE(message.find("step 3: the gradient is not finite: linear (") == 0, message);
  CHECK_MESSAGE(message.find("of a gradient it returned are NaN or infinite") != message.npos, message);
}
