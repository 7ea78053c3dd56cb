// The decoder as a whole: decoding with a cache, causality, initial weights, dropout, errors.
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "autograd/random.h"
#include "autograd/tape.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "models/layers/layers.h"
#include "models/model.h"
#include "tests/models/model_cases.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

ModelConfig small(Preset preset) {
  ModelConfig c;
  c.preset = preset;
  apply_preset(c);
  c.vocab = 11, c.ctx = 19, c.d = 12, c.settings<Sdp>().heads = 3, c.layers = 2, c.block.ff = 20;
  resolve(c);
  return c;
}

ModelConfig modern() {
  ModelConfig c = small(Preset::gpt);
  c.block.bias = false, c.block.norm_kind = NormKind::rms, c.block.gated = true, c.block.activation = Activation::silu;
  c.settings<Sdp>().qk_norm = true;
  return c;
}

}  // namespace

TEST_CASE("decoding with a cache gives the logits of the full forward at every position") {
  for (Device device : {Device::cpu, Device::cuda_emulated})
    for (Preset preset : {Preset::gpt, Preset::msa})
      for (int64_t window : {0, 1, 3, 30}) {
        CAPTURE(std::string(name_of(preset)));
        CAPTURE(window);
        ModelConfig config = small(preset);
        if (window) config.settings<Sdp>().window = window;
        if (device != Device::cpu) config.ctx = 8;
        check_decoding(config, device);
      }
}

TEST_CASE("no position sees a later token") {
  for (Preset preset : {Preset::gpt, Preset::msa}) {
    const Model model = built(small(preset), Device::cpu);
    const Tensor before = model.logits({ids(1, 19, Device::cpu)});
    for (int64_t at = 0; at < 19; ++at) {
      const Tensor after = model.logits({ids(1, 19, Device::cpu, at)});
      for (int64_t i = 0; i < at * 11; ++i) CHECK(item(before, i) == item(after, i));
      bool changed = false;
      for (int64_t i = at * 11; i < (at + 1) * 11; ++i) changed |= item(before, i) != item(after, i);
      CHECK(changed);
    }
  }
}

TEST_CASE("initial weights follow the preset") {
  Model gpt(small(Preset::gpt));
  gpt.init(1);
  gpt.each_parameter([](const std::string& path, Parameter& p) {
    CAPTURE(path);
    double squares = 0, sum = 0;
    for (int64_t i = 0; i < p.value.size(); ++i) sum += item(p.value, i), squares += item(p.value, i) * item(p.value, i);
    const double n = static_cast<double>(p.value.size());
    const bool residual = path.ends_with("proj.weight") || path.ends_with("fc_out.weight");
    if (path.find("ln") != path.npos && path.ends_with("weight")) {
      CHECK(sum == n);
    } else if (path.ends_with("bias")) {
      CHECK(squares == 0);
    } else {
      CHECK(std::sqrt(squares / n) == doctest::Approx(residual ? 0.01 : 0.02).epsilon(0.2));
    }
  });
  Model msa(small(Preset::msa));
  msa.init(1);
  msa.each_parameter([](const std::string& path, Parameter& p) {
    CAPTURE(path);
    double largest = 0;
    for (int64_t i = 0; i < p.value.size(); ++i) largest = std::fmax(largest, std::fabs(item(p.value, i)));
    if (path.find("ln") != path.npos) return;
    if (path == "head.bias" || (path.ends_with("bias") && path.find("mixer") != path.npos)) {
      CHECK(largest == 0);
      return;
    }
    const double bound = path == "tok.weight" || path == "head.weight" ? 0.1
                         : path.find("qkv") != path.npos               ? std::sqrt(6.0 / 48.0)
                         : path.find("fc_out") != path.npos            ? 1 / std::sqrt(20.0)
                                                                       : 1 / std::sqrt(12.0);
    CHECK(largest <= bound);
    CHECK(largest > 0.6 * bound);
  });
}

TEST_CASE("parameter counts are those of the specification") {
  ModelConfig c;
  c.preset = Preset::msa;
  apply_preset(c);
  c.vocab = 28996, c.ctx = 512, c.d = 512, c.settings<Sdp>().heads = 1, c.layers = 6, c.block.ff = 512;
  CHECK(Model(c).parameter_count() == 39188804);
}

TEST_CASE("a layer is the ops of its paper in their order, dropout among them") {
  const auto ops = [](ModelConfig config) {
    config.layers = 1, config.block.dropout = 0.1;
    const Model model = built(config, Device::cpu);
    const Training training;
    const Tape tape;
    model.logits({ids(1, 5, Device::cpu)});
    std::string names;
    for (const char* name : tape.op_names()) names += std::string(names.empty() ? "" : " ") + name;
    return names;
  };
  CHECK(ops(small(Preset::gpt)) ==
        "embedding dropout layer_norm linear attention linear dropout residual_layer_norm linear gelu linear dropout "
        "residual_layer_norm linear");
  ModelConfig fused = small(Preset::gpt);
  fused.block.fused_gelu = true, fused.block.activation = Activation::gelu_tanh;
  CHECK(ops(fused) ==
        "embedding dropout layer_norm linear attention linear dropout residual_layer_norm feed_forward dropout residual_layer_norm linear");
  CHECK(ops(small(Preset::msa)) ==
        "embedding dropout linear attention linear dropout residual_layer_norm linear relu dropout linear dropout "
        "residual_layer_norm linear");
  CHECK(ops(modern()) == "embedding dropout rms_norm linear rotary attention linear dropout residual_rms_norm linear gated linear dropout "
                         "residual_rms_norm linear");
}

TEST_CASE("RMS norm, norms of queries and keys, and a gated feed-forward: names and shapes, decoding, eps of every norm") {
  ModelConfig config = modern();
  Model model = built(config, Device::cpu);
  int64_t found = 0;
  model.each_parameter([&](const std::string& path, Parameter& p) {
    CAPTURE(path);
    CHECK_FALSE(path.ends_with("bias"));
    const bool is_norm = path.ends_with("ln1.weight") || path.ends_with("ln2.weight") || path == "ln_f.weight";
    if (path.ends_with(".fc.weight")) CHECK(p.value.shape() == Shape({40, 12}));
    if (path.ends_with(".fc_out.weight")) CHECK(p.value.shape() == Shape({12, 20}));
    const bool of_head = path.ends_with("mixer.q_norm.weight") || path.ends_with("mixer.k_norm.weight");
    if (of_head) CHECK(p.value.shape() == Shape({4}));
    CHECK((is_norm || of_head) == (p.role == Role::gain));
    found += is_norm || of_head || path.find(".fc") != path.npos;
  });
  CHECK(found == 13);
  check_decoding(config, Device::cpu);
  config.block.norm_eps = 0.1;
  const Tensor tokens = ids(1, 7, Device::cpu);
  CHECK(difference(built(config, Device::cpu).logits({tokens}), model.logits({tokens})) > 1e-3);
}

TEST_CASE("dropout acts in training alone and is the same for the same random state") {
  ModelConfig config = small(Preset::msa);
  config.block.dropout = 0.3;
  const Model model = built(config, Device::cpu);
  const Tensor tokens = ids(2, 9, Device::cpu);
  const double plain = item(model.loss({tokens, tokens}));
  CHECK(item(model.loss({tokens, tokens})) == plain);
  const Training training;
  set_random_state({4, 0});
  const double once = item(model.loss({tokens, tokens}));
  set_random_state({4, 0});
  CHECK(item(model.loss({tokens, tokens})) == once);
  CHECK(item(model.loss({tokens, tokens})) != once);
  CHECK(once != plain);
}

namespace {

// Mean over the targets other than -1 of log sum_v exp(z_v) - z_target.
double mean_nats(const Tensor& logits, const Tensor& targets) {
  const int64_t v = logits.shape()[-1];
  double total = 0;
  int counted = 0;
  for (int64_t r = 0; r < targets.size(); ++r) {
    const int64_t target = targets.data<int64_t>()[r];
    if (target < 0) continue;
    double sum = 0;
    for (int64_t i = 0; i < v; ++i) sum += std::exp(item(logits, r * v + i));
    total += std::log(sum) - item(logits, r * v + target);
    ++counted;
  }
  return total / counted;
}

}  // namespace

TEST_CASE("padding moves nothing before it, and a padded sequence is the short one") {
  for (Preset preset : {Preset::gpt, Preset::msa}) {
    ModelConfig config = small(preset);
    config.causal = false;
    const Model model = built(config, Device::cpu);
    const Tensor lengths({2}, Dtype::i64);
    lengths.data<int64_t>()[0] = 9, lengths.data<int64_t>()[1] = 5;
    const Tensor tokens = ids(2, 9, Device::cpu), padded = model.logits({.ids_bc = tokens, .lengths_b = lengths}),
                 full = model.logits({tokens});
    const Tensor alone = model.logits({tokens.rows(1, 1).reshaped({9}).rows(0, 5).reshaped({1, 5})});
    const int64_t v = 11;
    bool moved = false;
    for (int64_t i = 0; i < 9 * v; ++i) CHECK(item(padded, i) == item(full, i));
    for (int64_t i = 0; i < 5 * v; ++i) {
      CHECK(std::abs(item(padded, 9 * v + i) - item(alone, i)) < 1e-13);
      moved |= std::abs(item(full, 9 * v + i) - item(alone, i)) > 1e-3 * std::abs(item(alone, i));
    }
    CHECK(moved);
    const Tensor others = ids(2, 9, Device::cpu, 7), after = model.logits({.ids_bc = others, .lengths_b = lengths});
    for (int64_t i = 0; i < 5 * v; ++i) CHECK(item(after, 9 * v + i) == item(padded, 9 * v + i));
    // The loss follows the targets alone.
    const Tensor targets = ids(2, 9, Device::cpu, 3);
    CHECK(item(model.loss({tokens, targets, lengths})) == doctest::Approx(mean_nats(padded, targets)).epsilon(1e-13));
    for (int64_t i = 14; i < 18; ++i) targets.data<int64_t>()[i] = -1;
    CHECK(item(model.loss({tokens, targets, lengths})) == doctest::Approx(mean_nats(padded, targets)).epsilon(1e-13));
  }
}

TEST_CASE("recomputed blocks see the same padding") {
  auto gradients = [](bool recompute, const Tensor& lengths) {
    Model model = built(small(Preset::gpt), Device::cpu);
    model.recompute_blocks(recompute);
    Tape tape;
    tape.backward(model.loss({ids(2, 9, Device::cpu), ids(2, 9, Device::cpu, 3), lengths}));
    std::vector<Tensor> all;
    for (const Parameter* p : model.parameters()) all.push_back(p->grad);
    return all;
  };
  const Tensor lengths({2}, Dtype::i64);
  lengths.data<int64_t>()[0] = 2, lengths.data<int64_t>()[1] = 5;
  const auto kept = gradients(false, lengths), again = gradients(true, lengths), unpadded = gradients(true, {});
  bool moved = false;
  for (size_t i = 0; i < kept.size(); ++i) {
    CHECK(std::memcmp(kept[i].raw(), again[i].raw(), static_cast<size_t>(kept[i].bytes())) == 0);
    moved |= std::memcmp(kept[i].raw(), unpadded[i].raw(), static_cast<size_t>(kept[i].bytes())) != 0;
  }
  CHECK(moved);
}

TEST_CASE("recomputed blocks: those that no gradient reaches are not recorded, and the others have the same gradients") {
  // The number of recomputations on the tape of a loss, and the gradients.
  auto outcome = [](bool recompute, const std::vector<std::string>& trained) {
    ModelConfig config = small(Preset::gpt);
    config.layers = 3, config.output.tie = false;
    Model model = built(config, Device::cpu);
    model.recompute_blocks(recompute);
    model.each_parameter([&](const std::string& path, Parameter& p) {
      p.frozen = std::none_of(trained.begin(), trained.end(), [&](const std::string& one) { return path.starts_with(one); });
    });
    Tape tape;
    const Tensor loss = model.loss({ids(2, 9, Device::cpu), ids(2, 9, Device::cpu, 3)});
    const auto names = tape.op_names();
    const auto recomputed = std::count_if(names.begin(), names.end(), [](const std::string& name) { return name == "recompute"; });
    tape.backward(loss);
    std::vector<Tensor> all;
    for (const Parameter* p : model.trained_parameters()) all.push_back(p->grad);
    return std::pair(recomputed, all);
  };
  using Case = std::pair<std::vector<std::string>, int64_t>;  // the paths of what is trained, and how many blocks are recomputed
  for (const auto& [trained, recomputed] : {Case{{"blocks.2.", "head"}, 1}, {{"head"}, 0}, {{"blocks.1.ln2.bias"}, 2}, {{"tok"}, 3}}) {
    const auto kept = outcome(false, trained), again = outcome(true, trained);
    CHECK(again.first == recomputed);
    REQUIRE(again.second.size() == kept.second.size());
    for (size_t i = 0; i < kept.second.size(); ++i) CHECK(same_bits(again.second[i], kept.second[i]));
  }
}

TEST_CASE("more positions than the context, none at all") {
  const Model model = built(small(Preset::gpt), Device::cpu);
  CHECK_THROWS_WITH_AS(model.logits({ids(1, 20, Device::cpu)}), "model: 20 positions, but the context it was built for is 19", Error);
  const auto state = model.init_state(1);
  CHECK_THROWS_WITH_AS(model.advance(ids(1, 0, Device::cpu), *state), "model: no position to read", Error);
}
