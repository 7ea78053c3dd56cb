// Every mixer of the list must, whatever it computes: decode as it reads, hear from no later position, leave padding
// alone, and train on every device.
#include "models/layers/layers.h"
#include "models/mixers/mixers.h"
#include "ops/shapes/shape_ops.h"
#include "tests/models/model_cases.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

constexpr int64_t kVocabulary = 11, kContext = 13;

ModelConfig small(MixerKind mixer, Preset preset = Preset::gpt) {
  ModelConfig c;
  c.mixer = mixer, c.preset = preset;
  apply_preset(c);
  c.vocab = kVocabulary, c.ctx = kContext, c.d = 12, c.layers = 2, c.block.ff = 20;
  resolve(c);
  return c;
}

void with_every_mixer(const std::function<void(MixerKind)>& f) {
  for (size_t i = 0; i < choices(MixerKind()).size(); ++i) {
    const std::string mixer = choices(MixerKind())[i];
    CAPTURE(mixer);
    f(static_cast<MixerKind>(i));
  }
}

}  // namespace

TEST_CASE("every mixer: decoding with a cache gives the logits of the full forward at every position") {
  with_every_mixer([](MixerKind mixer) {
    for (Preset preset : {Preset::gpt, Preset::msa}) check_decoding(small(mixer, preset), Device::cpu);
    ModelConfig shorter = small(mixer);
    shorter.ctx = 8;
    check_decoding(shorter, Device::cuda_emulated);
  });
}

TEST_CASE("every mixer: after an error the cache is at the position where it was") {
  const MixerShape shape{.d = 12, .ctx = 7};
  const auto check_mixer = [&](auto mixer) {
    each_parameter(mixer, [](const std::string&, Parameter& p) { fill(p.value, 0.1); });
    auto cache = mixer.make_cache(2, Dtype::f32, Device::cpu);
    mixer(zeros({2, 3, 12}, Dtype::f32, Device::cpu), cache);
    CHECK(cache.position == 3);
    CHECK(message_of([&] { mixer(zeros({1, 2, 12}, Dtype::f32, Device::cpu), cache); }) != "no error");  // another batch
    CHECK(cache.position == 3);
  };
  check_mixer(Sdp(shape, {})), check_mixer(Metric(shape, {})), check_mixer(Quad(shape, {})), check_mixer(QuadFull(shape, {}));
  check_mixer(Dispatcher(shape, {}));
}

TEST_CASE("a cache takes the room of the positions that are read, and doubles") {
  const int64_t length = 2053;
  const auto check_mixer = [&](auto mixer, bool one_tensor) {
    draw_parameters(mixer, 1);
    each_parameter(mixer, [](const std::string&, Parameter& p) { p.value = convert(p.value, Dtype::f64); });
    const Tensor x_bcd = drawn({1, length, 4}, Dtype::f64, Device::cpu, 7), whole = mixer(x_bcd, Tensor());
    auto cache = mixer.make_cache(1, Dtype::f64, Device::cpu);
    CHECK(cache.k_bnsk.shape()[2] == 2048);
    int64_t first = 0;
    for (int64_t count : {2047, 3, 1, 2}) {
      const Tensor y_bcd = mixer(slice(x_bcd, 1, first, count), cache);
      CHECK(difference(y_bcd, slice(whole, 1, first, count)) < 1e-12);
      first += count;
    }
    CHECK(cache.k_bnsk.shape()[2] == 4096);
    CHECK((cache.k_bnsk.raw() == cache.v_bnsk.raw()) == one_tensor);
  };
  const MixerShape shape{.d = 4, .ctx = 131'072};
  check_mixer(Sdp(shape, {{.heads = 2}, 1}), false), check_mixer(POnly(shape, {{.heads = 2}}), true);
  CHECK(Sdp(shape, {{.heads = 2, .window = 5}}).make_cache(1, Dtype::f64, Device::cpu).k_bnsk.shape()[2] == 10);
}

TEST_CASE("every mixer: no position hears from a later one, and each hears its own") {
  with_every_mixer([](MixerKind mixer) {
    const Model model = built(small(mixer), Device::cpu);
    const Tensor before = model.logits({ids(1, kContext, Device::cpu)});
    for (int64_t at = 0; at < kContext; ++at) {
      const Tensor after = model.logits({ids(1, kContext, Device::cpu, at)});
      for (int64_t i = 0; i < at * kVocabulary; ++i) CHECK(item(before, i) == item(after, i));
      bool changed = false;
      for (int64_t i = at * kVocabulary; i < (at + 1) * kVocabulary; ++i) changed |= item(before, i) != item(after, i);
      CHECK(changed);
    }
  });
}

TEST_CASE("every mixer: a padded sequence has the logits of the short one, whatever stands in the padding") {
  with_every_mixer([](MixerKind mixer) {
    for (bool causal : {true, false}) {
      ModelConfig config = small(mixer);
      config.causal = causal;
      if (const std::string refusal = message_of([&] { check(config); }); refusal != "no error") {
        CHECK(refusal == "model.causal: false, but the dispatcher reads earlier positions only");
        continue;
      }
      const Model model = built(config, Device::cpu);
      const Tensor lengths_b = ids_of({9, 5}, {2}, Device::cpu), tokens = ids(2, 9, Device::cpu);
      const Tensor padded = model.logits({.ids_bc = tokens, .lengths_b = lengths_b});
      const Tensor alone = model.logits({tokens.rows(1, 1).reshaped({9}).rows(0, 5).reshaped({1, 5})});
      const Tensor others = model.logits({.ids_bc = ids(2, 9, Device::cpu, 7), .lengths_b = lengths_b});
      for (int64_t i = 0; i < 5 * kVocabulary; ++i) {
        CHECK(std::abs(item(padded, 9 * kVocabulary + i) - item(alone, i)) < 1e-13);
        CHECK(item(others, 9 * kVocabulary + i) == item(padded, 9 * kVocabulary + i));
      }
    }
  });
}

TEST_CASE("every mixer: devices agree on the loss and on every gradient") {
  with_every_mixer([](MixerKind mixer) {
    Values expected;
    on_every_device([&](Device device) {
      Model model = built(small(mixer), device);
      Tape tape;
      const Tensor loss = model.loss({ids(2, 7, device), ids(2, 7, device, 3)});
      tape.backward(loss);
      Values got{item(loss)};  // one list: some gradients are zero but for rounding, such as a bias' in front of avgpool
      for (const Parameter* p : model.parameters())
        for (double g : values_of(p->grad)) got.push_back(g);
      if (device == Device::cpu) expected = got;
      CHECK(error_of(tensor_of(got, {static_cast<int64_t>(got.size())}, Dtype::f64, Device::cpu), expected) < 1e-12);
    });
  });
}
