// The fused ops against their first rungs: values and gradients.
#include "ops/first_rungs.h"

#include "ops/attention/attention.h"
#include "ops/metric/metric.h"
#include "ops/products/products.h"
#include "ops/rows/layer_norm.h"
#include "ops/shift_and_sum/shift_and_sum.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

using Formula = std::function<Tensor(const std::vector<Tensor>& inputs)>;

// The values and, for random weights of its elements, the gradients of the inputs.
void check_same(const Formula& rung, const Formula& fused, const std::vector<Tensor>& inputs) {
  const Values y = values_of(rung(inputs));
  const Tensor dy = randn(rung(inputs).shape(), 99, Dtype::f64);
  CHECK(error_of(fused(inputs), y) <= 1e-12);
  CHECK(*std::max_element(y.begin(), y.end()) > 0.1);
  const std::vector<Tensor> expected = gradients_of(rung, inputs, dy), got = gradients_of(fused, inputs, dy);
  for (size_t i = 0; i < got.size(); ++i) CHECK(error_of(got[i], values_of(expected[i])) <= 1e-11);
}

Tensor numbers(const Shape& shape, uint64_t seed) { return randn(shape, seed, Dtype::f64); }

}  // namespace

TEST_CASE("first rungs: attention") {
  for (const Visibility& sees : {Visibility::causal(), Visibility::causal(3), Visibility::not_causal()})
    check_same([&](const auto& x) { return first_rungs::attention(x[0], x[1], x[2], sees, 2); },
        [&](const auto& x) { return attention(ColumnSlice{x[0]}, ColumnSlice{x[1]}, ColumnSlice{x[2]}, sees, {.heads = 2}); },
        {numbers({2, 7, 6}, 1), numbers({2, 7, 6}, 2), numbers({2, 7, 6}, 3)});
}

TEST_CASE("first rungs: matrix product") {
  const Tensor a_mk = numbers({3, 5}, 1), b_kn = numbers({5, 4}, 2);
  const Tensor c_mn = first_rungs::matrix_product(a_mk, b_kn), fused = contract("mk,kn->mn", a_mk, b_kn);
  REQUIRE(c_mn.size() == 12);
  for (int64_t i = 0; i < c_mn.size(); ++i) CHECK(item(c_mn, i) == doctest::Approx(item(fused, i)).epsilon(1e-13));
  CHECK_THROWS(first_rungs::matrix_product(a_mk, a_mk));
}

TEST_CASE("first rungs: layer norm, of matrices and of one row") {
  for (const Shape& shape : {Shape{2, 3, 6}, Shape{6}})
    check_same([&](const auto& x) { return first_rungs::layer_norm(x[0], x[1], x[2]); },
        [&](const auto& x) { return layer_norm(x[0], x[1], x[2]); }, {numbers(shape, 1), numbers({6}, 2), numbers({6}, 3)});
}

TEST_CASE("first rungs: classifier loss and the scores of a metric") {
  const Tensor targets_r = tensor_of(std::vector<int64_t>{3, -1, 0, 8, 4}, {5});
  check_same([&](const auto& x) { return first_rungs::classifier_loss(x[0], x[1], x[2], targets_r); },
      [&](const auto& x) { return classifier_loss(x[0], x[1], x[2], targets_r); },
      {numbers({5, 4}, 1), numbers({9, 4}, 2), numbers({9}, 3)});
  const Tensor m_nl = numbers({2, 6}, 2), M_nkK = whole_metric(m_nl, Triangle::upper);
  check_same([&](const auto& x) { return first_rungs::metric_scores(x[0], M_nkK); },
      [&](const auto& x) { return metric_scores(x[0], m_nl, Triangle::upper); }, {numbers({2, 5, 6}, 1)});
}

TEST_CASE("first rungs: shift and sum, level by level in place") {
  for (const int64_t positions : {1, 2, 7, 16}) {
    const Tensor v_bcd = numbers({2, positions, 6}, 1), coef_bcx = numbers({2, positions, 8}, 2);
    const Tensor y_bcd = first_rungs::shift_and_sum(v_bcd, coef_bcx, 2);
    const Tensor definition = naive_shift_and_sum(v_bcd, coef_bcx, {.heads = 2}), fused = shift_and_sum(v_bcd, coef_bcx, {.heads = 2});
    for (int64_t i = 0; i < y_bcd.size(); ++i) {
      CHECK(item(y_bcd, i) == doctest::Approx(item(definition, i)).epsilon(1e-13));
      CHECK(item(y_bcd, i) == doctest::Approx(item(fused, i)).epsilon(1e-13));
    }
  }
}
