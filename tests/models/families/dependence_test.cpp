// The exact dependence of positions on tokens: every token is changed in turn, and the positions with changed logits are compared with the
// rules of the mixer or the family. So none depends on a later token. The attention inside multi-scale stacks has a window of one cell, or
// it would hide the dependence through the scales.
#include <set>

#include "tests/models/model_cases.h"

using namespace ricci;

namespace {

using Tokens = std::set<int64_t>;

// The tokens that D(., scale) of cell j depends on: its own; a convolution over multiple cells adds earlier ones.
Tokens cell(const DownConfig& down, int64_t scale, int64_t j) {
  Tokens tokens;
  const int64_t cells = down.down == Down::conv ? down.conv_kernel : 1;
  for (int64_t t = std::max<int64_t>(0, (j + 1 - cells) * scale); t < (j + 1) * scale; ++t) tokens.insert(t);
  return tokens;
}

// Cell j of scale number i of a top-down model.
Tokens top_down(const ModelConfig& c, size_t i, int64_t j) {
  const std::vector<int64_t>& scales = c.scales.scales;
  Tokens tokens = scales[i] == 1 ? Tokens{j} : cell(c.down, scales[i], j);
  if (i + 1 == scales.size()) return tokens;
  const int64_t ratio = scales[i + 1] / scales[i],
                coarser = (c.settings<TopDown>().shift == Shift::tight ? (j + 1) / ratio : j / ratio) - 1;
  if (coarser >= 0) tokens.merge(top_down(c, i + 1, coarser));
  return tokens;
}

// Cell j of coarse scale number i, from 1, of a bottom-up model.
Tokens bottom_up(const ModelConfig& c, size_t i, int64_t j) {
  const std::vector<int64_t>& scales = c.scales.scales;
  if (i == 1 || !c.settings<BottomUp>().chain) return cell(c.down, scales[i], j);
  Tokens tokens;
  for (int64_t finer : cell(c.down, scales[i] / scales[i - 1], j)) tokens.merge(bottom_up(c, i - 1, finer));
  return tokens;
}

Tokens aggregated(const ModelConfig& c, int64_t t) {
  Tokens tokens{t};
  for (size_t i = 1; i < c.scales.scales.size(); ++i)
    for (int64_t j = 0; (j + 1) * c.scales.scales[i] - 1 <= t; ++j) tokens.merge(bottom_up(c, i, j));
  return tokens;
}

Tokens retina(const ModelConfig& c, int64_t t) {
  Tokens tokens{t};
  for (size_t i = 0; i < c.scales.scales.size(); ++i) {
    const int64_t s = c.scales.scales[i];
    for (int64_t j = 0; (j + 1) * s <= c.ctx; ++j) {
      const int64_t near = t - ((j + 1) * s - 1), far = t - j * s;
      const Range& w = c.settings<Retina>().windows[i];
      if (near >= w.lo && (c.settings<Retina>().cell_rule == CellRule::inside ? far : near) < w.hi)
        tokens.merge(s == 1 ? Tokens{j} : cell(c.down, s, j));
    }
  }
  return tokens;
}

// A layer of a decoder depends on this many earlier positions.
int64_t reach(const ModelConfig& c, MixerKind mixer) {
  if (mixer == kind_of<Identity>) return 0;
  if (mixer == kind_of<AveragePool>) return c.settings<AveragePool>().pool - 1;
  if (mixer == kind_of<Dispatcher>) return (int64_t{1} << c.settings<Dispatcher>().levels.value_or(20)) - 1;
  int64_t window = 0;
  Mixers::call_for(mixer, [&]<class M>() {
    if constexpr (requires { c.settings<M>().window; }) window = c.settings<M>().window.value_or(c.ctx);
  });
  return window - 1;
}

// The tokens that position t of the logits depends on.
Tokens heard(const ModelConfig& c, int64_t t) {
  Tokens tokens;
  int64_t back = 0;
  for (size_t i = 0; i < static_cast<size_t>(c.layers); ++i) back += reach(c, c.mixer[i % c.mixer.size()]);
  switch (c.family) {
    case family_of<TopDown>: return top_down(c, 0, t);
    case family_of<BottomUp>: return aggregated(c, t);
    case family_of<Retina>: return retina(c, t);
    case family_of<Coarse>: return cell(c.down, c.settings<Coarse>().scale, t);
    default:
      for (int64_t from = std::max<int64_t>(0, t - back); from <= t; ++from) tokens.insert(from);
      return tokens;
  }
}

template <class F> void check_map(const Variant& v, const F& expected) {
  CAPTURE(v.name);
  const int64_t length = v.config.ctx;
  const Model model = built(v.config, Device::cpu);
  const Tensor before = model.logits({ids(1, length, Device::cpu)});
  const int64_t positions = before.shape()[1];
  std::vector<Tokens> moved(static_cast<size_t>(positions));
  for (int64_t token = 0; token < length; ++token) {
    const Tensor after = model.logits({ids(1, length, Device::cpu, token)});
    for (int64_t i = 0; i < before.size(); ++i)
      if (item(before, i) != item(after, i)) moved[static_cast<size_t>(i / 11)].insert(token);
  }
  for (int64_t t = 0; t < positions; ++t) {
    CAPTURE(t);
    CHECK(moved[static_cast<size_t>(t)] == expected(v.config, t));
  }
}

}  // namespace

TEST_CASE("every mixer: a token moves exactly the positions that are in reach") {
  std::vector<Variant> variants = decoder_options();
  for (size_t i = 0; i < choices(MixerKind()).size(); ++i)
    for (const Preset preset : {Preset::gpt, Preset::msa})
      variants.push_back({choices(MixerKind())[i], small_config(static_cast<MixerKind>(i), preset)});
  for (const Variant& v : variants) check_map(v, heard);
}

TEST_CASE("multiple scales: a token moves exactly the positions that the cells and windows say") {
  std::vector<Variant> variants{llama_of(family_of<TopDown>, true), llama_of(family_of<BottomUp>, true)};
  for (Family family : {family_of<TopDown>, family_of<BottomUp>, family_of<Retina>, family_of<Coarse>})
    for (Variant& v : variants_of(family)) variants.push_back(std::move(v));
  for (Variant& v : variants) {
    if (v.config.down.down == Down::max) continue;  // the weights decide which token is the largest
    if (v.config.family != family_of<Retina>) v.config.settings<Sdp>().window = 1;
    check_map(v, heard);
  }
}

TEST_CASE("multiple scales: without a window a position reads every earlier token, and no later one") {
  for (Family family : {family_of<TopDown>, family_of<BottomUp>, family_of<Retina>})
    for (Variant& v : variants_of(family)) {
      v.config.settings<Retina>().windows.clear();
      check_map(v, [](const ModelConfig&, int64_t t) {
        Tokens tokens;
        for (int64_t from = 0; from <= t; ++from) tokens.insert(from);
        return tokens;
      });
    }
}
