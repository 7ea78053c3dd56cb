#include "core/dims.h"

#include <doctest/doctest.h>

#include "core/error.h"

using namespace ricci;

namespace {

Dims matmul(const Tensor& a_mk, const Tensor& b_kn) { return DIMS(a_mk, b_kn); }
Dims fixed(const Tensor& b12ac) { return DIMS(b12ac); }
Dims grid(const Tensor& x_b12ac) { return DIMS(x_b12ac); }

}  // namespace

TEST_CASE("letters of the suffix are bound to extents") {
  const Dims n = matmul(Tensor({2, 3}), Tensor({3, 5}));
  CHECK(n['m'] == 2);
  CHECK(n['k'] == 3);
  CHECK(n['n'] == 5);
}

TEST_CASE("a letter with two extents names both tensors") {
  CHECK_THROWS_WITH_AS(matmul(Tensor({2, 3}), Tensor({4, 5})), "matmul: index k is 3 in a_mk[2 3] but 4 in b_kn[4 5]", Error);
}

TEST_CASE("a tensor of another rank is named") {
  CHECK_THROWS_WITH_AS(matmul(Tensor({2, 3, 4}), Tensor({4, 5})), "matmul: a_mk[2 3 4] does not have the indices 'mk'", Error);
  CHECK_THROWS_WITH_AS(matmul(Tensor(), Tensor({4, 5})), "matmul: a_mk is empty", Error);
}

TEST_CASE("a number in the suffix is a fixed extent") {
  const Dims n = grid(Tensor({7, 12, 2, 3}));
  CHECK(n['b'] == 7);
  CHECK(n['a'] == 2);
  CHECK(n['c'] == 3);
  CHECK_THROWS_WITH_AS(grid(Tensor({7, 11, 2, 3})), "grid: index 1 of x_b12ac[7 11 2 3] must be 12", Error);
  CHECK_THROWS_AS(fixed(Tensor({7, 12, 2, 3})), Error);  // no underscore: no suffix
}
