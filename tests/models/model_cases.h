// Shared by the tests of models: ids, small models of every variant with random weights, their gradients.
#pragma once
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "cuda/device/device.h"
#include "models/model.h"
#include "tests/ops/values.h"
#include "tests/sanitized.h"
#include "tests/skip.h"

namespace ricci {

// Ids below 11, with a different one at changed_at.
inline Tensor ids(int64_t batch, int64_t length, Device device, int64_t changed_at = -1) {
  const Tensor t({batch, length}, Dtype::i64);
  for (int64_t i = 0; i < t.size(); ++i) t.data<int64_t>()[i] = (i * 7 + i / 3) % 11;
  for (int64_t b = 0; b < batch && changed_at >= 0; ++b) {
    int64_t& id = t.data<int64_t>()[b * length + changed_at];
    id = (id + 1) % 11;
  }
  return to(t, device);
}

inline Model built(const ModelConfig& config, Device device, uint64_t seed = 3) {
  Model model(config);
  model.init(seed);
  model.place(Dtype::f64, device);
  return model;
}

// The largest |a - b| over elements, relative to the largest |b|.
inline double difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0, largest = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    raise_to(worst, std::abs(item(a, i) - item(b, i)));
    largest = std::fmax(largest, std::fabs(item(b, i)));
  }
  return worst / largest;
}

// The gradient of each parameter, or empty. Clears the model's gradients.
inline std::vector<Tensor> taken_gradients(Model& model) {
  std::vector<Tensor> all;
  for (Parameter* p : model.parameters()) all.push_back(std::exchange(p->grad, {}));
  return all;
}

inline bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  const auto equal = [](const Tensor& x, const Tensor& y) { return x && y ? same_bits(x, y) : !x && !y; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), equal);
}

inline ModelConfig small_config(MixerKind mixer = kind_of<Sdp>, Preset preset = Preset::gpt, Family family = family_of<Decoder>) {
  ModelConfig c;
  c.family = family, c.mixer = mixer, c.preset = preset;
  apply_preset(c);
  c.vocab = 11, c.ctx = 13, c.d = 12, c.layers = 2, c.settings<Classifier>().classes = 3;
  if (preset != Preset::llama) c.block.ff = 20;
  return c;
}

struct Variant {
  std::string name;
  ModelConfig config;
  bool on_emulator = true;  // it also runs there, slowly
};

// Models on the emulator take minutes under a sanitizer. Their kernels run under it in ops/gradients.
inline bool runs_on(Device device, const Variant& v) { return device != Device::cuda_emulated || (v.on_emulator && !test::kSanitized); }

inline ModelConfig small_scales(Family family, Preset preset = Preset::gpt) {
  ModelConfig c = small_config(kind_of<Sdp>, preset, family);
  c.ctx = 26, c.layers = 1, c.block.ff = 14, c.settings<Sdp>().heads = 4;
  c.scales.scales = {1, 2, 6}, c.stack_layers.layers = {1, 2, 1}, c.settings<Coarse>().scale = 3;
  return c;
}

// Every kind of downsampling, and every choice of the family. The long run combines each kind with each choice.
inline std::vector<Variant> variants_of(Family family) {
  std::vector<Variant> all;
  for (const auto& [name, down, second] : {std::tuple<const char*, DownConfig, bool>{"avg", {Down::avg, 1}, false},
           {"max", {Down::max, 1}, true}, {"conv", {Down::conv, 1}, false}, {"conv of 3 cells", {Down::conv, 3}, true}})
    for (const bool usual : {true, false}) {
      if (!usual && !test::everything()) continue;
      const bool other = second == usual;
      ModelConfig c = small_scales(family);
      c.down = down;
      c.settings<TopDown>().shift = other ? Shift::block : Shift::tight;
      c.settings<BottomUp>().chain = !other;
      c.settings<Retina>().cell_rule = other ? CellRule::end : CellRule::inside;
      c.settings<Retina>().windows = other ? std::vector<Range>{{0, 6}, {3, 12}, {5, 20}} : std::vector<Range>{{0, 4}, {4, 12}, {12, 26}};
      all.push_back({std::string(name_of(family)) + ", " + name + (other ? ", second" : ", first"), c,
          usual && (down.conv_kernel > 1 || test::everything())});
    }
  return all;
}

// Llama's block in every stack, with two query heads per key head.
inline Variant llama_of(Family family, bool qk_norm) {
  ModelConfig c = small_scales(family, Preset::llama);
  SdpConfig& attention = c.settings<Sdp>();
  attention.kv_heads = 2, attention.head_width = 4, attention.qk_norm = qk_norm, c.embedding.rope_fraction = qk_norm ? 0.5 : 1;
  return {std::string(name_of(family)) + ", llama", c};
}

// The multi-scale families that predict the next token.
inline std::vector<Variant> scale_variants() {
  std::vector<Variant> all;
  for (Family family : {family_of<TopDown>, family_of<BottomUp>, family_of<Retina>})
    for (Variant& v : variants_of(family)) all.push_back(std::move(v));
  ModelConfig msa = small_scales(family_of<TopDown>, Preset::msa), far = small_scales(family_of<Retina>),
              long_cells = small_scales(family_of<TopDown>), windowed = small_scales(family_of<BottomUp>);
  far.settings<Retina>().head_groups = {2, 0, 1, 0};
  long_cells.scales.scales = {1, 4, 64}, long_cells.settings<Sdp>().window = 3;
  windowed.settings<Sdp>().window = 2, windowed.block.bias = false;
  all.push_back({"topdown, msa", msa, false}), all.push_back({"retina, everything, groups", far, test::everything()});
  ModelConfig bags = small_scales(family_of<TopDown>);
  bags.settings<TopDown>().bag_weights = {0.5, 2}, bags.settings<TopDown>().loss_from = LossFrom::first_full;
  all.push_back({"topdown, bags of words", bags, test::everything()});
  all.push_back(llama_of(family_of<TopDown>, false)), all.push_back(llama_of(family_of<BottomUp>, true));
  all.push_back({"topdown, a cell longer than the context, a window", long_cells, test::everything()}),
      all.push_back({"bottomup, a window", windowed, false});
  return all;
}

// Decoders with mixers and blocks that differ from the defaults.
inline std::vector<Variant> decoder_options() {
  std::vector<Variant> all;
  const auto add = [&](const std::string& name, const ModelConfig& config, const auto& change, bool on_emulator = false) {
    all.push_back({name, config, on_emulator});
    change(all.back().config);
  };
  for (const int64_t window : {1, 3, 30})
    for (const Preset preset : {Preset::gpt, Preset::msa})
      add(
          "sdp, a window of " + std::to_string(window), small_config(kind_of<Sdp>, preset),
          [&](ModelConfig& c) { c.settings<Sdp>().heads = 3, c.settings<Sdp>().window = window; }, window == 3 && preset == Preset::gpt);
  add("RMS norm, gated", small_config(), [](ModelConfig& c) {
    c.block.bias = false, c.block.norm_kind = NormKind::rms, c.block.gated = true, c.block.activation = Activation::silu;
    c.settings<Sdp>().heads = 3, c.settings<Sdp>().qk_norm = true;
  });
  for (const auto& [kv_heads, head_width] : {std::pair{1, 2}, {2, 6}, {4, 4}})
    for (const bool windowed : {false, true})
      add(
          "llama, heads of keys: " + std::to_string(kv_heads), small_config(kind_of<Sdp>, Preset::llama),
          [&, kv_heads = kv_heads, head_width = head_width](ModelConfig& c) {
            SdpConfig& attention = c.settings<Sdp>();
            attention.heads = 4, attention.kv_heads = kv_heads, attention.head_width = head_width, attention.qk_norm = windowed;
            if (windowed) attention.window = 3;
          },
          kv_heads == (windowed ? 2 : 1));
  for (const DispatcherConfig& config :
      std::vector<DispatcherConfig>{{.heads = 3}, {.heads = 3, .share_heads = true}, {.coef_act = CoefficientActivation::none},
          {.heads = 2, .levels = 2}, {.levels = 1}, {.levels = 9}, {.heads = 4, .share_heads = true, .mixer_bias = true}})
    add("dispatcher, options", small_config(kind_of<Dispatcher>), [&](ModelConfig& c) { c.settings<Dispatcher>() = config; });
  const auto add_form = [&]<class M>() {
    const std::string name = name_of(kind_of<M>);
    add(name + ", a window", small_config(kind_of<M>), [](ModelConfig& c) { c.settings<M>().heads = 3, c.settings<M>().window = 3; });
    if constexpr (requires(typename M::Config config) { config.value_proj; })
      add(name + ", values", small_config(kind_of<M>),
          [](ModelConfig& c) { c.settings<M>().heads = 1, c.settings<M>().value_proj = true; });
  };
  add_form.operator()<Quad>(), add_form.operator()<POnly>(), add_form.operator()<Metric>(), add_form.operator()<MetricPsd>();
  add_form.operator()<QuadFull>();
  const auto mixed = [&](const std::string& name, const ChoiceList<MixerKind>& mixers, Preset preset, bool on_emulator) {
    add(
        name, small_config(kind_of<Sdp>, preset),
        [&](ModelConfig& c) {
          c.mixer = mixers, c.layers = 3, c.settings<Dispatcher>().heads = 2, c.settings<Sdp>().heads = 3, c.settings<Sdp>().window = 3;
          c.settings<Dispatcher>().levels = 2;
        },
        on_emulator);
  };
  mixed("two dispatchers, one sdp", {kind_of<Dispatcher>, kind_of<Dispatcher>, kind_of<Sdp>}, Preset::gpt, true);
  mixed("sdp and dispatcher", {kind_of<Sdp>, kind_of<Dispatcher>}, Preset::llama, false);
  mixed("avgpool, metric, identity", {kind_of<AveragePool>, kind_of<Metric>, kind_of<Identity>}, Preset::msa, false);
  add("avgpool, a pool of 4", small_config(kind_of<AveragePool>), [](ModelConfig& c) { c.settings<AveragePool>().pool = 4; });
  return all;
}

}  // namespace ricci
