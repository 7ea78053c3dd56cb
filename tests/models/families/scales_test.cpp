// Multi-scale families: the cells of coarse models, and the scales of top-down models that run and are scored.
#include "models/families/topdown.h"
#include "models/inference/evaluation.h"
#include "models/inference/sampling.h"
#include "models/layers/visit.h"
#include "tests/models/model_cases.h"
#include "tests/models/training/forward_backward.h"

using namespace ricci;

namespace {

std::vector<Variant> coarse_variants() {
  std::vector<Variant> all = variants_of(family_of<Coarse>);
  all.push_back(llama_of(family_of<Coarse>, true));
  return all;
}

LanguageModel<TopDown> model_of(const std::vector<int64_t>& scales, const TopDownConfig& config, int64_t ctx) {
  ModelKeys keys;
  keys.vocab = 11;
  keys.ctx = ctx;
  keys.d = 8;
  keys.scales.scales = scales;
  keys.stack_layers.layers = {1};
  LanguageModel<TopDown> model(keys, TopDown(keys, config));
  each_parameter(model, [](const std::string& path, Parameter& p) { p.path = path, draw(p, 1); });
  return model;
}

}  // namespace

TEST_CASE("multiple scales: micro-batches have the loss and gradient of the whole, also if the loss leaves positions out") {
  ModelConfig late = small_scales(family_of<TopDown>), bags = late;
  late.settings<TopDown>().loss_from = LossFrom::first_full, bags.settings<TopDown>().bag_weights = {0.5};
  for (const Variant& v : {Variant{"topdown", late}, {"bags of words", bags}, {"coarse", small_scales(family_of<Coarse>)}}) {
    CAPTURE(v.name);
    const Tensor tokens = ids(4, 19, Device::cpu), targets = ids(4, 19, Device::cpu, 3);
    for (int64_t i = 0; i < targets.size() && v.name != "bags of words"; ++i)  // a bag is of all tokens in its window
      if (const int64_t b = i / 19, t = i % 19; t < 3 * b || t >= 19 - 4 * b) targets.data<int64_t>()[i] = -1;
    double losses[2];
    std::vector<Tensor> gradients[2];
    for (const bool parted : {false, true}) {
      std::vector<Batch> micro_batches;
      for (int64_t b = 0; b < 4; b += parted ? 1 : 4)
        micro_batches.push_back(make_batch(tokens.rows(b, parted ? 1 : 4), targets.rows(b, parted ? 1 : 4)));
      Model model = built(v.config, Device::cpu);
      losses[parted] = forward_backward(model, micro_batches);
      gradients[parted] = taken_gradients(model);
    }
    CHECK(losses[0] > 1);
    CHECK(losses[0] == doctest::Approx(losses[1]).epsilon(1e-13));
    for (size_t i = 0; i < gradients[0].size(); ++i) CHECK(difference(gradients[1][i], gradients[0][i]) < 1e-11);
  }
}

TEST_CASE("coarse: decoding gives the logits of the full forward behind every cell, whatever is read at once") {
  for (Device device : {Device::cpu, Device::cuda_emulated})
    for (const Variant& v : coarse_variants()) {
      if (!runs_on(device, v)) continue;
      CAPTURE(v.name);
      const Model model = built(v.config, device);
      const Tensor tokens = ids(1, 20, device), full = model.logits({tokens});
      REQUIRE(full.shape() == Shape{1, 6, 11});
      for (int64_t at_once : {1, 2, 3, 7, 20}) {
        const auto state = model.init_state(1);
        for (int64_t t = 0; t < 20; t += at_once) {
          const int64_t count = std::min<int64_t>(at_once, 20 - t), cells = (t + count) / 3;
          const Tensor next = tokens.reshaped({20}).rows(t, count).reshaped({1, count});
          if (cells) CHECK(difference(model.advance(next, *state), full.reshaped({6, 11}).rows(cells - 1, 1)) < 1e-13);
          else
            CHECK(message_of([&] { model.advance(next, *state); }) ==
                  format_message("model: no cell of 3 tokens is complete after {} tokens", {t + count}));
        }
      }
    }
}

TEST_CASE("coarse: tokens after the end of the text do not count") {
  const Model model = built(small_scales(family_of<Coarse>), Device::cpu);
  const Tensor tokens = ids(2, 19, Device::cpu), targets = ids(2, 19, Device::cpu);
  CHECK(model.counted(make_batch(tokens, targets)) == 30);
  for (int64_t t = 10; t < 19; ++t) targets.data<int64_t>()[19 + t] = -1;  // the text of the second sequence has 11 tokens
  CHECK(model.counted(make_batch(tokens, targets)) == 15 + 6);
  const double loss = item(model.loss({tokens, targets}));
  CHECK(loss == item(model.loss({tokens, {}, ids_of({19, 11}, {2}, Device::cpu)})));
  const auto loss_with_other = [&](int64_t t) {
    const Tensor others = ids(2, 19, Device::cpu);
    int64_t& id = others.data<int64_t>()[19 + t];
    id = (id + 1) % 11;
    return item(model.loss({others, targets}));
  };
  for (int64_t t = 0; t < 19; ++t) CHECK((loss_with_other(t) == loss) == (t >= 9));  // the third cell is the last complete one
  CHECK(message_of([&] {
    model.loss({tokens, ids(2, 18, Device::cpu)});
  }) == "model: targets are [2 18], expected the shape of the ids [2 19]");
}

TEST_CASE("coarse: no targets are needed, no text is written") {
  const Model model = built(small_scales(family_of<Coarse>), Device::cpu);
  const double loss = item(model.loss({ids(2, 19, Device::cpu)}));
  CHECK(loss == item(model.loss({ids(2, 19, Device::cpu), ids(2, 19, Device::cpu, 4)})));
  CHECK(loss > 1);
  CHECK(item(model.loss({ids(2, 5, Device::cpu)})) == 0);  // no cell is followed by a complete one
  CHECK(model.logits({ids(2, 2, Device::cpu)}).shape() == Shape{2, 0, 11});
  const std::vector<int64_t> prompt{1};
  CHECK(message_of([&] { generate(model, prompt, 1, {}, Device::cpu, [](int64_t) { return true; }); }) ==
        "generate: a coarse model cannot generate text; it predicts the next tokens without their order");
}

TEST_CASE("topdown: the first position that reads every scale") {
  const auto first = [](const std::vector<int64_t>& scales, Shift shift, LossFrom from) {
    return model_of(scales, {shift, from, {}}, 64).body.scored_from();
  };
  CHECK(first({1, 4, 16, 64}, Shift::tight, LossFrom::first_full) == 63);
  CHECK(first({1, 4, 16, 64}, Shift::block, LossFrom::first_full) == 84);
  CHECK(first({1, 2, 6}, Shift::tight, LossFrom::first_full) == 5);
  CHECK(first({1}, Shift::tight, LossFrom::first_full) == 0);
  CHECK(first({1, 4, 16, 64}, Shift::block, LossFrom::start) == 0);
}

TEST_CASE("topdown: the loss from there on is that of the targets there") {
  for (const Variant& v : variants_of(family_of<TopDown>)) {
    CAPTURE(v.name);
    ModelConfig later = v.config;
    later.settings<TopDown>().loss_from = LossFrom::first_full;
    const int64_t first = v.config.settings<TopDown>().shift == Shift::tight ? 5 : 8;
    Tensor targets = ids(2, 19, Device::cpu, 3);
    const double whole = item(built(later, Device::cpu).loss({ids(2, 19, Device::cpu), targets}));
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t t = 0; t < first; ++t) targets.data<int64_t>()[b * 19 + t] = -1;
    CHECK(whole == doctest::Approx(item(built(v.config, Device::cpu).loss({ids(2, 19, Device::cpu), targets}))).epsilon(1e-13));
    // A sequence too short for any position to depend on every scale.
    Model model = built(later, Device::cpu);
    Tape tape;
    const Tensor loss = model.loss({ids(2, 4, Device::cpu), ids(2, 4, Device::cpu)});
    tape.backward(loss);
    CHECK(item(loss) == 0);
  }
}

TEST_CASE("topdown: a scale of cells of s tokens runs once per s tokens") {
  const LanguageModel<TopDown> model = model_of({1, 2, 4, 8}, {}, 32);
  auto state = model.init_state(1);
  for (int64_t t = 0; t < 32; ++t) {
    model.advance(ids(1, 1, Device::cpu), state);
    for (size_t i = 0; i < 4; ++i) CHECK(state.body.scales[i].stack.position == (t + 1) / (int64_t{1} << i));
    // The cache keeps only rows that a finer cell still needs.
    for (size_t i = 1; i < 4; ++i)
      if (const Tensor& z = state.body.scales[i].up.rows_bmx) CHECK(z.shape()[1] == 1);
  }
}

TEST_CASE("topdown: bag_weights add the loss of the coarse scales to the training loss, and nothing else changes") {
  ModelConfig config = small_scales(family_of<TopDown>), weighted = config;
  weighted.settings<TopDown>().bag_weights = {0.5, 2};
  const Batch inputs = make_batch(ids(2, 19, Device::cpu), ids(2, 19, Device::cpu, 3));
  const Model plain = built(config, Device::cpu), with_bags = built(weighted, Device::cpu);
  const auto loss_with = [&](std::vector<double> weights) {
    weighted.settings<TopDown>().bag_weights = std::move(weights);
    return item(built(weighted, Device::cpu).loss(inputs));
  };
  const double text = item(plain.loss(inputs)), of_2 = loss_with({1, 0}) - text, of_6 = loss_with({0, 1}) - text;
  CHECK(of_2 > 1);
  CHECK(of_6 > 1);
  CHECK(item(with_bags.loss(inputs)) == doctest::Approx(text + 0.5 * of_2 + 2 * of_6).epsilon(1e-13));
  CHECK(loss_with({3}) == doctest::Approx(text + 3 * of_2 + 3 * of_6).epsilon(1e-13));
  CHECK(loss_with({0, 0}) == text);
  // Evaluations and logits include only the text.
  CHECK(item(with_bags.text_loss(inputs)) == text);
  CHECK(item(plain.text_loss(inputs)) == text);
  CHECK(same_bits(with_bags.logits(inputs), plain.logits(inputs)));
  CHECK(evaluate(with_bags, 1, [&](int64_t) { return inputs; }).nats_per_token == text);
}

TEST_CASE("topdown: the gradient of weighted bags of words is that of central differences") {
  ModelConfig config = small_scales(family_of<TopDown>);
  config.settings<TopDown>().bag_weights = {0.5, 2};
  const Batch inputs{ids(2, 14, Device::cpu), ids(2, 14, Device::cpu, 3)};
  Model model = built(config, Device::cpu);
  {
    Tape tape;
    tape.backward(model.loss(inputs));
  }
  constexpr double kStep = 1e-5;
  model.each_parameter([&](const std::string& path, Parameter& p) {
    CAPTURE(path);
    double largest = 0;
    for (int64_t i = 0; i < p.value.size(); i += 1 + p.value.size() / 7) {
      double* const w = p.value.data<double>() + i;
      const double before = *w, slope = item(p.grad, i);
      *w = before + kStep;
      const double above = item(model.loss(inputs));
      *w = before - kStep;
      const double below = item(model.loss(inputs));
      *w = before;
      CHECK(slope == doctest::Approx((above - below) / (2 * kStep)).epsilon(1e-6).scale(0.01));
    }
    for (int64_t i = 0; i < p.grad.size(); ++i) largest = std::max(largest, std::abs(item(p.grad, i)));
    CHECK(largest > 0);
  });
}
