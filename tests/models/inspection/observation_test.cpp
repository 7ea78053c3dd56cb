// Inspection shows the computation of mixers: tables times values are their outputs, forms give the scores, distances follow from the
// forms.
#include "models/inspection/observation.h"

#include <map>

#include "models/inspection/layers.h"
#include "models/inspection/token_distances.h"
#include "models/layers/visit.h"
#include "tests/models/training/every_model.h"

using namespace ricci;

namespace {

constexpr int64_t kHeads = 3, kWidth = 12, kPositions = 7;

// Every mixer with a table.
std::vector<ModelConfig> configs() {
  std::vector<ModelConfig> all;
  for (const MixerKind mixer :
      {kind_of<Dispatcher>, kind_of<Sdp>, kind_of<QuadFull>, kind_of<Quad>, kind_of<POnly>, kind_of<Metric>, kind_of<MetricPsd>})
    for (const Preset preset : {Preset::gpt, Preset::msa}) {
      ModelConfig c = small_config(mixer, preset);
      Mixers::call_for(mixer, [&]<class M>() {
        if constexpr (requires { c.settings<M>().heads; }) c.settings<M>().heads = kHeads;
      });
      c.settings<Metric>().value_proj = preset == Preset::gpt;
      all.push_back(c);
    }
  return all;
}

template <class F> void with_all(const F& f) {
  for (const ModelConfig& config : configs()) {
    const std::string mixer = names_of(config.mixer), preset = name_of(config.preset);
    CAPTURE(mixer);
    CAPTURE(preset);
    f(config);
  }
}

Tensor columns_of(const ColumnSlice& rows) {
  return slice(rows.tensor, 2, rows.offset, rows.width ? rows.width : rows.tensor.shape()[2] - rows.offset);
}

// sum over C of table_bncC v_bCgk, as [b c d], in the dtype and on the device of v. Each of the `groups` heads of v serves n / groups
// adjacent heads of the table.
Tensor times_values(const std::vector<HeadTable>& heads, int64_t first, const Tensor& v_bcd, int64_t groups) {
  std::vector<Arg> tables;
  for (size_t n = static_cast<size_t>(first); n < heads.size(); ++n) {
    const Shape& s = heads[n].table_bcC.shape();
    tables.push_back(reshape(heads[n].table_bcC, {s[0], 1, s[1], s[2]}));
  }
  const Tensor table_bncC = to(convert(concatenate(tables, 1), v_bcd.dtype()), v_bcd.device());
  const Shape& s = table_bncC.shape();
  const Tensor v_bCgk = reshape(v_bcd, {s[0], s[3], groups, v_bcd.shape()[2] / groups});
  const Tensor table_bgncC = reshape(table_bncC, {s[0], groups, s[1] / groups, s[2], s[3]});
  return reshape(contract("bgncC,bCgk->bcgnk", table_bgncC, v_bCgk), {s[0], s[2], s[1] * (v_bcd.shape()[2] / groups)});
}

// The model continues with the output of the tables.
struct Replacing final : Observing {
  Tensor attend(const void* layer, const ColumnSlice& q, const ColumnSlice& k, const ColumnSlice& v, const Visibility& sees,
      const AttentionOptions& options) override {
    const int64_t first = std::ssize(seen[layer].heads);
    Observing::attend(layer, q, k, v, sees, options);
    return times_values(seen[layer].heads, first, columns_of(v), options.kv_heads > 0 ? options.kv_heads : options.heads);
  }
  Tensor dispatch(const void* layer, const Arg& v_bcd, const Arg& coef_bcx, const ShiftAndSumOptions& options) override {
    const int64_t first = std::ssize(seen[layer].heads);
    Observing::dispatch(layer, v_bcd, coef_bcx, options);
    return times_values(seen[layer].heads, first, v_bcd, options.heads);
  }
};

// <a_i, b_j> over `width` columns from `first` on.
double dot(const Tensor& a_bcd, int64_t i, const Tensor& b_bcd, int64_t j, int64_t first, int64_t width) {
  double sum = 0;
  for (int64_t x = first; x < first + width; ++x) sum += item(a_bcd, i * a_bcd.shape()[2] + x) * item(b_bcd, j * b_bcd.shape()[2] + x);
  return sum;
}

// a M_n b^T; a and b begin at these elements.
double through(const Tensor& m_nkK, int64_t n, const Tensor& p, int64_t a, int64_t b) {
  const int64_t k = m_nkK.shape()[1];
  double sum = 0;
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < k; ++j) sum += item(p, a + i) * item(m_nkK, (n * k + i) * k + j) * item(p, b + j);
  return sum;
}

// The products of a mixer's queries and keys are the values of its forms. quad_full attends once for every head, with all columns.
template <class M> void check_forms(const M& mixer, const Tensor& x_bcd, const Forms& forms) {
  constexpr bool kOneHead = std::is_same_v<M, QuadFull>;
  const int64_t k = forms.m_nkK.shape()[1], positions = x_bcd.shape()[1];
  Tensor p_bcd = x_bcd;
  if constexpr (requires { mixer.proj_in; }) p_bcd = mixer.proj_in(x_bcd);
  int64_t call = 0;
  mixer(x_bcd, 0, [&](const ColumnSlice& q, const ColumnSlice& keys, const ColumnSlice& v) {
    const Tensor q_bcd = columns_of(q), k_bcd = columns_of(keys);
    const int64_t width = kOneHead ? kWidth : kWidth / kHeads;
    for (int64_t n = kOneHead ? call : 0; n < (kOneHead ? call + 1 : kHeads); ++n)
      for (int64_t pair = 0; pair < positions * positions; ++pair) {
        const int64_t c = pair / positions, C = pair % positions, offset = k == kWidth ? 0 : n * k;
        const double of_form = through(forms.m_nkK, n, p_bcd, c * kWidth + offset, C * kWidth + offset);
        CHECK(std::abs(dot(q_bcd, c, k_bcd, C, kOneHead ? 0 : n * width, width) - of_form) < 1e-12);
      }
    ++call;
    return columns_of(v);
  });
  CHECK(call == (kOneHead ? kHeads : 1));
}

// The projection of a token in block 1 by hand: its embedding, the norm before the block if present, the map.
Values projected(Model& model, int64_t token) {
  const ModelConfig& config = model.config();
  std::map<std::string, Tensor> value;
  model.each_parameter([&](const std::string& path, Parameter& p) { value[path] = p.value; });
  Values x, p;
  const double scale = config.embedding.scale_embedding ? std::sqrt(12.0) : 1;
  for (int64_t i = 0; i < kWidth; ++i) x.push_back(scale * item(value["tok.weight"], token * kWidth + i));
  if (config.block.norm == Norm::pre) {
    double mean = 0, variance = 0;
    for (double each : x) mean += each / kWidth;
    for (double each : x) variance += (each - mean) * (each - mean) / kWidth;
    for (double& each : x) each = (each - mean) / std::sqrt(variance + 1e-5);
  }
  for (int64_t i = 0; i < kWidth; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < kWidth; ++j) sum += item(value["blocks.1.mixer.proj_in.weight"], i * kWidth + j) * x[static_cast<size_t>(j)];
    p.push_back(sum);
  }
  return p;
}

// A model with random vectors instead of ones and zeros shows a misplaced one.
Model drawn_model(const ModelConfig& config, Device device) {
  Model model = built(config, device);
  uint64_t seed = 5;
  model.each_parameter([&](const std::string&, Parameter& p) {
    if (p.value && p.value.shape().rank() == 1) p.value = drawn(p.value.shape(), Dtype::f64, device, ++seed);
  });
  return model;
}

// Every head of a layer has a table of its queries and keys.
void check_tables(const Model& model, const std::map<const void*, Observation>& seen) {
  for (const MixingLayer& layer : model.layers()) {
    if (layer.kind == "join" || layer.tokens > 13 || !seen.contains(layer.layer)) continue;
    const std::vector<HeadTable>& heads = seen.at(layer.layer).heads;
    for (const MixingLayer::Heads& run : layer.heads)
      for (int64_t n = run.first; n < run.first + run.count; ++n) {
        const HeadTable& head = heads.at(static_cast<size_t>(n));
        const int64_t queries = 13 / layer.tokens, keys = queries / run.sees.cell;
        CHECK((head.table_bcC ? head.table_bcC.shape() == Shape({2, queries, keys}) : keys == 0));
        if (head.table_bcC) CHECK(head.key_scale == run.sees.cell);
      }
    if (model.config().settings<Sdp>().kv_heads) CHECK(difference(heads.at(0).table_bcC, heads.at(1).table_bcC) > 1e-6);
  }
}

}  // namespace

TEST_CASE("inspection: with tables instead of ops every model has the same logits, and the same tables as when it is only watched") {
  std::vector<Variant> variants = every_model();
  for (Variant& v : decoder_options()) variants.push_back(std::move(v));
  variants.push_back({"sdp, not causal, a window", small_config()});
  variants.back().config.causal = false, variants.back().config.settings<Sdp>().window = 3;
  for (const Variant& v : variants)
    for (const Device device : {Device::cpu, Device::cuda_emulated}) {
      const bool decodes = v.config.family == family_of<Decoder>;
      if (device == Device::cuda_emulated && (!decodes || !runs_on(device, v))) continue;
      CAPTURE(v.name);
      const Model model = drawn_model(v.config, device);
      for (const Tensor& lengths_b : {Tensor(), ids_of({13, 5}, {2}, device)}) {
        if (lengths_b && (!decodes || v.config.mixer == kind_of<Dispatcher>)) continue;  // padding is never used there
        const Batch inputs{.ids_bc = ids(2, 13, device), .lengths_b = lengths_b};
        const auto observed = [&](bool replaces) {
          const std::unique_ptr<Observing> watch(replaces ? new Replacing() : new Observing());
          const Tensor logits = model.logits(inputs);
          return std::pair(logits, watch->seen);
        };
        const auto [logits, watched] = observed(false);
        const auto [replaced_logits, replaced] = observed(true);
        CHECK(same_bits(logits, model.logits(inputs)));
        CHECK(difference(replaced_logits, logits) < 1e-12);
        REQUIRE(watched.size() == replaced.size());
        for (const auto& [layer, seen] : replaced)
          for (size_t n = 0; n < seen.heads.size(); ++n)
            if (seen.heads[n].table_bcC)
              CHECK(error_of(watched.at(layer).heads.at(n).table_bcC, values_of(seen.heads[n].table_bcC)) < 1e-11);
        check_tables(model, replaced);
      }
    }
}

TEST_CASE("inspection: forms give the scores") {
  with_all([](const ModelConfig& config) {
    Mixers::call_for(config.mixer[0], [&]<class M>() {
      if constexpr (!std::is_same_v<M, Dispatcher> && requires(const M m) { m.sees; }) {
        M mixer(MixerShape{.d = kWidth, .ctx = 13}, config.settings<M>());
        uint64_t seed = 5;
        each_parameter(mixer, [&](const std::string& path, Parameter& p) {
          p.path = path;
          draw(p, seed++);
          p.value = convert(p.value, Dtype::f64);
          if (p.value.shape().rank() == 1) fill(p.value, 0);  // biases are not part of a form
        });
        const Forms forms = mixer.forms();
        CHECK(!forms.m_nkK == std::is_same_v<M, POnly>);
        CHECK(forms.symmetric == (std::is_same_v<M, Metric> || std::is_same_v<M, MetricPsd> || std::is_same_v<M, POnly>));
        if (forms.m_nkK) check_forms(mixer, drawn({1, 4, kWidth}, Dtype::f64, Device::cpu, 8), forms);
      }
    });
  });
}

TEST_CASE("inspection: the squared distances of tokens are those of the form") {
  with_all([](const ModelConfig& config) {
    Model model = built(config, Device::cpu);
    const Tensor distances_ntv = token_distances(model, model.layers()[1], ids_of({3, 8}, {2}, Device::cpu));
    if (config.mixer != kind_of<Metric> && config.mixer != kind_of<MetricPsd> && config.mixer != kind_of<POnly>) {
      CHECK(!distances_ntv);
      return;
    }
    REQUIRE(distances_ntv.shape() == Shape({kHeads, 2, 11}));
    const Forms forms = model.layers()[1].forms();
    const Values a = projected(model, 3), b = projected(model, 5);
    const auto gap = [&](int64_t at) { return a[static_cast<size_t>(at)] - b[static_cast<size_t>(at)]; };
    for (int64_t n = 0; n < kHeads; ++n) {
      double expected = 0;
      for (int64_t i = 0; i < 4; ++i)
        for (int64_t j = 0; j < 4; ++j)
          expected += gap(n * 4 + i) * gap(n * 4 + j) * (forms.m_nkK ? item(forms.m_nkK, (n * 4 + i) * 4 + j) : i == j);
      CHECK(std::abs(item(distances_ntv, n * 22 + 5) - expected) < 1e-12);
      CHECK(std::abs(expected) > 1e-6);
      CHECK(std::abs(item(distances_ntv, n * 22 + 3)) < 1e-24);  // from a token to itself
      CHECK(item(distances_ntv, n * 22 + 11 + 3) == doctest::Approx(item(distances_ntv, n * 22 + 8)));
    }
  });
}

TEST_CASE("inspection: coefficients of a Dispatcher, and the paths that its table multiplies") {
  const ModelConfig config = configs()[0];
  REQUIRE(config.mixer == kind_of<Dispatcher>);
  const Model model = built(config, Device::cpu);
  const Observation seen = observe(model, {ids(1, kPositions, Device::cpu)})[0];
  REQUIRE(seen.coefficients_bncr.shape() == Shape({1, kHeads, kPositions, 4}));
  const auto c = [&](int64_t head, int64_t position, int64_t level) {
    return item(seen.coefficients_bncr, (head * kPositions + position) * 4 + level);
  };
  const auto table = [&](int64_t head, int64_t to, int64_t from) {
    return item(seen.heads[static_cast<size_t>(head)].table_bcC, to * kPositions + from);
  };
  for (int64_t head = 0; head < kHeads; ++head) {
    CHECK(table(head, 5, 5) == 1);
    CHECK(table(head, 2, 3) == 0);
    CHECK(table(head, 5, 4) == c(head, 5, 0));
    // Distance 6 = 4 + 2: level 2 at position 6, then level 1 at position 2. Distance 3 = 2 + 1.
    CHECK(table(head, 6, 0) == doctest::Approx(c(head, 6, 2) * c(head, 2, 1)));
    CHECK(table(head, 4, 1) == doctest::Approx(c(head, 4, 1) * c(head, 2, 0)));
  }
}

TEST_CASE("inspection: mixers without a table or a form, and too long a text") {
  for (MixerKind mixer : {kind_of<AveragePool>, kind_of<Identity>}) {
    ModelConfig config = configs()[0];
    config.mixer = mixer;
    const Model model = built(config, Device::cpu);
    for (const Observation& seen : observe(model, {ids(1, 5, Device::cpu)})) CHECK((seen.heads.empty() && !seen.coefficients_bncr));
    for (const MixingLayer& layer : model.layers()) {
      CHECK(!layer.forms().m_nkK);
      CHECK(!token_distances(model, layer, ids_of({3}, {1}, Device::cpu)));
    }
  }
  const Model model = built(configs()[0], Device::cpu);
  CHECK(message_of([&] { observe(model, {ids(1, 14, Device::cpu)}); }) ==
        "model: the input has 14 positions, expected at most 13 (the context)");
  const Tensor q = zeros({1, 5, 6}, Dtype::f32, Device::cpu);
  CHECK(message_of([&] { attention_weights({q}, {q}, Visibility::causal(), {.heads = 4}); }).starts_with("attention_weights: "));
}

TEST_CASE("inspection: layers of multi-scale models and their forms") {
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
