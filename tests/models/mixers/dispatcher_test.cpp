#include "models/mixers/dispatcher.h"

#include "autograd/random.h"
#include "models/config.h"
#include "tests/models/model_cases.h"

using namespace ricci;

namespace {

ModelConfig small(int64_t ctx = 13) {
  ModelConfig c;
  c.vocab = 11, c.ctx = ctx, c.d = 12, c.layers = 1, c.mixer = kind_of<Dispatcher>, c.block.ff = 20;
  return c;
}

std::string complaint(const std::function<void(ModelConfig&)>& change) {
  ModelConfig c = small();
  change(c);
  return message_of([&] { check(c); });
}

// True for each position whose logits move when the token at position `at` changes.
std::vector<bool> reach(const ModelConfig& config, int64_t at) {
  const Model model = built(config, Device::cpu);
  const Tensor before = model.logits({ids(1, config.ctx, Device::cpu)}), after = model.logits({ids(1, config.ctx, Device::cpu, at)});
  std::vector<bool> moved(static_cast<size_t>(config.ctx));
  for (int64_t i = 0; i < before.size(); ++i)
    if (item(before, i) != item(after, i)) moved[static_cast<size_t>(i / config.vocab)] = true;
  return moved;
}

}  // namespace

TEST_CASE("dispatcher: a layer hears 2^levels positions, by default all of the context") {
  for (int64_t levels : {0, 1, 2, 3, 7})
    for (int64_t heads : {1, 3})
      for (bool share : {false, true}) {
        ModelConfig c = small();
        c.settings<Dispatcher>().heads = heads, c.settings<Dispatcher>().share_heads = share;
        if (levels) c.settings<Dispatcher>().levels = levels;
        const auto moved = reach(c, 2);
        for (int64_t t = 0; t < 13; ++t) CHECK(moved[static_cast<size_t>(t)] == (t >= 2 && (levels == 0 || t - 2 < int64_t{1} << levels)));
      }
}

TEST_CASE("dispatcher: with shared heads a slice of the input is heard in its own slice alone") {
  MixerShape shape{.d = 12, .ctx = 7};
  for (bool share : {false, true}) {
    Dispatcher mixer(shape, {.heads = 3, .share_heads = share});
    uint64_t seed = 1;
    each_parameter(mixer, [&](const std::string&, Parameter& p) { draw(p, seed++); });
    const Tensor x = drawn({1, 7, 12}, Dtype::f32, Device::cpu, 1), other = to(x, Device::cpu);
    const Tensor changed({1, 7, 12});
    copy(changed, other);
    changed.data<float>()[1 * 12 + 5] += 1;  // position 1, the second of three slices
    const Tensor before = mixer(x, Tensor()), after = mixer(changed, Tensor());
    for (int64_t t = 0; t < 7; ++t)
      for (int64_t head = 0; head < 3; ++head) {
        bool moved = false;
        for (int64_t k = 0; k < 4; ++k) moved |= item(before, t * 12 + head * 4 + k) != item(after, t * 12 + head * 4 + k);
        CHECK(moved == (t >= 1 && (head == 1 || !share)));
      }
  }
}

TEST_CASE("dispatcher: every option decodes as it reads") {
  const std::vector<DispatcherConfig> configs = {{.heads = 3}, {.heads = 3, .share_heads = true}, {.coef_act = CoefficientActivation::none},
      {.heads = 2, .levels = 2}, {.levels = 9}, {.heads = 4, .share_heads = true, .mixer_bias = true}};
  for (const DispatcherConfig& config : configs) {
    ModelConfig c = small();
    c.layers = 2, c.settings<Dispatcher>() = config;
    check_decoding(c, Device::cpu);
  }
}

TEST_CASE("dispatcher: the cache is half as large as one of keys and values") {
  const Dispatcher dispatcher({.d = 64, .ctx = 512}, {});
  const Sdp sdp({.d = 64, .ctx = 512}, {});
  const auto cache = dispatcher.make_cache(3, Dtype::f32, Device::cpu);
  const auto keys = sdp.make_cache(3, Dtype::f32, Device::cpu);
  CHECK(cache.rings_bsd.shape() == Shape({3, 511, 64}));
  CHECK(2 * (cache.rings_bsd.bytes() + 3 * 64 * 4) == keys.k_bnsk.bytes() + keys.v_bnsk.bytes());
}

TEST_CASE("dispatcher: in training dropout skips levels, the same ones for the same random state") {
  ModelConfig c = small();
  c.block.dropout = 0.5;
  const Model model = built(c, Device::cpu);
  const Inputs inputs{ids(2, 13, Device::cpu), ids(2, 13, Device::cpu, 3)};
  const auto loss = [&](uint64_t stream) {
    const Training training;
    set_random_state({5, stream});
    return item(model.loss(inputs));
  };
  CHECK(loss(0) == loss(0));
  CHECK(loss(0) != loss(1000));
  CHECK(item(model.loss(inputs)) == item(model.loss(inputs)));
}

TEST_CASE("dispatcher: what its keys may be") {
  CHECK(complaint([](ModelConfig&) {}) == "no error");
  CHECK(complaint([](ModelConfig& c) { c.settings<Dispatcher>().heads = 5; }) == "model.heads: 5 does not divide d = 12");
  CHECK(complaint([](ModelConfig& c) { c.settings<Dispatcher>().heads = 0; }) == "model.heads: 0, expected 1 or more");
  CHECK(complaint([](ModelConfig& c) { c.settings<Dispatcher>().levels = 0; }) == "model.levels: 0, expected 1 or more");
  CHECK(complaint([](ModelConfig& c) { c.settings<Dispatcher>().levels = 31; }) == "model.levels: 31, expected 30 or less");
  CHECK(complaint([](ModelConfig& c) { c.block.dropout = -0.1; }) == "model.dropout: -0.1, expected 0 or more and less than 1");
  CHECK(complaint([](ModelConfig& c) { c.causal = false; }) == "model.causal: false, but the dispatcher reads earlier positions only");
}

TEST_CASE("dispatcher: a warning says how far too few levels hear") {
  ModelConfig c = small(500);
  CHECK(warnings(c).empty());
  c.settings<Dispatcher>().levels = 8;
  REQUIRE(warnings(c).size() == 1);
  CHECK(warnings(c)[0] == "model.levels: with 8 levels a layer reads 256 positions, but ctx is 500, which needs 9 levels");
  c.settings<Dispatcher>().levels = 9;
  CHECK(warnings(c).empty());
  c.settings<Dispatcher>().levels = 10;
  CHECK(warnings(c) == std::vector<std::string>{"model.levels: 10 levels, but with ctx: 500 all is reached after 9"});
  c.mixer = kind_of<Sdp>;
  CHECK(warnings(c).empty());
  c.settings<Sdp>().window = 500;
  CHECK(warnings(c).empty());
  c.settings<Sdp>().window = 501;
  CHECK(warnings(c) == std::vector<std::string>{"model.window: 501 is more than ctx: 500, so that a token attends to all before it"});
}

TEST_CASE("dispatcher: a classifier around it is causal, others are not") {
  for (bool dispatcher : {false, true}) {
    ModelConfig c;
    c.family = family_of<Classifier>, c.mixer = dispatcher ? kind_of<Dispatcher> : kind_of<Metric>;
    apply_preset(c);
    CHECK(c.causal == dispatcher);
  }
}
