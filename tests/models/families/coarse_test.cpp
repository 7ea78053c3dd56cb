// Particular to coarse models: logits per cell, decoding of cells, no text.
#include "models/inference/sampling.h"
#include "tests/models/families/scale_cases.h"

using namespace ricci;

namespace {

std::vector<Variant> coarse_variants() {
  std::vector<Variant> all = variants_of(family_of<Coarse>);
  all.push_back(llama_of(family_of<Coarse>, true));
  return all;
}

}  // namespace

TEST_CASE("coarse: decoding gives the logits of the full forward behind every cell, whatever is read at once") {
  for (Device device : {Device::cpu, Device::cuda_emulated})
    for (const Variant& v : coarse_variants()) {
      if (!runs_on(device, v)) continue;
      CAPTURE(v.name);
      const Model model = built(v.config, device);
      const Tensor tokens = ids(1, 20, device), full = model.logits({tokens});
      REQUIRE(full.shape() == Shape{1, 6, 11});
      for (int64_t at_once : {1, 2, 3, 7, 20}) {
        const auto state = model.init_state(1), last = model.init_state(1);
        int64_t cells = 0;
        for (int64_t t = 0; t < 20; t += at_once) {
          const int64_t count = std::min<int64_t>(at_once, 20 - t);
          const Tensor next = tokens.reshaped({20}).rows(t, count).reshaped({1, count}), logits = model.advance_all(next, *state);
          const int64_t news = logits.shape()[1];
          CHECK(news == (t + count) / 3 - t / 3);
          if (news) CHECK(difference(logits.reshaped({news, 11}), full.reshaped({6, 11}).rows(cells, news)) < 1e-13);
          cells += news;
          if (cells) CHECK(difference(model.advance(next, *last), full.reshaped({6, 11}).rows(cells - 1, 1)) < 1e-13);
          else
            CHECK(message_of([&] { model.advance(next, *last); }) ==
                  format_message("model: no cell of 3 tokens is complete after {}", {t + count}));
        }
        CHECK(cells == 6);
      }
    }
}

TEST_CASE("coarse: what stands behind the end of the text counts for nothing") {
  const Model model = built(small_scales(family_of<Coarse>), Device::cpu);
  const Tensor tokens = ids(2, 19, Device::cpu), targets = ids(2, 19, Device::cpu);
  CHECK(model.counted({tokens, targets}, 38) == 30);
  for (int64_t t = 10; t < 19; ++t) targets.data<int64_t>()[19 + t] = -1;  // the text of the second sequence has 11 tokens
  CHECK(model.counted({tokens, targets}, 29) == 15 + 6);
  const double loss = item(model.loss({tokens, targets}));
  CHECK(loss == item(model.loss({tokens, {}, ids_of({19, 11}, {2}, Device::cpu)})));
  const auto loss_with_other = [&](int64_t t) {
    const Tensor others = ids(2, 19, Device::cpu);
    int64_t& id = others.data<int64_t>()[19 + t];
    id = (id + 1) % 11;
    return item(model.loss({others, targets}));
  };
  for (int64_t t = 0; t < 19; ++t) CHECK((loss_with_other(t) == loss) == (t >= 9));  // the third cell is the last whole one
  CHECK(message_of([&] { model.loss({tokens, ids(2, 18, Device::cpu)}); }) == "model: targets [2 18] for ids [2 19]");
}

TEST_CASE("coarse: no targets are needed, no text is written") {
  const Model model = built(small_scales(family_of<Coarse>), Device::cpu);
  const double loss = item(model.loss({ids(2, 19, Device::cpu)}));
  CHECK(loss == item(model.loss({ids(2, 19, Device::cpu), ids(2, 19, Device::cpu, 4)})));
  CHECK(loss > 1);
  CHECK(item(model.loss({ids(2, 5, Device::cpu)})) == 0);  // no cell has a whole one behind it
  CHECK(model.logits({ids(2, 2, Device::cpu)}).shape() == Shape{2, 0, 11});
  const std::vector<int64_t> prompt{1};
  CHECK(message_of([&] { generate(model, prompt, 1, {}, Device::cpu, [](int64_t) { return true; }); }) ==
        "generate: a coarse model predicts which tokens come next, but not in which order");
}
