// Contractions against their definition, a loop over every combination of the indices; linear maps on top of them.
#include "ops/products/products.h"

#include <map>

#include "core/dims.h"
#include "ops/elements/activations.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

struct Expected {
  Values y, da, db;                 // the result and, given dy, the gradients
  Values y_size, da_size, db_size;  // sums of the absolute values of the same terms
};

size_t offset(const std::string& letters, const std::map<char, int64_t>& extent, const std::map<char, int64_t>& index) {
  int64_t at = 0;
  for (char letter : letters) at = at * extent.at(letter) + index.at(letter);
  return static_cast<size_t>(at);
}

Shape shape_of(const std::string& letters, const std::map<char, int64_t>& extent) {
  Shape shape;
  for (char letter : letters) shape.push_back(extent.at(letter));
  return shape;
}

struct Formula {
  std::string a, b, y;
  std::map<char, int64_t> extent;

  std::string text() const { return a + "," + b + "->" + y; }
  double terms() const {  // in the longest sum among the result and the gradients
    double n = 1;
    for (const auto& [letter, size] : extent) n *= static_cast<double>(size);
    return n;
  }
  Expected naive(const Values& a_values, const Values& b_values, const Values& dy) const {
    const auto zeros_for = [&](const std::string& letters) { return Values(static_cast<size_t>(shape_of(letters, extent).size())); };
    Expected e{zeros_for(y), zeros_for(a), zeros_for(b), zeros_for(y), zeros_for(a), zeros_for(b)};
    std::map<char, int64_t> index;
    for (const auto& [letter, size] : extent) {
      index[letter] = 0;
      if (size == 0) return e;
    }
    for (bool more = true; more;) {
      const size_t i = offset(a, extent, index), j = offset(b, extent, index), o = offset(y, extent, index);
      const auto add = [](double& sum, double& size, double term) { sum += term, size += std::abs(term); };
      add(e.y[o], e.y_size[o], a_values[i] * b_values[j]);
      add(e.da[i], e.da_size[i], dy[o] * b_values[j]);
      add(e.db[j], e.db_size[j], dy[o] * a_values[i]);
      more = false;
      for (auto& [letter, at] : index) {
        if ((more = ++at < extent.at(letter))) break;
        at = 0;
      }
    }
    return e;
  }
};

// The result and both gradients.
void check(const Formula& f, Device device, Dtype dtype) {
  const std::string text = f.text();
  CAPTURE(text);
  const Tensor a = drawn(shape_of(f.a, f.extent), dtype, device, 1), b = drawn(shape_of(f.b, f.extent), dtype, device, 2);
  const Tensor dy = drawn(shape_of(f.y, f.extent), dtype, device, 3);
  const Expected expected = f.naive(values_of(a), values_of(b), values_of(dy));
  // The sum over indices of only one factor, the product and the returned gradient are rounded once each.
  const double bound = 3 * unit(dtype) + (f.terms() + 2) * sum_unit(dtype);
  const Tensor y = contract(text, a, b);
  CHECK(y.shape() == shape_of(f.y, f.extent));
  CHECK(error_of(y, expected.y, expected.y_size) <= bound);
  const auto grads = gradients_of([&](const std::vector<Tensor>& x) { return contract(text, x[0], x[1]); }, {a, b}, dy);
  CHECK(error_of(grads[0], expected.da, expected.da_size) <= bound);
  CHECK(error_of(grads[1], expected.db, expected.db_size) <= bound);
}

// y_rf = sum_d x_rd w_fd + bias_f, and the gradients.
void check_linear(const Shape& shape, int64_t f, bool with_bias, Device device, Dtype dtype) {
  const int64_t d = shape[-1];
  int64_t rows = 1;
  for (int i = 0; i < shape.rank() - 1; ++i) rows *= shape[i];
  INFO("shape ", show(shape), ", f ", f, ", with_bias ", with_bias);
  Shape out = shape;
  out.set(-1, f);
  const Tensor x = drawn(shape, dtype, device, 1), w = drawn({f, d}, dtype, device, 2), dy = drawn(out, dtype, device, 4);
  const Tensor bias = with_bias ? drawn({f}, dtype, device, 3) : Tensor();
  const Values dyv = values_of(dy), biases = with_bias ? values_of(bias) : Values(static_cast<size_t>(f));
  Expected e = Formula{"rd", "fd", "rf", {{'r', rows}, {'d', d}, {'f', f}}}.naive(values_of(x), values_of(w), dyv);
  Values dbias(biases.size()), dbias_size(biases.size());
  for (size_t i = 0; i < dyv.size(); ++i) {
    const size_t at = i % biases.size();
    e.y[i] += biases[at], e.y_size[i] += std::abs(biases[at]);
    dbias[at] += dyv[i], dbias_size[at] += std::abs(dyv[i]);
  }
  const auto bound = [&](int64_t terms) { return 1.01 * unit(dtype) + static_cast<double>(terms + 2) * sum_unit(dtype); };
  const Tensor y = linear(x, w, bias);
  CHECK(y.shape() == out);
  CHECK(error_of(y, e.y, e.y_size) <= bound(d));
  std::vector<Tensor> inputs = {x, w};
  if (with_bias) inputs.push_back(bias);
  const auto map = [&](const std::vector<Tensor>& in) { return linear(in[0], in[1], with_bias ? in[2] : Tensor()); };
  const auto grads = gradients_of(map, inputs, dy);
  CHECK(error_of(grads[0], e.da, e.da_size) <= bound(f));
  CHECK(error_of(grads[1], e.db, e.db_size) <= bound(rows));
  if (with_bias) CHECK(error_of(grads[2], dbias, dbias_size) <= bound(rows));
}

}  // namespace

TEST_CASE("formulas: the result and both gradients") {
  const std::vector<Formula> formulas = {
      {"mk", "kn", "mn", {{'m', 5}, {'k', 7}, {'n', 3}}},
      {"km", "nk", "nm", {{'m', 5}, {'k', 7}, {'n', 3}}},
      {"bcnk", "bCnk", "bncC", {{'b', 2}, {'c', 5}, {'C', 3}, {'n', 3}, {'k', 4}}},
      {"bncC", "bCnk", "bcnk", {{'b', 2}, {'c', 5}, {'C', 3}, {'n', 3}, {'k', 4}}},
      {"bcd", "fd", "bcf", {{'b', 2}, {'c', 3}, {'d', 5}, {'f', 7}}},
      {"mk", "k", "m", {{'m', 5}, {'k', 33}}},
      {"k", "k", "", {{'k', 65}}},
      {"m", "n", "mn", {{'m', 5}, {'n', 3}}},
      {"m", "n", "nm", {{'m', 5}, {'n', 3}}},
      {"mxk", "kn", "nm", {{'m', 3}, {'x', 4}, {'k', 5}, {'n', 2}}},
      {"xmk", "yknz", "mn", {{'m', 3}, {'x', 4}, {'k', 5}, {'n', 2}, {'y', 2}, {'z', 3}}},
      {"x", "y", "", {{'x', 4}, {'y', 3}}},
      {"b", "b", "b", {{'b', 17}}},
      {"bm", "mb", "bm", {{'b', 4}, {'m', 3}}},
      {"", "mn", "nm", {{'m', 5}, {'n', 3}}},
      {"kml", "lkn", "mn", {{'k', 3}, {'m', 4}, {'l', 5}, {'n', 2}}},
      {"amcb", "bnda", "abcdmn", {{'a', 2}, {'b', 3}, {'c', 2}, {'d', 2}, {'m', 3}, {'n', 2}}},
      {"abcdef", "fedcba", "", {{'a', 2}, {'b', 3}, {'c', 2}, {'d', 1}, {'e', 2}, {'f', 3}}},
      {"mk", "kn", "mn", {{'m', 1}, {'k', 1}, {'n', 1}}},
      {"mk", "kn", "mn", {{'m', 4}, {'k', 0}, {'n', 3}}},
      {"mk", "kn", "mn", {{'m', 0}, {'k', 2}, {'n', 3}}},
  };
  on_every_device_and_dtype([&](Device device, Dtype dtype) {
    for (const Formula& f : formulas) check(f, device, dtype);
  });
}

TEST_CASE("linear: odd sizes, one row, one column, no rows, no width") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (bool bias : {true, false}) {
      for (const auto& [shape, f] :
          {std::pair<Shape, int64_t>{{2, 3, 5}, 7}, {{33}, 17}, {{1, 65}, 33}, {{3, 2, 2, 4}, 1}, {{17, 1}, 5}, {{0, 3}, 4}, {{3, 0}, 4}})
        check_linear(shape, f, bias, device, dtype);
    }
  });
}

TEST_CASE("contract and linear: sizes that are cut up, on the CPU, the same bits for any number of threads") {
  for (Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    check({"bcnk", "bCnk", "bncC", {{'b', 3}, {'c', 40}, {'C', 37}, {'n', 4}, {'k', 32}}}, Device::cpu, dtype);
    check({"bcd", "fd", "bcf", {{'b', 5}, {'c', 33}, {'d', 70}, {'f', 65}}}, Device::cpu, dtype);
  }
  for (Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::bf16}) {
    check_linear({12, 33, 70}, 65, true, Device::cpu, dtype);
    check_linear({1, 300}, 700, true, Device::cpu, dtype);
    check_linear({3, 300}, 130, false, Device::cpu, dtype);
  }
  const auto f32 = [](const Shape& shape, uint64_t stream) { return drawn(shape, Dtype::f32, Device::cpu, stream); };
  const Tensor a = f32({3, 70, 4, 32}, 1), b = f32({3, 64, 4, 32}, 2);
  check_threads([&] { return std::vector<Tensor>{contract("bcnk,bCnk->bncC", a, b)}; });
  const auto map = [](const std::vector<Tensor>& in) { return linear(in[0], in[1], in[2]); };
  const std::vector<Tensor> inputs = {f32({300, 130}, 1), f32({390, 130}, 2), f32({390}, 3)};
  check_threads([&] {
    std::vector<Tensor> all = gradients_of(map, inputs, f32({300, 390}, 4));
    all.push_back(map(inputs));
    return all;
  });
}

TEST_CASE("errors of contract name the values") {
  const auto error = [](const char* formula, Shape a, Shape b) { return message_of([&] { contract(formula, Tensor(a), Tensor(b)); }); };
  CHECK(error("mk,kn->mn", {2, 3}, {4, 5}) ==
        "contract: the extent of index k is 3 in a[2 3] and 4 in b[4 5] of 'mk,kn->mn', expected equal extents");
  CHECK(error("mk,kn->mn", {2, 3, 1}, {3, 5}) == "contract: a[2 3 1] does not have the indices 'mk' of 'mk,kn->mn'");
  CHECK(error("mk,kn->mn", {2, 3}, {3}) == "contract: b[3] does not have the indices 'kn' of 'mk,kn->mn'");
  CHECK(error("mm,mn->n", {2, 2}, {2, 5}) == "contract: duplicate index m in 'mm' of 'mm,mn->n'");
  CHECK(error("mk,kn->mm", {2, 3}, {3, 5}) == "contract: duplicate index m in 'mm' of 'mk,kn->mm'");
  CHECK(error("mk,kn->mx", {2, 3}, {3, 5}) == "contract: index x of the result of 'mk,kn->mx' is in neither factor");
  CHECK(error("mk,kn", {2, 3}, {3, 5}) == "contract: the formula is 'mk,kn', expected the form 'p,q->o'");
  CHECK(error("mk->m", {2, 3}, {3, 5}) == "contract: the formula is 'mk->m', expected the form 'p,q->o'");
  CHECK(error("m k,kn->mn", {2, 3}, {3, 5}) == "contract: ' ' in 'm k,kn->mn' is not a letter");
  CHECK(error("mk,kn,no->mo", {2, 3}, {3, 5}) == "contract: the formula is 'mk,kn,no->mo', expected the form 'p,q->o'");
  CHECK(message_of([&] { contract("m,m->m", Tensor({2}), Tensor({2}, Dtype::f64)); }) == "contract: a is f32 on cpu, but b is f64 on cpu");
}

TEST_CASE("errors of linear name the values") {
  const auto error = [](const Tensor& x, const Tensor& w, const Tensor& bias) { return message_of([&] { linear(x, w, bias); }); };
  CHECK(error(Tensor({2, 5, 3}), Tensor({7, 4}), Tensor()) == "linear: index d is 3 in x_rd[10 3] but 4 in w_fd[7 4]");
  CHECK(error(Tensor({5, 3}), Tensor({7, 3}), Tensor({6})) == "linear: index f is 7 in w_fd[7 3] but 6 in bias_f[6]");
  CHECK(error(Tensor(Shape{}), Tensor({7, 1}), Tensor()) == "linear: x_rd[] does not have the indices 'rd'");
}
