// Training in bf16: it follows training in f32, on every device, and nothing is lost by rounding the weights.
#include <cmath>

#include "apps/run/folder/run_folder.h"
#include "models/training/checkpoint.h"
#include "models/training/optimizer.h"
#include "models/training/train_step.h"
#include "tests/data/files.h"
#include "tests/models/training/small_training.h"
#include "tests/ops/values.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

constexpr int64_t kContext = 8, kSteps = 100;

ModelConfig small(Preset preset) { return small_model({.preset = preset, .context = kContext, .d = 16, .heads = 2}); }

struct Trained {
  std::vector<double> losses;
  double logits_size;  // root of the mean square of the last batch's logits, their mean over the vocabulary left out
  size_t roundings;    // recorded ops, each of which rounds what it returns
};

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

Trained trained(Preset preset, Dtype dtype, Device device) {
  TrainConfig config;
  config.batch = 4, config.seed = 5;
  Model model(small(preset));
  model.init(3);
  model.place_for_training(dtype, device);
  Optimizer optimizer(model.parameters(), {.weight_decay = 0.1});
  const TrainStep train_step(model, device, config.seed);
  const RandomCrops crops(small_text(), config.batch, kContext, config.seed);
  Trained out{};
  for (int64_t step = 0; step < kSteps; ++step) {
    out.losses.push_back(train_step.forward_backward(micro_batches_of(crops, config, step, device), step));
    CHECK(std::isfinite(optimizer.gradient_norm()));
    optimizer.step(2e-3);
  }
  Tape tape;
  const Tensor logits = model.logits({ids_of(crops.at(0, 0).ids_bc, {config.batch, kContext}, device)});
  out.logits_size = size_of_logits(logits), out.roundings = tape.op_names().size();
  return out;
}

}  // namespace

// Each of the n ops between ids and loss rounds its results, with relative errors of at most the unit u and independent of
// each other: to first order the logits are wrong by sqrt(n) u of their size, and the weights, rounded once more in front of
// each op, double the square. A loss, the difference of log sum exp and a logit, takes the error of two logits. Where the
// bound is small against what was learned, this says that bf16 learned the same. At five times the learning rate training
// becomes chaotic: any difference grows.
TEST_CASE("training in bf16: the losses are those of f32 within the rounding of weights and activations") {
  on_training_devices([](Device device) {
    for (Preset preset : {Preset::gpt, Preset::msa}) {
      CAPTURE(std::string(name_of(preset)));
      const Trained wide = trained(preset, Dtype::f32, device), narrow = trained(preset, Dtype::bf16, device);
      const double bound = 2 * std::sqrt(2.0 * static_cast<double>(wide.roundings)) * unit(Dtype::bf16) * wide.logits_size;
      double worst = 0;
      for (size_t i = 0; i < wide.losses.size(); ++i) raise_to(worst, std::abs(narrow.losses[i] - wide.losses[i]));
      CAPTURE(worst);
      CHECK(worst <= bound);
      CHECK(worst > 0);  // bf16 it was
      CHECK(bound < (wide.losses.front() - wide.losses.back()) / 10);
    }
  });
}

TEST_CASE("training in bf16: the master weights start as drawn, and rounding them gives the values") {
  on_every_device([](Device device) {
    Model drawn(small(Preset::gpt)), placed(small(Preset::gpt));
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

TEST_CASE("training in bf16: files hold the master weights, under the names of the parameters") {
  const test_data::ScratchFolder folder;
  Model model(small(Preset::gpt));
  model.init(3);
  model.place_for_training(Dtype::bf16, Device::cpu);
  Optimizer optimizer(model.parameters(), {});
  for (Parameter* p : model.parameters()) p->grad = drawn(p->value.shape(), Dtype::f32, Device::cpu, 1);
  optimizer.step(1e-3);
  save_checkpoint(folder / "a", model, optimizer, {});
  Model read(small(Preset::gpt));
  load_weights(read, folder / "a");
  std::vector<Parameter*> from = model.parameters(), to = read.parameters();
  for (size_t i = 0; i < from.size(); ++i) CHECK(same_bits(to[i]->value, from[i]->master));
}
