// Shared by the tests of the families of several scales: small models of every variant.
#pragma once
#include <string>
#include <vector>

#include "tests/models/model_cases.h"
#include "tests/sanitized.h"

namespace ricci {

struct Variant {
  std::string name;
  ModelConfig config;
  bool on_emulator = true;  // it is also run there, which is slow
};

// Models on the emulator take minutes under a sanitizer. Their kernels run under it in ops/gradients.
inline bool runs_on(Device device, const Variant& v) { return device == Device::cpu || (v.on_emulator && !test::kSanitized); }

inline ModelConfig small_scales(Family family, Preset preset = Preset::gpt) {
  ModelConfig c;
  c.family = family, c.preset = preset;
  apply_preset(c);
  c.vocab = 11, c.ctx = 26, c.d = 12, c.layers = 1, c.block.ff = 14, c.settings<Sdp>().heads = 4;
  c.scales.scales = {1, 2, 6}, c.stack_layers.layers = {1, 2, 1}, c.settings<Coarse>().scale = 3;
  return c;
}

// Every way of downsampling with every choice of the family; on the emulator each way and each choice once.
inline std::vector<Variant> variants_of(Family family) {
  std::vector<Variant> all;
  for (const auto& [name, down] : {std::pair<const char*, DownConfig>{"avg", {Down::avg, 1}}, {"max", {Down::max, 1}},
           {"conv", {Down::conv, 1}}, {"conv of 3 cells", {Down::conv, 3}}})
    for (const bool other : {false, true}) {
      ModelConfig c = small_scales(family);
      c.down = down;
      c.settings<TopDown>().shift = other ? Shift::block : Shift::tight;
      c.settings<BottomUp>().chain = !other;
      c.settings<Retina>().cell_rule = other ? CellRule::end : CellRule::inside;
      c.settings<Retina>().windows = other ? std::vector<Range>{{0, 6}, {3, 12}, {5, 20}} : std::vector<Range>{{0, 4}, {4, 12}, {12, 26}};
      const bool on_emulator = down.down == Down::avg ? !other : other && (down.down == Down::max || down.conv_kernel > 1);
      all.push_back({std::string(name_of(family)) + ", " + name + (other ? ", second" : ", first"), c, on_emulator});
    }
  return all;
}

// The block of Llama in every stack, with two query heads to a head of keys.
inline Variant llama_of(Family family, bool qk_norm) {
  ModelConfig c = small_scales(family, Preset::llama);
  SdpConfig& attention = c.settings<Sdp>();
  attention.kv_heads = 2, attention.head_width = 4, attention.qk_norm = qk_norm, c.embedding.rope_fraction = qk_norm ? 0.5 : 1;
  return {std::string(name_of(family)) + ", llama", c};
}

inline std::vector<Variant> all_variants() {
  std::vector<Variant> all;
  for (Family family : {family_of<TopDown>, family_of<BottomUp>, family_of<Retina>})
    for (Variant& v : variants_of(family)) all.push_back(std::move(v));
  ModelConfig msa = small_scales(family_of<TopDown>, Preset::msa), far = small_scales(family_of<Retina>),
              long_cells = small_scales(family_of<TopDown>), windowed = small_scales(family_of<BottomUp>);
  far.settings<Retina>().head_groups = {2, 0, 1, 0};
  long_cells.scales.scales = {1, 4, 64}, long_cells.settings<Sdp>().window = 3;
  windowed.settings<Sdp>().window = 2, windowed.block.bias = false;
  all.push_back({"topdown, msa", msa, false}), all.push_back({"retina, everything, groups", far});
  ModelConfig bags = small_scales(family_of<TopDown>);
  bags.settings<TopDown>().bag_weights = {0.5, 2}, bags.settings<TopDown>().loss_from = LossFrom::first_full;
  all.push_back({"topdown, bags of words", bags});
  all.push_back(llama_of(family_of<TopDown>, false)), all.push_back(llama_of(family_of<BottomUp>, true));
  all.push_back({"topdown, a cell longer than the context, a window", long_cells}), all.push_back({"bottomup, a window", windowed, false});
  return all;
}

}  // namespace ricci
