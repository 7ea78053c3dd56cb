// The representations of each scale.
#include "models/inspection/representations.h"

#include "tests/ops/values.h"

using namespace ricci;

TEST_CASE("representations: of each scale with blocks, one vector for each whole cell") {
  const auto shapes = [](Family family) {
    ModelConfig config;
    config.family = family;
    config.vocab = 7;
    config.ctx = config.d = 16;
    config.layers = 2;
    config.scales.scales = {1, 4};
    config.stack_layers.layers = {1};
    apply_preset(config);
    if (family == family_of<Coarse>) config.settings<Coarse>().scale = 4;
    Model model(config);
    model.init(1);
    model.place(Dtype::f32, Device::cpu);
    std::string text;
    for (const Representation& each : representations(model, {zeros({2, 10}, Dtype::i64, Device::cpu)}))
      text += std::to_string(each.tokens) + " " + show(each.h_bmd.shape()) + " ";
    return text;
  };
  CHECK(shapes(family_of<Decoder>) == "1 [2 10 16] ");
  CHECK(shapes(family_of<Retina>) == "1 [2 10 16] ");
  CHECK(shapes(family_of<TopDown>) == "1 [2 10 16] 4 [2 2 16] ");
  CHECK(shapes(family_of<BottomUp>) == "1 [2 10 16] 4 [2 2 16] ");
  CHECK(shapes(family_of<Coarse>) == "4 [2 2 16] ");
}
