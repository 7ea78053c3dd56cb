#include "models/mixers/avgpool.h"

#include "models/config.h"
#include "tests/models/model_cases.h"

using namespace ricci;

namespace {

std::string complaint(int64_t pool, bool causal) {
  ModelConfig c;
  c.vocab = 5, c.mixer = kind_of<AveragePool>, c.settings<AveragePool>().pool = pool, c.causal = causal;
  return message_of([&] { check(c); });
}

}  // namespace

TEST_CASE("avgpool: a layer reaches pool - 1 positions back, two layers twice as far") {
  for (int64_t layers : {1, 2}) {
    ModelConfig c;
    c.vocab = 11, c.ctx = 13, c.d = 12, c.layers = layers, c.mixer = kind_of<AveragePool>, c.settings<AveragePool>().pool = 4;
    const Model model = built(c, Device::cpu);
    CHECK(model.config().mixer == kind_of<AveragePool>);
    const Tensor before = model.logits({ids(1, 13, Device::cpu)}), after = model.logits({ids(1, 13, Device::cpu, 2)});
    for (int64_t t = 0; t < 13; ++t) {
      bool moved = false;
      for (int64_t v = 0; v < 11; ++v) moved |= item(before, t * 11 + v) != item(after, t * 11 + v);
      CHECK(moved == (t >= 2 && t <= 2 + layers * 3));
    }
  }
}

TEST_CASE("avgpool: what its window may be") {
  CHECK(complaint(4, true) == "no error");
  CHECK(complaint(1, false) == "no error");
  CHECK(complaint(4, false) == "model.pool: 4, expected an odd number when causal is false");
  CHECK(complaint(0, true) == "model.pool: 0, expected 1 or more");
}
