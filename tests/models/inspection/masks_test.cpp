// Masks of every family, cell by cell, the representations of each scale, and the spectra of forms.
#include <numeric>

#include "models/inspection/observation.h"
#include "ops/products/products.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

ModelConfig config_of(Family family, std::vector<int64_t> scales = {1, 4}) {
  ModelConfig config;
  config.family = family, config.vocab = 7, config.ctx = 16, config.d = 16, config.layers = 2;
  config.scales.scales = std::move(scales), config.stack_layers.layers = {1};
  apply_preset(config);
  return config;
}

std::vector<Mask> masks_of(const ModelConfig& config, int64_t tokens) { return masks(Model(config), tokens); }

// "0-0 0-1 -": the first and the last key of each query.
std::string rows_of(const Mask& mask) {
  std::string text;
  for (const Mask::Row& row : mask.rows)
    text += (text.empty() ? "" : " ") +
            (row.end > row.first ? std::to_string(row.first) + "-" + std::to_string(row.end - 1) : std::string("-"));
  return text;
}

// Q D Q^T with Q a product of reflections of drawn vectors.
Tensor with_eigenvalues(const Values& values, uint64_t seed) {
  const auto k = static_cast<int64_t>(values.size());
  Tensor m = zeros({k, k}, Dtype::f64, Device::cpu);
  for (int64_t i = 0; i < k; ++i) m.data<double>()[i * k + i] = values[static_cast<size_t>(i)];
  for (uint64_t n = 0; n < 3; ++n) {
    const Tensor v = drawn({k}, Dtype::f64, Device::cpu, seed + n);
    double norm = 0;
    for (int64_t i = 0; i < k; ++i) norm += item(v, i) * item(v, i);
    Tensor h = zeros({k, k}, Dtype::f64, Device::cpu);
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < k; ++j) h.data<double>()[i * k + j] = (i == j) - 2 * item(v, i) * item(v, j) / norm;
    m = contract("ij,jk->ik", contract("ij,jk->ik", h, m), h);
  }
  return m;
}

}  // namespace

TEST_CASE("masks: a decoder, with a window too") {
  ModelConfig config = config_of(family_of<Decoder>);
  const std::vector<Mask> whole = masks_of(config, 5);
  REQUIRE(whole.size() == 1);
  CHECK(whole[0].layer == "attention");
  CHECK(whole[0].heads == 4);
  CHECK(rows_of(whole[0]) == "0-0 0-1 0-2 0-3 0-4");
  config.settings<Sdp>().window = 2;
  CHECK(rows_of(masks_of(config, 5)[0]) == "0-0 0-1 1-2 2-3 3-4");
  config.mixer = kind_of<Dispatcher>;
  CHECK_THROWS_WITH_AS(masks_of(config, 5), "masks: the dispatcher mixer has no attention, so it has no mask", Error);
}

TEST_CASE("masks: top-down, cells of 4 tokens are read with the token that completes them, or one later") {
  ModelConfig config = config_of(family_of<TopDown>);
  const std::vector<Mask> tight = masks_of(config, 10);
  REQUIRE(tight.size() == 3);
  CHECK(tight[1].layer == "join");
  CHECK(tight[1].heads == 0);
  CHECK(tight[1].query_tokens == 1);
  CHECK(tight[1].key_tokens == 4);
  CHECK(rows_of(tight[1]) == "- - - 0-0 0-0 0-0 0-0 1-1 1-1 1-1");
  CHECK(tight[2].query_tokens == 4);
  CHECK(tight[2].key_tokens == 4);
  CHECK(rows_of(tight[2]) == "0-0 0-1");
  config.settings<TopDown>().shift = Shift::block;
  CHECK(rows_of(masks_of(config, 10)[1]) == "- - - - 0-0 0-0 0-0 0-0 1-1 1-1");
  CHECK(masks_of(config, 3).size() == 1);  // no cell of 4
}

TEST_CASE("masks: bottom-up, the aggregation layer sees complete cells") {
  const std::vector<Mask> masks = masks_of(config_of(family_of<BottomUp>, {1, 2, 4}), 8);
  REQUIRE(masks.size() == 5);
  CHECK(masks[0].layer == "aggregation");
  CHECK(masks[0].first_head == 0);
  CHECK(masks[0].heads == 2);
  CHECK(rows_of(masks[0]) == "- 0-0 0-0 0-1 0-1 0-2 0-2 0-3");
  CHECK(masks[1].first_head == 2);
  CHECK(masks[1].key_tokens == 4);
  CHECK(rows_of(masks[1]) == "- - - 0-0 0-0 0-0 0-0 0-1");
  CHECK(rows_of(masks[4]) == "0-0 0-1");
}

TEST_CASE("masks: a retina's windows, by both rules") {
  ModelConfig config = config_of(family_of<Retina>);
  config.settings<Retina>().windows = {{0, 2}, {2, 8}};
  const std::vector<Mask> inside = masks_of(config, 12);
  REQUIRE(inside.size() == 2);
  CHECK(rows_of(inside[0]) == "0-0 0-1 1-2 2-3 3-4 4-5 5-6 6-7 7-8 8-9 9-10 10-11");
  // Token 5 is 2 behind the end of cell 0; token 8 is 8 behind its begin, which is outside.
  CHECK(rows_of(inside[1]) == "- - - - - 0-0 0-0 0-0 - 1-1 1-1 1-1");
  config.settings<Retina>().cell_rule = CellRule::end;
  CHECK(rows_of(masks_of(config, 12)[1]) == "- - - - - 0-0 0-0 0-0 0-0 0-1 0-1 1-1");
}

TEST_CASE("representations: of each scale with blocks, one vector for each whole cell") {
  const auto shapes = [](Family family) {
    ModelConfig config = config_of(family);
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

TEST_CASE("spectrum: the eigenvalues that a matrix was made from, also negative, repeated and zero ones") {
  for (const Values& values : {Values{3}, Values{2, -1}, Values{5, 5, 5}, Values{0, 0, 0, 0}, Values{7, 1, 1, 0, -1e-3, -2},
           Values{1e150, -1e150}, Values{1e-150, 3e-150}}) {
    const std::vector<double> got = eigenvalues(with_eigenvalues(values, 3));
    REQUIRE(got.size() == values.size());
    double largest = 0;
    for (double v : values) largest = std::max(largest, std::abs(v));
    Values sorted = values;
    std::sort(sorted.rbegin(), sorted.rend());
    for (size_t i = 0; i < got.size(); ++i) CHECK(std::abs(got[i] - sorted[i]) <= 2e-14 * largest);
  }
  Values many(60);
  std::iota(many.begin(), many.end(), -20.0);
  const std::vector<double> got = eigenvalues(with_eigenvalues(many, 9));
  for (size_t i = 0; i < 60; ++i) CHECK(std::abs(got[i] - (39 - static_cast<double>(i))) < 1e-12);
}

TEST_CASE("spectrum: singular values of a product of known ones") {
  const Tensor d = with_eigenvalues({4, 2, 1, 0}, 3), rotated = contract("ij,jk->ik", d, with_eigenvalues({1, -1, 1, 1}, 8));
  const std::vector<double> got = singular_values(rotated);
  const double expected[] = {4, 2, 1, 0};
  for (size_t i = 0; i < 4; ++i) CHECK(std::abs(got[i] - expected[i]) < (i == 3 ? 1e-7 : 1e-13));
}

TEST_CASE("spectrum: inputs that are not square matrices of finite numbers") {
  CHECK(message_of([] { eigenvalues(zeros({2, 3}, Dtype::f64, Device::cpu)); }) == "eigenvalues: [2 3] is not a square matrix");
  CHECK(message_of([] { singular_values(zeros({2, 2}, Dtype::f32, Device::cpu)); }) == "singular_values: expected f64 on the CPU");
  const Tensor m = zeros({2, 2}, Dtype::f64, Device::cpu);
  m.data<double>()[3] = std::nan("");
  CHECK(message_of([&] { eigenvalues(m); }) == "eigenvalues: element 3 is not finite");
}
