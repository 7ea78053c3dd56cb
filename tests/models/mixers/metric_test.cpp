// The mixers around a form of one projection, and quad_full.
#include "models/mixers/metric.h"

#include "models/config.h"
#include "tests/models/model_cases.h"

using namespace ricci;

namespace {

ModelConfig small(MixerKind mixer) {
  ModelConfig c;
  c.vocab = 11, c.ctx = 13, c.d = 12, c.layers = 2, c.mixer = mixer, c.block.ff = 20;
  return c;
}

template <class F> void with_every_form(const F& f) {
  f.template operator()<Quad>(), f.template operator()<POnly>(), f.template operator()<Metric>(), f.template operator()<MetricPsd>();
}

const MixerShape kShape{.d = 12, .ctx = 7};

// A mixer with drawn weights, on the CPU in f64.
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

const Tensor kX = drawn({2, 7, 12}, Dtype::f64, Device::cpu, 4);

void fill_with_identity(const Tensor& packed, int64_t k, Triangle triangle) {
  fill(packed, 0);
  for (int64_t n = 0; n < packed.shape()[0]; ++n)
    for (int64_t i = 0; i < k; ++i) packed.data<double>()[n * packed_size(k) + packed_at(triangle, i, i, k)] = 1;
}

}  // namespace

TEST_CASE("metric: every form decodes as it reads, with a window and with values of their own") {
  with_every_form([]<class M>() {
    ModelConfig windowed = small(kind_of<M>), values = small(kind_of<M>);
    windowed.settings<M>().window = 3, windowed.settings<M>().heads = 3;
    values.settings<M>().value_proj = true, values.settings<M>().heads = 1;
    check_decoding(windowed, Device::cpu), check_decoding(values, Device::cpu);
  });
  ModelConfig full = small(kind_of<QuadFull>);
  full.settings<QuadFull>() = {3, 4};
  check_decoding(full, Device::cpu);
}

TEST_CASE("metric: the cache holds the projections alone, half of keys and values") {
  const Metric metric(kShape, {{.heads = 3}});
  const auto cache = metric.make_cache(2, Dtype::f32, Device::cpu);
  CHECK(cache.k_bnsk.raw() == cache.v_bnsk.raw());
  CHECK(cache.k_bnsk.shape() == Shape({2, 3, 7, 4}));
  const auto both = Metric(kShape, {{.heads = 3}, true}).make_cache(2, Dtype::f32, Device::cpu);
  CHECK(both.k_bnsk.raw() != both.v_bnsk.raw());
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
    ModelConfig config = small(mixer);
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

TEST_CASE("metric: beside f32 masters the gradients of metrics are f32, and not rounded to bf16") {
  const auto check_all = [](MixerKind mixer, const std::string& name) {
    Model model(small(mixer));
    model.init(3);
    model.place_for_training(Dtype::bf16, Device::cpu);
    Tape tape;
    tape.backward(model.loss({ids(2, 7, Device::cpu), ids(2, 7, Device::cpu, 3)}));
    int found = 0;
    model.each_parameter([&](const std::string& path, Parameter& p) {
      if (!path.ends_with(name)) return;
      CHECK(p.grad.dtype() == Dtype::f32);
      int64_t rounded = 0;
      for (int64_t i = 0; i < p.grad.size(); ++i) rounded += static_cast<float>(bf16(p.grad.data<float>()[i])) == p.grad.data<float>()[i];
      CHECK(rounded < p.grad.size() / 4);
      ++found;
    });
    CHECK(found == 2);
  };
  check_all(kind_of<Metric>, "m_metric"), check_all(kind_of<MetricPsd>, "l_metric"), check_all(kind_of<Quad>, "a_metric");
  check_all(kind_of<QuadFull>, "u_metric");
}

TEST_CASE("metric: what its keys may be") {
  with_every_form([]<class M>() {
    ModelConfig c = small(kind_of<M>);
    c.settings<M>().heads = 5;
    CHECK(message_of([&] { check(c); }) == "model.heads: 5 does not divide d = 12");
    c.settings<M>().heads = 3, c.settings<M>().window = 0;
    CHECK(message_of([&] { check(c); }) == "model.window: 0, expected 1 or more");
  });
}
