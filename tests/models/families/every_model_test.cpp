// Every model must decode as it reads, ignore padding, have the same bits when its blocks are computed again, and agree on every device and
// in every dtype.
#include "tests/models/training/every_model.h"

#include <algorithm>

#include "core/philox.h"
#include "models/inference/sampling.h"
#include "ops/shapes/shape_ops.h"
#include "tests/models/training/forward_backward.h"
#include "tests/models/training/small_training.h"

using namespace ricci;

namespace {

// The models that predict the next token.
std::vector<Variant> writers() {
  std::vector<Variant> all = every_model();
  std::erase_if(all, [](const Variant& v) { return v.config.family == family_of<Coarse> || v.config.family == family_of<Classifier>; });
  for (Variant& v : decoder_options()) all.push_back(std::move(v));
  return all;
}

// Decoding with a cache gives the logits of the full forward at every position, for any number of positions per call.
void check_decoding(const ModelConfig& config, Device device) {
  const Model model = built(config, device);
  const int64_t batch = 2, length = config.ctx, v = config.vocab;
  const Tensor tokens = ids(batch, length, device), full_bcv = model.logits({tokens});
  const auto read = [&](int64_t first, int64_t count) { return slice(tokens, 1, first, count); };
  for (const int64_t prompt : device == Device::cpu ? std::vector<int64_t>{1, 2, 7, length} : std::vector<int64_t>{3}) {
    const auto state = model.init_state(batch);
    CHECK(difference(model.advance(read(0, prompt), *state), slice(full_bcv, 1, prompt - 1, 1)) < 1e-13);
    for (int64_t t = prompt; t < length; ++t)
      CHECK(difference(model.step(read(t, 1).reshaped({batch}), *state), slice(full_bcv, 1, t, 1).reshaped({batch, v})) < 1e-13);
  }
}

}  // namespace

TEST_CASE("every model: decoding with a cache gives the logits of the full forward at every position") {
  for (Variant& v : writers()) {
    CAPTURE(v.name);
    check_decoding(v.config, Device::cpu);
    if (!runs_on(Device::cuda_emulated, v)) continue;
    v.config.ctx = 7;
    check_decoding(v.config, Device::cuda_emulated);
  }
}

// The text is longer than the context. The next token depends on a window: the last tokens of the prompt, and its later half once it is
// full.
TEST_CASE("every model: a token comes with the logits of a full forward over its window") {
  for (Variant& v : writers()) {
    CAPTURE(v.name);
    v.config.ctx = 7;
    const Model model = built(v.config, Device::cpu);
    for (const size_t prompt : {3, 7, 12}) {
      CAPTURE(prompt);
      const std::vector<int64_t> begin{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};
      std::vector<std::vector<int64_t>> windows(
          2, {begin.begin() + static_cast<int64_t>(prompt - std::min<size_t>(prompt, 7)), begin.begin() + static_cast<int64_t>(prompt)});
      double worst = 0;
      Continuation texts(model, 2, {.seed = 4}, Device::cpu);
      texts.append(std::span(begin).first(prompt));
      texts.draw(13, [&](int64_t sample, int64_t token, std::span<const double> logits_v) {
        std::vector<int64_t>& window = windows[static_cast<size_t>(sample)];
        const Values all = values_of(model.logits({ids_of(window, {1, std::ssize(window)}, Device::cpu)}));
        const std::span<const double> last = std::span(all).last(11);
        double sum = 0;
        for (const double logit : last) sum += std::exp(logit);
        raise_to(worst, std::abs(log_probability(logits_v, token) - (last[static_cast<size_t>(token)] - std::log(sum))));
        window.push_back(token);
        if (window.size() > 7) window.erase(window.begin(), window.end() - 4);
        return true;
      });
      CHECK(worst < 1e-12);
    }
  }
}

TEST_CASE("every model: a padded sequence has the logits and the loss of the short one, whatever the padding contains") {
  std::vector<Variant> variants = writers();
  for (size_t i = 0; i < choices(MixerKind()).size(); ++i) {
    variants.push_back({std::string(choices(MixerKind())[i]) + ", not causal", small_config(static_cast<MixerKind>(i))});
    variants.back().config.causal = false;
    if (static_cast<MixerKind>(i) == kind_of<Dispatcher>) variants.pop_back();  // it rejects this variant
  }
  for (const Variant& v : variants) {
    CAPTURE(v.name);
    const Model model = built(v.config, Device::cpu);
    const int64_t length = v.config.ctx - 1, kept = length / 2 + 2;
    const auto short_one = [&](const Tensor& t) { return slice(slice(t, 1, 0, kept), 0, 1, 1); };
    const auto padding = [&](const Tensor& t) { return slice(slice(t, 1, kept, length - kept), 0, 1, 1); };
    const Tensor tokens = ids(2, length, Device::cpu), others = ids(2, length, Device::cpu, kept),
                 lengths_b = ids_of({length, kept}, {2}, Device::cpu), targets = ids(2, length, Device::cpu, 3);
    for (int64_t i = 0; i < length; ++i) targets.data<int64_t>()[i] = -1;
    for (int64_t i = length + kept; i < 2 * length; ++i) targets.data<int64_t>()[i] = -1;
    const Tensor padded = model.logits({.ids_bc = tokens, .lengths_b = lengths_b}), full = model.logits({tokens});
    CHECK(same_bits(slice(padded, 0, 0, 1), slice(full, 0, 0, 1)));
    CHECK(difference(short_one(padded), model.logits({short_one(tokens)})) < 1e-13);
    CHECK(same_bits(short_one(model.logits({.ids_bc = others, .lengths_b = lengths_b})), short_one(padded)));
    CHECK(item(model.text_loss({tokens, targets, lengths_b})) == item(model.text_loss({others, targets, lengths_b})));
    CHECK(item(model.text_loss({tokens, targets, lengths_b})) ==
          doctest::Approx(item(model.text_loss({short_one(tokens), short_one(targets)}))).epsilon(1e-13));
    // Attention at padding depends on the positions before it, but not on the padding itself.
    if (v.config.family != family_of<Decoder> || v.config.mixer == kind_of<Sdp>)
      if (v.config.settings<Sdp>().window != 1) CHECK_FALSE(same_bits(padding(padded), padding(full)));
  }
}

TEST_CASE("every model: blocks that are computed again give the same bits, dropout and padding included") {
  on_training_devices([](Device device) {
    for (Variant& v : every_model()) {
      if (device == Device::cuda_emulated && (v.config.family != family_of<Decoder> || v.config.mixer != kind_of<Sdp>)) continue;
      CAPTURE(v.name);
      v.config.block.dropout = 0.2;
      std::vector<Batch> micro_batches = small_micro_batches(v.config, 2, device);
      if (v.config.family != family_of<Coarse>)
        for (Batch& one : micro_batches) one.lengths_b = ids_of({v.config.ctx, 9, 4}, {3}, device);
      double losses[2];
      std::vector<Tensor> gradients[2];
      for (const bool recompute : {false, true}) {
        Model model(v.config, 3);
        model.place_for_training(Dtype::f32, device);
        model.recompute_blocks(recompute);
        losses[recompute] = forward_backward(model, micro_batches, 4, 8);
        gradients[recompute] = taken_gradients(model);
      }
      CHECK(losses[0] == losses[1]);
      CHECK(same_bits(gradients[0], gradients[1]));
    }
  });
}

TEST_CASE("every model: devices and dtypes agree on the loss, devices on every gradient, and each parameter that is reached has one") {
  for (const Variant& v : every_model()) {
    CAPTURE(v.name);
    double exact = 0;
    Values expected;
    const auto check_on = [&](Device device, Dtype dtype) {
      const std::string dtype_name = name_of(dtype);
      CAPTURE(dtype_name);
      Model model(v.config, 3);
      dtype == Dtype::f64 ? model.place(dtype, device) : model.place_for_training(dtype, device);
      Tape tape;
      const Tensor loss = model.loss(small_micro_batches(v.config, 1, device)[0]);
      tape.backward(loss);
      if (expected.empty()) exact = item(loss);
      CHECK(item(loss) == doctest::Approx(exact).epsilon(dtype == Dtype::bf16 ? 0.01 : dtype == Dtype::f32 ? 1e-5 : 1e-12));
      Values got;  // one list: some gradients are zero up to rounding, such as a bias before avgpool
      model.each_parameter([&](const std::string& path, Parameter& p) {
        CAPTURE(path);
        const bool unused =
            v.name.find("longer than the context") != v.name.npos && (path.find(".64") != path.npos || path == "up.64.weight");
        CHECK(static_cast<bool>(p.grad) == !unused);
        for (const double g : p.grad ? values_of(p.grad) : Values()) got.push_back(g);
      });
      if (expected.empty()) expected = got;
      const double error = error_of(tensor_of(got, {static_cast<int64_t>(got.size())}, Dtype::f64, Device::cpu), expected);
      CHECK(error < (dtype == Dtype::f64 ? 1e-12 : HUGE_VAL));  // false for a NaN
    };
    on_every_device([&](Device device) {
      if (!runs_on(device, v)) return;
      for (const Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::bf16})
        if (device != Device::cuda_emulated || dtype == Dtype::f64 || test::everything()) check_on(device, dtype);
    });
  }
}

TEST_CASE("every model: more positions than the context, none at all, other targets") {
  for (const Family family : {family_of<Decoder>, family_of<TopDown>, family_of<BottomUp>, family_of<Retina>}) {
    const Model model = built(small_scales(family), Device::cpu);
    CHECK(message_of([&] { model.logits({ids(1, 27, Device::cpu)}); }) ==
          "model: the input has 27 positions, expected at most 26 (the context)");
    CHECK(message_of([&] {
      model.loss({ids(1, 7, Device::cpu), ids(1, 6, Device::cpu)});
    }) == "model: targets are [1 6], expected the shape of the ids [1 7]");
    const auto state = model.init_state(1);
    CHECK(message_of([&] { model.advance(ids(1, 0, Device::cpu), *state); }) == "model: no token was given");
    CHECK(message_of([&] { model.advance(ids(1, 27, Device::cpu), *state); }) ==
          "model: the input has 27 positions, expected at most 26 (the context)");
  }
}

TEST_CASE("every mixer: a list that repeats it has its names and its bits, in training and in decoding") {
  for (size_t i = 0; i < choices(MixerKind()).size(); ++i) {
    const auto mixer = static_cast<MixerKind>(i);
    CAPTURE(name_of(mixer));
    std::string names[2];
    std::vector<Tensor> results[2];
    for (const bool listed : {false, true}) {
      ModelConfig config = small_config(mixer);
      config.layers = 3, config.block.dropout = 0.2;
      if (listed) config.mixer = {mixer, mixer};
      const std::vector<Batch> micro_batches = small_micro_batches(config, 2, Device::cpu);
      Model model(config, 3);
      model.place_for_training(Dtype::f32, Device::cpu);
      model.each_parameter([&](const std::string& path, Parameter&) { names[listed] += path + "\n"; });
      const double loss = forward_backward(model, micro_batches, 4, 8);
      results[listed] = taken_gradients(model);
      results[listed].push_back(tensor_of({loss}, {1}, Dtype::f64, Device::cpu));
      const auto state = model.init_state(2);
      results[listed].push_back(model.advance(ids(2, 5, Device::cpu), *state));
      results[listed].push_back(model.step(ids_of({4, 7}, {2}, Device::cpu), *state));
    }
    CHECK(names[0] == names[1]);
    CHECK(same_bits(results[0], results[1]));
  }
}
