#include "models/families/classifier.h"

#include "models/layers/layers.h"
#include "tests/models/model_cases.h"

using namespace ricci;

namespace {

ModelConfig small(MixerKind mixer = kind_of<Sdp>) {
  ModelConfig c;
  c.family = family_of<Classifier>, c.mixer = mixer;
  apply_preset(c);
  c.vocab = 11, c.ctx = 13, c.d = 12, c.layers = 2, c.settings<Classifier>().classes = 3;
  return c;
}

}  // namespace

TEST_CASE("classifier: every position hears every other, but padding is heard by none and counts for nothing") {
  for (size_t i = 0; i < choices(MixerKind()).size(); ++i) {
    const std::string mixer = choices(MixerKind())[i];
    CAPTURE(mixer);
    const Model model = built(small(static_cast<MixerKind>(i)), Device::cpu);
    const Tensor lengths_b = ids_of({9, 5, 0}, {3}, Device::cpu), tokens = ids(3, 9, Device::cpu);
    const Tensor logits = model.logits({.ids_bc = tokens, .lengths_b = lengths_b}), full = model.logits({tokens});
    CHECK(logits.shape() == Shape{3, 3});
    const Tensor alone = model.logits({tokens.rows(1, 1).reshaped({9}).rows(0, 5).reshaped({1, 5})});
    const Tensor others = model.logits({.ids_bc = ids(3, 9, Device::cpu, 7), .lengths_b = lengths_b});
    for (int64_t k = 0; k < 3; ++k) {
      CHECK(item(logits, k) == item(full, k));
      CHECK(item(others, k) != item(logits, k));  // position 7 is real in the first sequence
      CHECK(std::abs(item(logits, 3 + k) - item(alone, k)) < 1e-13);
      CHECK(item(others, 3 + k) == item(logits, 3 + k));  // and padding in the second
      CHECK(item(logits, 6 + k) == 0);                    // a mean over no position
    }
  }
}

TEST_CASE("classifier: the loss is the mean over the sequences that have a class") {
  const Model model = built(small(), Device::cpu);
  const Tensor tokens = ids(4, 9, Device::cpu), logits = model.logits({tokens});
  double sum = 0;
  for (const auto& [b, target] : {std::pair{0, 2}, {3, 1}}) {
    double total = 0;
    for (int64_t k = 0; k < 3; ++k) total += std::exp(item(logits, b * 3 + k));
    sum += std::log(total) - item(logits, b * 3 + target);
  }
  CHECK(item(model.loss({tokens, ids_of({2, -1, -1, 1}, {4}, Device::cpu)})) == doctest::Approx(sum / 2).epsilon(1e-13));
}

TEST_CASE("classifier: messages") {
  const Model model = built(small(), Device::cpu);
  CHECK(message_of([&] {
    model.loss({ids(2, 5, Device::cpu), ids(2, 5, Device::cpu)});
  }) == "model: targets [2 5] for ids [2 5], expected one per sequence");
  CHECK(message_of([&] {
    model.loss({ids(2, 5, Device::cpu), ids_of({0, 3}, {2}, Device::cpu)});
  }) == "cross_entropy: target 3 at row 1 is outside the 3 classes");
  CHECK(message_of([&] { model.logits({ids(1, 14, Device::cpu)}); }) == "model: 14 positions, but the context it was built for is 13");
  CHECK(message_of([&] { model.init_state(1); }) == "model: a classifier does not write text");
  ModelConfig one = small();
  one.settings<Classifier>().classes = 1;
  CHECK(message_of([&] { check(one); }) == "model.classes: 1, expected 2 or more");
}

TEST_CASE("classifier: it has no mask unless causal says so") {
  ModelConfig config = small();
  CHECK_FALSE(config.causal);
  const Model free = built(config, Device::cpu);
  config.causal = true;
  const Model masked = built(config, Device::cpu);
  const Tensor tokens = ids(1, 9, Device::cpu);
  bool differ = false;
  for (int64_t k = 0; k < 3; ++k) differ |= item(free.logits({tokens}), k) != item(masked.logits({tokens}), k);
  CHECK(differ);
}
