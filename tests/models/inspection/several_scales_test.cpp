// Inspection of families of several scales: their layers, and tables that are what the ops compute.
#include "models/inspection/layers.h"
#include "models/inspection/observation.h"
#include "tests/models/families/scale_cases.h"

using namespace ricci;

TEST_CASE("inspection: in families of several scales the tables give the logits") {
  std::vector<Variant> variants = all_variants();
  for (Variant& v : variants_of(family_of<Coarse>)) variants.push_back(v);
  for (const Variant& v : variants) {
    CAPTURE(v.name);
    const Model model = built(v.config, Device::cpu);
    const Inputs inputs{ids(2, 13, Device::cpu)};
    const Tensor logits = model.logits(inputs);
    Observing watch(true);
    const Tensor replaced = model.logits(inputs);
    REQUIRE(replaced.shape() == logits.shape());
    double largest = 0;
    for (int64_t i = 0; i < logits.size(); ++i) raise_to(largest, std::abs(item(replaced, i) - item(logits, i)));
    CHECK(largest < 1e-12);
    for (const MixingLayer& layer : model.layers()) {
      if (layer.kind == "join" || layer.tokens > 13) continue;
      const std::vector<HeadTable>& heads = watch.seen[layer.layer].heads;
      REQUIRE(heads.size() == 4);
      for (const MixingLayer::Heads& run : layer.heads)
        for (int64_t n = run.first; n < run.first + run.count; ++n) {
          const HeadTable& head = heads[static_cast<size_t>(n)];
          const int64_t queries = 13 / layer.tokens, keys = queries / run.sees.scale;
          CHECK((head.table_bcC ? head.table_bcC.shape() == Shape({2, queries, keys}) : keys == 0));
          if (head.table_bcC) CHECK(head.key_scale == run.sees.scale);
        }
    }
  }
}

TEST_CASE("inspection: layers of several scales, their forms and their texts") {
  const auto layers = [](Family family) {
    const Model model = built(small_scales(family), Device::cpu);
    std::string text;
    for (const MixingLayer& layer : model.layers()) {
      text += layer.kind + " " + std::to_string(layer.tokens) + "." + std::to_string(layer.block) + " ";
      if (layer.kind != "join") CHECK(layer.forms().m_nkK.shape() == Shape({4, 12, 12}));
    }
    return text;
  };
  CHECK(layers(family_of<TopDown>) == "attention 1.0 join 1.0 attention 2.0 attention 2.1 join 2.0 attention 6.0 ");
  CHECK(layers(family_of<BottomUp>) == "aggregation 1.0 attention 1.0 attention 2.0 attention 2.1 attention 6.0 ");
  CHECK(layers(family_of<Retina>) == "attention 1.0 ");
  CHECK(layers(family_of<Coarse>) == "attention 3.0 ");
}
