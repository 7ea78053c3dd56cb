// Contractions against their definition: a loop over every combination of the indices.
#include <map>

#include "core/cpu/parallel.h"
#include "ops/products/products.h"
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
  // Summing the indices of one factor alone, the product and the gradient that is handed back round once each.
  const double bound = 3 * unit(dtype) + (f.terms() + 2) * sum_unit(dtype);
  const Tensor y = contract(text, a, b);
  CHECK(y.shape() == shape_of(f.y, f.extent));
  CHECK(error_of(y, expected.y, expected.y_size) <= bound);
  const auto grads = gradients_of([&](const std::vector<Tensor>& x) { return contract(text, x[0], x[1]); }, {a, b}, dy);
  CHECK(error_of(grads[0], expected.da, expected.da_size) <= bound);
  CHECK(error_of(grads[1], expected.db, expected.db_size) <= bound);
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

TEST_CASE("sizes that are cut up, on the CPU") {
  for (Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    check({"bcnk", "bCnk", "bncC", {{'b', 3}, {'c', 40}, {'C', 37}, {'n', 4}, {'k', 32}}}, Device::cpu, dtype);
    check({"bcd", "fd", "bcf", {{'b', 5}, {'c', 33}, {'d', 70}, {'f', 65}}}, Device::cpu, dtype);
  }
}

TEST_CASE("the bits of a contraction do not depend on the number of threads") {
  const int threads = thread_count();
  const Tensor a = drawn({3, 70, 4, 32}, Dtype::f32, Device::cpu, 1), b = drawn({3, 64, 4, 32}, Dtype::f32, Device::cpu, 2);
  Tensor first;
  for (int count : {1, 2, 5}) {
    set_thread_count(count);
    const Tensor y = contract("bcnk,bCnk->bncC", a, b);
    if (!first) first = y;
    CHECK(same_bits(first, y));
  }
  set_thread_count(threads);
}

TEST_CASE("a contraction with a constant is one op on the tape") {
  const Tensor a = drawn({3, 4}, Dtype::f32, Device::cpu, 1), b = drawn({4, 5}, Dtype::f32, Device::cpu, 2);
  Tape tape;
  const Tensor watched = tape.watch(a);
  const Tensor y = contract("mk,kn->mn", watched, b);
  REQUIRE(tape.op_names().size() == 1);
  CHECK(std::string(tape.op_names()[0]) == "contract");
  tape.backward({y}, {drawn({3, 5}, Dtype::f32, Device::cpu, 3)});
  CHECK(tape.gradient_of(watched).shape() == Shape{3, 4});
}

TEST_CASE("errors of contract name the values") {
  const auto error = [](const char* formula, Shape a, Shape b) { return message_of([&] { contract(formula, Tensor(a), Tensor(b)); }); };
  CHECK(error("mk,kn->mn", {2, 3}, {4, 5}) == "contract: index k is 3 in a[2 3] but 4 in b[4 5] of 'mk,kn->mn'");
  CHECK(error("mk,kn->mn", {2, 3, 1}, {3, 5}) == "contract: a[2 3 1] does not have the indices 'mk' of 'mk,kn->mn'");
  CHECK(error("mk,kn->mn", {2, 3}, {3}) == "contract: b[3] does not have the indices 'kn' of 'mk,kn->mn'");
  CHECK(error("mm,mn->n", {2, 2}, {2, 5}) == "contract: index m is twice in 'mm' of 'mm,mn->n'");
  CHECK(error("mk,kn->mm", {2, 3}, {3, 5}) == "contract: index m is twice in 'mm' of 'mk,kn->mm'");
  CHECK(error("mk,kn->mx", {2, 3}, {3, 5}) == "contract: index x of the result of 'mk,kn->mx' is in neither factor");
  CHECK(error("mk,kn", {2, 3}, {3, 5}) == "contract: 'mk,kn' is not 'p,q->o'");
  CHECK(error("mk->m", {2, 3}, {3, 5}) == "contract: 'mk->m' is not 'p,q->o'");
  CHECK(error("m k,kn->mn", {2, 3}, {3, 5}) == "contract: ' ' in 'm k,kn->mn' is no index");
  CHECK(error("mk,kn,no->mo", {2, 3}, {3, 5}) == "contract: 'mk,kn,no->mo' is not 'p,q->o'");
  CHECK(message_of([&] { contract("m,m->m", Tensor({2}), Tensor({2}, Dtype::f64)); }) == "contract: a is f32 on cpu, b f64 on cpu");
}
