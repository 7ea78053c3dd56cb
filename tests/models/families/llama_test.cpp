// The decoder with rotary positions and heads that share their keys: decoding with a cache, causality, and scores that know distances
// alone.
#include <utility>

#include "autograd/tape.h"
#include "core/memory/memory.h"
#include "models/model.h"
#include "ops/attention/attention.h"
#include "ops/rotary/rotary.h"
#include "tests/models/model_cases.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

ModelConfig llama(int64_t kv_heads, int64_t head_width, int64_t window) {
  ModelConfig c;
  c.preset = Preset::llama;
  apply_preset(c);
  c.vocab = 11, c.ctx = 19, c.d = 12, c.layers = 2, c.block.ff = 20;
  SdpConfig& attention = c.settings<Sdp>();
  attention.heads = 4, attention.kv_heads = kv_heads, attention.head_width = head_width, attention.qk_norm = window == 3;
  if (window) attention.window = window;
  return c;
}

}  // namespace

TEST_CASE("llama: decoding with a cache gives the logits of the full forward at every position") {
  for (Device device : {Device::cpu, Device::cuda_emulated})
    for (int64_t window : {0, 3})
      for (auto [kv_heads, head_width] : {std::pair<int64_t, int64_t>{1, 2}, {2, 6}, {4, 4}}) {
        ModelConfig config = llama(kv_heads, head_width, window);
        if (device != Device::cpu) config.ctx = 8;
        check_decoding(config, device);
      }
}

TEST_CASE("llama: the cache of 4,096 positions is as small as the number of key heads") {
  const auto cache_bytes = [](int64_t kv_heads) {
    ModelConfig config = llama(kv_heads, 2, 0);
    config.ctx = 4096;
    const Model model = built(config, Device::cpu);
    const Tensor ids_bc = ids(1, 4096, Device::cpu);
    const NoTape unrecorded;
    const auto state = model.init_state(1);
    const int64_t before = memory_use(Device::cpu).current;
    model.advance(ids_bc, *state);
    return memory_use(Device::cpu).current - before;
  };
  constexpr int64_t kColumn = int64_t{2} * 4096 * 4;  // one number of f32 for each position, in both layers
  for (int64_t kv_heads : {1, 2, 4}) {
    CAPTURE(kv_heads);
    CHECK(cache_bytes(kv_heads) == (kv_heads * 4 + 2) * kColumn);  // 2 columns of keys and 2 of values for a head; the rotation has 2
  }
}

TEST_CASE("llama: no position sees a later token") {
  const Model model = built(llama(2, 6, 0), Device::cpu);
  const Tensor before = model.logits({ids(1, 19, Device::cpu)});
  for (int64_t at = 1; at < 19; ++at) {
    const Tensor after = model.logits({ids(1, 19, Device::cpu, at)});
    for (int64_t i = 0; i < at * 11; ++i) CHECK(item(before, i) == item(after, i));
    CHECK(item(before, at * 11) != item(after, at * 11));
  }
}

TEST_CASE("rotary positions: shifting all of them by 37 changes no weight of attention") {
  const Tensor qk = drawn({1, 19, 24}, Dtype::f64, Device::cpu, 5), table = rotary_table(60, 6, {.theta = 100}, Dtype::f64, Device::cpu);
  const auto weights = [&](int64_t first) {
    const Tensor turned = rotary(qk, {2, 2, 6}, Tensor(), Tensor(), table, first);
    return attention_weights({turned, 0, 12}, {turned, 12, 12}, Visibility::causal(), {.heads = 2});
  };
  CHECK(difference(weights(37), weights(0)) < 1e-12);
  CHECK(difference(weights(1), attention_weights({qk, 0, 12}, {qk, 12, 12}, Visibility::causal(), {.heads = 2})) > 1e-3);
}
