// Single mixers: their relations to each other, cache, initial weights, keys. Every model decodes and is trained in tests/models/families.
#include "models/mixers/mixers.h"

#include "core/philox.h"
#include "models/layers/layers.h"
#include "ops/shapes/shape_ops.h"
#include "tests/models/model_cases.h"

using namespace ricci;

namespace {

const MixerShape kShape{.d = 12, .ctx = 7};
const Tensor kX = drawn({2, 7, 12}, Dtype::f64, Device::cpu, 4);

// The message of check for a config of this mixer, after a change.
std::string complaint(MixerKind mixer, const std::function<void(ModelConfig&)>& change) {
  ModelConfig c = small_config(mixer);
  change(c);
  return message_of([&] { check(c); });
}

// A mixer with random weights, on the CPU in f64.
template <class M> M drawn_mixer(const typename M::Config& config) {
  M mixer(kShape, config);
  uint64_t seed = 1;
  each_parameter(mixer, [&](const std::string&, Parameter& p) {
    p.path = std::to_string(seed);
    draw(p, seed++);
    p.value = convert(p.value, Dtype::f64);
  });
  return mixer;
}

void fill_with_identity(const Tensor& packed, int64_t k, Triangle triangle) {
  fill(packed, 0);
  for (int64_t n = 0; n < packed.shape()[0]; ++n)
    for (int64_t i = 0; i < k; ++i) packed.data<double>()[n * packed_size(k) + packed_at(triangle, i, i, k)] = 1;
}

}  // namespace

TEST_CASE("mixers: after an error the cache is unchanged") {
  const auto check_mixer = [&](auto mixer) {
    each_parameter(mixer, [](const std::string&, Parameter& p) { fill(p.value, 0.1); });
    auto cache = mixer.make_cache(2, Dtype::f32, Device::cpu);
    mixer(zeros({2, 3, 12}, Dtype::f32, Device::cpu), cache);
    CHECK(cache.position == 3);
    CHECK(message_of([&] { mixer(zeros({1, 2, 12}, Dtype::f32, Device::cpu), cache); }) != "no error");  // the wrong batch
    CHECK(cache.position == 3);
  };
  check_mixer(Sdp(kShape, {})), check_mixer(Metric(kShape, {})), check_mixer(Quad(kShape, {})), check_mixer(QuadFull(kShape, {}));
  check_mixer(Dispatcher(kShape, {}));
}

TEST_CASE("a cache takes the room of the positions that are read, and doubles") {
  const int64_t length = 2053;
  const auto check_mixer = [&](auto mixer, bool one_tensor) {
    draw_parameters(mixer, 1);
    each_parameter(mixer, [](const std::string&, Parameter& p) { p.value = convert(p.value, Dtype::f64); });
    const Tensor x_bcd = drawn({1, length, 4}, Dtype::f64, Device::cpu, 7), whole = mixer(x_bcd, Tensor());
    auto cache = mixer.make_cache(1, Dtype::f64, Device::cpu);
    CHECK(cache.k_bnsk.shape()[2] == 2048);
    int64_t first = 0;
    for (int64_t count : {2047, 3, 1, 2}) {
      const Tensor y_bcd = mixer(slice(x_bcd, 1, first, count), cache);
      CHECK(difference(y_bcd, slice(whole, 1, first, count)) < 1e-12);
      first += count;
    }
    CHECK(cache.k_bnsk.shape()[2] == 4096);
    CHECK((cache.k_bnsk.raw() == cache.v_bnsk.raw()) == one_tensor);
  };
  const MixerShape shape{.d = 4, .ctx = 131'072};
  check_mixer(Sdp(shape, {{.heads = 2}, 1}), false), check_mixer(POnly(shape, {{.heads = 2}}), true);
  CHECK(Sdp(shape, {{.heads = 2, .window = 5}}).make_cache(1, Dtype::f64, Device::cpu).k_bnsk.shape()[2] == 10);
}

TEST_CASE("dispatcher: the cache is half as large as one of keys and values") {
  const Dispatcher dispatcher({.d = 64, .ctx = 512}, {});
  const Sdp sdp({.d = 64, .ctx = 512}, {});
  const auto cache = dispatcher.make_cache(3, Dtype::f32, Device::cpu);
  const auto keys = sdp.make_cache(3, Dtype::f32, Device::cpu);
  CHECK(cache.rings_bsd.shape() == Shape({3, 511, 64}));
  CHECK(2 * (cache.rings_bsd.bytes() + 3 * 64 * 4) == keys.k_bnsk.bytes() + keys.v_bnsk.bytes());
}

TEST_CASE("metric: the cache holds only the projections, half of keys and values") {
  const Metric metric(kShape, {{.heads = 3}});
  const auto cache = metric.make_cache(2, Dtype::f32, Device::cpu);
  CHECK(cache.k_bnsk.raw() == cache.v_bnsk.raw());
  CHECK(cache.k_bnsk.shape() == Shape({2, 3, 7, 4}));
  const auto both = Metric(kShape, {{.heads = 3}, true}).make_cache(2, Dtype::f32, Device::cpu);
  CHECK(both.k_bnsk.raw() != both.v_bnsk.raw());
}

TEST_CASE("dispatcher: with shared heads a slice of the input is read only in its own slice") {
  for (bool share : {false, true}) {
    Dispatcher mixer(kShape, {.heads = 3, .share_heads = share});
    uint64_t seed = 1;
    each_parameter(mixer, [&](const std::string&, Parameter& p) { draw(p, seed++); });
    const Tensor x = drawn({1, 7, 12}, Dtype::f32, Device::cpu, 1), other = to(x, Device::cpu);
    const Tensor changed({1, 7, 12});
    copy(changed, other);
    changed.data<float>()[1 * 12 + 5] += 1;  // position 1, the second of three slices
    const Tensor before = mixer(x, Tensor()), after = mixer(changed, Tensor());
    for (int64_t t = 0; t < 7; ++t)
      for (int64_t head = 0; head < 3; ++head) {
        bool moved = false;
        for (int64_t k = 0; k < 4; ++k) moved |= item(before, t * 12 + head * 4 + k) != item(after, t * 12 + head * 4 + k);
        CHECK(moved == (t >= 1 && (head == 1 || !share)));
      }
  }
}

TEST_CASE("dispatcher: in training dropout skips levels, the same ones for the same random state") {
  ModelConfig c = small_config(kind_of<Dispatcher>);
  c.block.dropout = 0.5;
  const Model model = built(c, Device::cpu);
  const Batch inputs{ids(2, 13, Device::cpu), ids(2, 13, Device::cpu, 3)};
  const auto loss = [&](uint64_t stream) {
    const Training training;
    set_random_state({5, stream});
    return item(model.loss(inputs));
  };
  CHECK(loss(0) == loss(0));
  CHECK(loss(0) != loss(1000));
  CHECK(item(model.loss(inputs)) == item(model.loss(inputs)));
}

TEST_CASE("metric: with the identity as its metric each form is p_only") {
  const FormConfig config{{.heads = 3}};
  auto metric = drawn_mixer<Metric>(config);
  auto psd = drawn_mixer<MetricPsd>(config);
  auto quad = drawn_mixer<Quad>(config);
  auto p_only = drawn_mixer<POnly>(config);
  fill_with_identity(metric.form.m.value, 4, Triangle::upper), fill_with_identity(psd.form.m.value, 4, Triangle::lower);
  fill(quad.form.a_nkK.value, 0);
  for (int64_t i = 0; i < 12; ++i) quad.form.a_nkK.value.data<double>()[i / 4 * 16 + i % 4 * 5] = 1;
  const auto as_p_only = [&](auto& mixer) {
    mixer.proj_in.weight.value = p_only.proj_in.weight.value, mixer.out.weight.value = p_only.out.weight.value;
    return mixer(kX, Tensor());
  };
  const Values expected = values_of(p_only(kX, Tensor()));
  CHECK(error_of(as_p_only(metric), expected) < 1e-14);
  CHECK(error_of(as_p_only(psd), expected) < 1e-14);
  CHECK(error_of(as_p_only(quad), expected) < 1e-14);
}

TEST_CASE("quad_full: with U = Wq^T Wk it is scaled dot-product attention") {
  auto full = drawn_mixer<QuadFull>({.heads = 3});
  auto sdp = drawn_mixer<Sdp>({{.heads = 3}});
  fill(sdp.qkv.bias.value, 0);
  const double* const qkv = sdp.qkv.weight.value.data<double>();
  for (int64_t n = 0; n < 3; ++n)
    for (int64_t d = 0; d < 12; ++d)
      for (int64_t D = 0; D < 12; ++D) {
        double sum = 0;
        for (int64_t k = n * 4; k < n * 4 + 4; ++k) sum += qkv[k * 12 + d] * qkv[(12 + k) * 12 + D];
        full.u_ndD.value.data<double>()[(n * 12 + d) * 12 + D] = sum;
      }
  for (int64_t i = 0; i < 144; ++i) full.val.weight.value.data<double>()[i] = qkv[2 * 144 + i];
  full.out.weight.value = sdp.proj.weight.value;
  CHECK(error_of(full(kX, Tensor()), values_of(sdp(kX, Tensor()))) < 1e-14);
}

TEST_CASE("metric: it begins near the identity") {
  const auto metric = drawn_mixer<Metric>({{.heads = 1}});
  const auto psd = drawn_mixer<MetricPsd>({{.heads = 1}});
  const auto quad = drawn_mixer<Quad>({{.heads = 1}});
  const Tensor whole[] = {
      whole_metric(metric.form.m.value, Triangle::upper), whole_metric(psd.form.m.value, Triangle::lower), quad.form.a_nkK.value};
  for (const Tensor& m : whole) {
    double noise = 0;
    for (int64_t i = 0; i < 144; ++i) {
      const double off = item(m, i) - (i % 13 == 0 ? 1 : 0);
      CHECK(std::abs(off) < 0.2);
      noise += off * off / 144;
    }
    CHECK(std::sqrt(noise) > 0.01);
    CHECK(std::sqrt(noise) < 0.04);
  }
}

TEST_CASE("metric: in msa the biases of every map of attention begin at 0, and their weights do not") {
  for (const MixerKind mixer : {kind_of<Sdp>, kind_of<Metric>, kind_of<MetricPsd>, kind_of<Quad>, kind_of<POnly>, kind_of<QuadFull>}) {
    ModelConfig config = small_config(mixer);
    config.preset = Preset::msa;
    config.settings<Metric>().value_proj = config.settings<Quad>().value_proj = true;
    Model model(config);
    model.init(3);
    int biases = 0;
    model.each_parameter([&](const std::string& path, const Parameter& p) {
      if (path.find(".mixer.") == path.npos) return;
      const Values values = values_of(p.value);
      const bool all_zero = std::all_of(values.begin(), values.end(), [](double x) { return x == 0; });
      CHECK(all_zero == (p.role == Role::bias));
      biases += p.role == Role::bias;
    });
    CHECK(biases >= 4);
  }
}

TEST_CASE("mixers: values that their keys can have") {
  const auto of_dispatcher = [](const std::function<void(ModelConfig&)>& change) { return complaint(kind_of<Dispatcher>, change); };
  CHECK(of_dispatcher([](ModelConfig&) {}) == "no error");
  CHECK(of_dispatcher([](ModelConfig& c) { c.settings<Dispatcher>().heads = 5; }) == "model.heads: 5 does not divide d = 12");
  CHECK(of_dispatcher([](ModelConfig& c) { c.settings<Dispatcher>().heads = 0; }) == "model.heads: 0, expected 1 or more");
  CHECK(of_dispatcher([](ModelConfig& c) { c.settings<Dispatcher>().levels = 0; }) == "model.levels: 0, expected 1 or more");
  CHECK(of_dispatcher([](ModelConfig& c) { c.settings<Dispatcher>().levels = 31; }) == "model.levels: 31, expected 30 or less");
  CHECK(of_dispatcher([](ModelConfig& c) { c.block.dropout = -0.1; }) == "model.dropout: -0.1, expected 0 or more and less than 1");
  CHECK(of_dispatcher([](ModelConfig& c) { c.causal = false; }) == "model.causal: false, but the dispatcher uses only earlier positions");
  const auto of_pool = [](int64_t pool, bool causal) {
    return complaint(kind_of<AveragePool>, [&](ModelConfig& c) { c.settings<AveragePool>().pool = pool, c.causal = causal; });
  };
  CHECK(of_pool(4, true) == "no error");
  CHECK(of_pool(1, false) == "no error");
  CHECK(of_pool(4, false) == "model.pool: 4, expected an odd number if causal is false");
  CHECK(of_pool(0, true) == "model.pool: 0, expected 1 or more");
  const auto check_form = []<class M>() {
    CHECK(complaint(kind_of<M>, [](ModelConfig& c) { c.settings<M>().heads = 5; }) == "model.heads: 5 does not divide d = 12");
    CHECK(complaint(kind_of<M>, [](ModelConfig& c) { c.settings<M>().window = 0; }) == "model.window: 0, expected 1 or more");
  };
  check_form.operator()<Quad>(), check_form.operator()<POnly>(), check_form.operator()<Metric>(), check_form.operator()<MetricPsd>();
}

TEST_CASE("dispatcher: a warning says how far too few levels reach") {
  ModelConfig c = small_config(kind_of<Dispatcher>);
  c.ctx = 500;
  CHECK(warnings(c).empty());
  c.settings<Dispatcher>().levels = 8;
  REQUIRE(warnings(c).size() == 1);
  CHECK(warnings(c)[0] == "model.levels: with 8 levels a layer spans 256 positions, but ctx: 500 needs 9 levels");
  c.settings<Dispatcher>().levels = 9;
  CHECK(warnings(c).empty());
  c.settings<Dispatcher>().levels = 10;
  CHECK(warnings(c) == std::vector<std::string>{"model.levels: 10 levels, but with ctx: 500 a layer spans every position after 9"});
  c.mixer = kind_of<Sdp>;
  CHECK(warnings(c).empty());
  c.settings<Sdp>().window = 500;
  CHECK(warnings(c).empty());
  c.settings<Sdp>().window = 501;
  CHECK(warnings(c) == std::vector<std::string>{"model.window: 501 is longer than ctx: 500, so a token attends to all tokens before it"});
}
