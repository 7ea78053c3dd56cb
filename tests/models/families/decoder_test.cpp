// Layers, decoders and classifiers: initial weights, parameters and their names, the order of the ops, recomputation.
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include "autograd/tape.h"
#include "core/memory/memory.h"
#include "models/layers/layers.h"
#include "models/model.h"
#include "models/training/optimizer.h"
#include "ops/elements/activations.h"
#include "tests/models/model_cases.h"

using namespace ricci;

namespace {

ModelConfig small(Preset preset) {
  ModelConfig c = small_config(kind_of<Sdp>, preset);
  c.settings<Sdp>().heads = 3;
  return c;
}

ModelConfig modern() {
  ModelConfig c = small(Preset::gpt);
  c.block.bias = false, c.block.norm_kind = NormKind::rms, c.block.gated = true, c.block.activation = Activation::silu;
  c.settings<Sdp>().qk_norm = true;
  return c;
}

ModelConfig classifier(MixerKind mixer = kind_of<Sdp>) { return small_config(mixer, Preset::gpt, family_of<Classifier>); }

struct Net {
  Linear hidden{4, 9, 1}, output{9, 2, 2};
  LayerNorm norm{9};
  std::vector<Table> tables = {Table(3, 4, uint64_t{3})};
  Tensor operator()(const Arg& x) const { return output(norm(relu(hidden(x)))); }
  template <class V> void visit(V&& v) { v("hidden", hidden, "output", output, "norm", norm, "tables", tables); }
};

struct Forgetful {
  Linear hidden{4, 4, 1}, output{4, 2, 2};
  template <class V> void visit(V&& v) { v("hidden", hidden); }
};

// A seed is any integer, but not a bool.
template <class Layer, class... Made> constexpr bool kMade = std::is_constructible_v<Layer, int64_t, int64_t, Made...>;
static_assert(
    kMade<Linear, int> && kMade<Linear, uint64_t> && kMade<Linear, bool, MapInit> && !kMade<Linear, bool> && !kMade<Linear, const bool&>);
static_assert(kMade<Table, int> && kMade<Table, uint64_t> && kMade<Table, Init> && !kMade<Table, bool> && !kMade<Table, const bool&>);

}  // namespace

TEST_CASE("layers that are made with a seed have their first values") {
  const Linear one(4, 9, 1), same(4, 9, 1), other(4, 9, 2);
  for (const double w : values_of(one.weight.value)) CHECK(std::abs(w) <= 0.5);  // 1 / sqrt(4)
  for (const double b : values_of(one.bias.value)) CHECK(std::abs(b) <= 0.5);
  CHECK(values_of(one.weight.value) == values_of(same.weight.value));
  CHECK(values_of(one.weight.value) != values_of(other.weight.value));
  CHECK(values_of(LayerNorm(3).weight.value) == Values{1, 1, 1});
  CHECK(values_of(LayerNorm(3).bias.value) == Values{0, 0, 0});
  double squares = 0;
  for (const double value : values_of(Table(50, 200, uint64_t{1}).weight.value)) squares += value * value;
  CHECK(std::abs(squares / 1e4 - 1) < 0.06);
}

TEST_CASE("parameters_of: every parameter of a module with its path, which an optimizer updates") {
  Net net;
  const std::vector<Parameter*> parameters = parameters_of(net);
  std::string paths;
  for (const Parameter* p : parameters) paths += p->path + " ";
  CHECK(paths == "hidden.weight hidden.bias output.weight output.bias norm.weight norm.bias tables.0.weight ");
  const Values before = values_of(net.hidden.weight.value);
  Optimizer optimizer(parameters, {});
  Tape tape;
  const Tensor y = net(drawn({5, 4}, Dtype::f32, Device::cpu, 1));
  tape.backward(y, drawn({5, 2}, Dtype::f32, Device::cpu, 2));
  optimizer.step(0.1);
  CHECK(values_of(net.hidden.weight.value) != before);
}

TEST_CASE("parameters_of: a member that the visit line forgets is an error of backward") {
  Forgetful net;
  parameters_of(net);
  Tape tape;
  const Tensor y = net.output(net.hidden(drawn({5, 4}, Dtype::f32, Device::cpu, 1)));
  const std::string message = message_of([&] { tape.backward(y, drawn({5, 2}, Dtype::f32, Device::cpu, 2)); });
  CHECK(message.starts_with("backward of linear ("));
  CHECK(message.ends_with("parameter [2 4] has no path, so no optimizer updates it; name the parameter in its module's visit line"));
}

TEST_CASE("draw_parameters: each is drawn by its path, as by Model::init") {
  Net net;
  draw_parameters(net, 7);
  const Values first = values_of(net.hidden.weight.value);
  Net again;
  draw_parameters(again, 7);
  CHECK(values_of(again.hidden.weight.value) == first);
  CHECK(values_of(Net().hidden.weight.value) != first);
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

TEST_CASE("a layer is the ops of its paper in their order, dropout among them") {
  const auto ops = [](ModelConfig config) {
    config.layers = 1, config.block.dropout = 0.1;
    const Model model = built(config, Device::cpu);
    const Training training;
    const Tape tape;
    model.logits({ids(1, 5, Device::cpu)});
    std::string names;
    for (const auto& node : tape.nodes()) names += std::string(names.empty() ? "" : " ") + node->op;
    return names;
  };
  CHECK(ops(small(Preset::gpt)) ==
        "embedding dropout layer_norm linear attention linear dropout residual_layer_norm linear gelu linear dropout "
        "residual_layer_norm linear");
  CHECK(ops(small(Preset::msa)) ==
        "embedding dropout linear attention linear dropout residual_layer_norm linear relu dropout linear dropout "
        "residual_layer_norm linear");
  CHECK(ops(modern()) == "embedding dropout rms_norm linear rotary attention linear dropout residual_rms_norm linear gated linear dropout "
                         "residual_rms_norm linear");
}

TEST_CASE("RMS norm, norms of queries and keys, and a gated feed-forward: names and shapes, eps of every norm") {
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
  config.block.norm_eps = 0.1;
  const Tensor tokens = ids(1, 7, Device::cpu);
  CHECK(difference(built(config, Device::cpu).logits({tokens}), model.logits({tokens})) > 1e-3);
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
    const auto is_recompute = [](const auto& node) { return std::string(node->op) == "recompute"; };
    const auto recomputed = std::count_if(tape.nodes().begin(), tape.nodes().end(), is_recompute);
    tape.backward(loss);
    std::vector<Tensor> all;
    for (const Parameter* p : model.trained_parameters()) all.push_back(p->grad);
    return std::pair(recomputed, all);
  };
  using Case = std::pair<std::vector<std::string>, int64_t>;  // the paths of trained parameters, and the number of recomputed blocks
  for (const auto& [trained, recomputed] : {Case{{"blocks.2.", "head"}, 1}, {{"head"}, 0}, {{"blocks.1.ln2.bias"}, 2}, {{"tok"}, 3}}) {
    const auto kept = outcome(false, trained), again = outcome(true, trained);
    CHECK(again.first == recomputed);
    REQUIRE(again.second.size() == kept.second.size());
    for (size_t i = 0; i < kept.second.size(); ++i) CHECK(same_bits(again.second[i], kept.second[i]));
  }
}

TEST_CASE("llama: the cache is as small as the number of key heads") {
  constexpr int64_t kContext = 64;
  for (const int64_t kv_heads : {1, 2, 4}) {
    CAPTURE(kv_heads);
    ModelConfig config = small_config(kind_of<Sdp>, Preset::llama);
    config.ctx = kContext, config.settings<Sdp>().heads = 4, config.settings<Sdp>().kv_heads = kv_heads,
    config.settings<Sdp>().head_width = 2;
    const Model model = built(config, Device::cpu);
    const Tensor ids_bc = ids(1, kContext, Device::cpu);
    const NoTape unrecorded;
    const int64_t before = memory_use(Device::cpu).current;
    const auto state = model.init_state(1);
    model.advance(ids_bc, *state);
    // For each position in both layers, 2 columns of keys and 2 of values for a head; the rotation has 2.
    CHECK(memory_use(Device::cpu).current - before == (2 * kv_heads * 4 + 2) * kContext * size_of(Dtype::f64));
  }
}

TEST_CASE("classifier: every position reads every other, and padding is not read and does not count") {
  for (size_t i = 0; i < choices(MixerKind()).size(); ++i) {
    const std::string mixer = choices(MixerKind())[i];
    CAPTURE(mixer);
    const Model model = built(classifier(static_cast<MixerKind>(i)), Device::cpu);
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
      CHECK(item(logits, 6 + k) == 0);                    // a mean over no positions
    }
  }
}

TEST_CASE("classifier: the loss is the mean over the sequences that have a class") {
  const Model model = built(classifier(), Device::cpu);
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
  const Model model = built(classifier(), Device::cpu);
  CHECK(message_of([&] {
    model.loss({ids(2, 5, Device::cpu), ids(2, 5, Device::cpu)});
  }) == "model: targets are [2 5], expected one per sequence of the ids [2 5]");
  CHECK(message_of([&] {
    model.loss({ids(2, 5, Device::cpu), ids_of({0, 3}, {2}, Device::cpu)});
  }) == "cross_entropy: target 3 at row 1 is outside the 3 classes");
  CHECK(message_of([&] { model.logits({ids(1, 14, Device::cpu)}); }) ==
        "model: the input has 14 positions, expected at most 13 (the context)");
  CHECK(message_of([&] { model.init_state(1); }) == "model: a classifier cannot generate text");
  ModelConfig one = classifier();
  one.settings<Classifier>().classes = 1;
  CHECK(message_of([&] { check(one); }) == "model.classes: 1, expected 2 or more");
}

TEST_CASE("classifier: it has no mask unless causal says so") {
  ModelConfig config = classifier();
  CHECK_FALSE(config.causal);
  const Model free = built(config, Device::cpu);
  config.causal = true;
  const Model masked = built(config, Device::cpu);
  const Tensor tokens = ids(1, 9, Device::cpu);
  bool differ = false;
  for (int64_t k = 0; k < 3; ++k) differ |= item(free.logits({tokens}), k) != item(masked.logits({tokens}), k);
  CHECK(differ);
}
