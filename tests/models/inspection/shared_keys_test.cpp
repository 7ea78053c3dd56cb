// Tables of heads that share keys, turn by positions and may be normalised: times the values they are what attention computes.
#include "models/inspection/observation.h"
#include "tests/models/model_cases.h"

using namespace ricci;

TEST_CASE("inspection: tables of heads that share keys and turn, times the values, give the model's logits") {
  for (const bool qk_norm : {false, true})
    for (Device device : {Device::cpu, Device::cuda_emulated}) {
      ModelConfig config;
      config.preset = Preset::llama;
      apply_preset(config);
      config.vocab = 11, config.ctx = 9, config.d = 12, config.layers = 2, config.block.ff = 10;
      SdpConfig& attention = config.settings<Sdp>();
      attention.heads = 4, attention.kv_heads = 2, attention.head_width = 6, attention.qk_norm = qk_norm;
      const Model model = built(config, device);
      const Inputs inputs{ids(2, 9, device)};
      const Tensor expected = model.logits(inputs);
      Observing watch(true);
      CHECK(difference(model.logits(inputs), expected) < 1e-12);
      REQUIRE(watch.seen.size() == 2);
      for (const auto& [layer, seen] : watch.seen) {
        REQUIRE(seen.heads.size() == 4);
        CHECK(difference(seen.heads[0].table_bcC, seen.heads[1].table_bcC) > 1e-6);  // the two have one head of keys
      }
    }
}
