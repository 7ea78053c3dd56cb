#include "core/dims.h"

#include <doctest/doctest.h>

#include "core/error.h"
#include "cuda/device/device.h"

using namespace ricci;

namespace {

Dims matmul(const Tensor& a_mk, const Tensor& b_kn) { return DIMS(a_mk, b_kn); }
Dims square(const Tensor& a_mm) { return DIMS(a_mm); }
Dims any_shape(const Tensor& x, const Tensor& y) { return DIMS(x, y); }
Dims grid(const Tensor& x_b12ac) { return DIMS(x_b12ac); }
Dims linear(const Tensor& x_rd, const Tensor& w_fd, const Tensor& bias_f) { return DIMS(merged(x_rd), w_fd, optional(bias_f)); }
Dims pick(const Tensor& x_rd, const Tensor& y_r) { return DIMS(merged(x_rd), merged(y_r)); }
Dims add_rows(const Tensor& x_rd, const Tensor& y_rd) { return DIMS(merged(x_rd), merged(y_rd)); }
Dims pick(const Tensor& ids_bc, const Tensor& table_vd, const Tensor& lengths_b) {
  return DIMS(i64(ids_bc), table_vd, optional(i64(lengths_b)));
}
Dims view_of(const Tensor& x) { return DIMS(any_dtype(x)); }

Tensor ids(const Shape& shape, Device device = Device::cpu) { return Tensor(shape, Dtype::i64, device); }

}  // namespace

TEST_CASE("letters of the suffix are bound to extents") {
  const Dims n = matmul(Tensor({2, 3}), Tensor({3, 5}));
  CHECK(n['m'] == 2);
  CHECK(n['k'] == 3);
  CHECK(n['n'] == 5);
  CHECK(n['z'] == 0);
}

TEST_CASE("a letter with two extents names both tensors") {
  CHECK_THROWS_WITH_AS(matmul(Tensor({2, 3}), Tensor({4, 5})), "matmul: index k is 3 in a_mk[2 3] but 4 in b_kn[4 5]", Error);
  CHECK_THROWS_WITH_AS(matmul(Tensor({2, 0}), Tensor({4, 5})), "matmul: index k is 0 in a_mk[2 0] but 4 in b_kn[4 5]", Error);
  CHECK(square(Tensor({4, 4}))['m'] == 4);
  CHECK_THROWS_WITH_AS(square(Tensor({2, 3})), "square: index m is 3 in a_mm[2 3] but 2 in a_mm[2 3]", Error);
}

TEST_CASE("a tensor of another rank is named, and an empty one") {
  CHECK_THROWS_WITH_AS(matmul(Tensor({2, 3, 4}), Tensor({4, 5})), "matmul: a_mk[2 3 4] does not have the indices 'mk'", Error);
  CHECK_THROWS_WITH_AS(matmul(Tensor({2, 3}), Tensor({3})), "matmul: b_kn[3] does not have the indices 'kn'", Error);
  CHECK_THROWS_WITH_AS(matmul(Tensor(), Tensor({4, 5})), "matmul: a_mk is empty", Error);
}

TEST_CASE("a number in the suffix is a fixed extent") {
  const Dims n = grid(Tensor({7, 12, 2, 3}));
  CHECK(n['b'] == 7);
  CHECK(n['a'] == 2);
  CHECK(n['c'] == 3);
  CHECK_THROWS_WITH_AS(grid(Tensor({7, 11, 2, 3})), "grid: index 1 of x_b12ac[7 11 2 3] must be 12", Error);
}

TEST_CASE("a name without a suffix may have any shape") {
  any_shape(Tensor({2, 3}), Tensor(Shape{}));
  CHECK_THROWS_WITH_AS(any_shape(Tensor({2}), Tensor()), "any_shape: y is empty", Error);
  CHECK_THROWS_WITH_AS(any_shape(Tensor({2}), ids({2})), "any_shape: y[2] is i64, expected f32, f64 or bf16", Error);
}

TEST_CASE("merged: the first letter stands for all leading indices") {
  for (const Shape& shape : {Shape{10, 3}, Shape{2, 5, 3}, Shape{1, 2, 5, 3}}) {
    const Dims n = linear(Tensor(shape), Tensor({7, 3}), Tensor());
    CHECK(n['r'] == 10);
    CHECK(n['d'] == 3);
    CHECK(n['f'] == 7);
  }
  CHECK(linear(Tensor({3}), Tensor({7, 3}), Tensor())['r'] == 1);
  CHECK_THROWS_WITH_AS(linear(Tensor({2, 5, 3}), Tensor({7, 4}), Tensor()), "linear: index d is 3 in x_rd[10 3] but 4 in w_fd[7 4]", Error);
  CHECK_THROWS_WITH_AS(linear(Tensor(Shape{}), Tensor({7, 4}), Tensor()), "linear: x_rd[] does not have the indices 'rd'", Error);
  add_rows(Tensor({2, 5, 3}), Tensor({2, 5, 3}));
  CHECK_THROWS_WITH_AS(add_rows(Tensor({4, 8}), Tensor({2, 8})), "add_rows: index r is 4 in x_rd[4 8] but 2 in y_rd[2 8]", Error);
  CHECK_THROWS_WITH_AS(
      add_rows(Tensor({2, 4, 8}), Tensor({4, 2, 8})), "add_rows: x_rd[2 4 8] and y_rd[4 2 8] differ in the indices merged into r", Error);
  CHECK(pick(Tensor({2, 4, 8}), Tensor({2, 4}))['r'] == 8);
  CHECK_THROWS_WITH_AS(pick(Tensor({2, 4, 8}), Tensor({8})), "pick: x_rd[2 4 8] and y_r[8] differ in the indices merged into r", Error);
  CHECK_THROWS_WITH_AS(
      add_rows(Tensor({8, 8}), Tensor({4, 2, 8})), "add_rows: x_rd[8 8] and y_rd[4 2 8] differ in the indices merged into r", Error);
}

TEST_CASE("optional: what is empty is not checked, what is there is") {
  CHECK(linear(Tensor({10, 3}), Tensor({7, 3}), Tensor({7}))['f'] == 7);
  CHECK_THROWS_WITH_AS(linear(Tensor({10, 3}), Tensor({7, 3}), Tensor({8})), "linear: index f is 7 in w_fd[7 3] but 8 in bias_f[8]", Error);
  CHECK_THROWS_WITH_AS(
      linear(Tensor({10, 3}), Tensor({7, 3}), Tensor({7}, Dtype::f64)), "linear: x_rd is f32 on cpu, bias_f f64 on cpu", Error);
  CHECK_THROWS_WITH_AS(linear(Tensor({10, 3}), Tensor(), Tensor()), "linear: w_fd is empty", Error);
}

TEST_CASE("dtypes: floating-point inputs agree, integers are where they belong") {
  CHECK_THROWS_WITH_AS(matmul(Tensor({2, 3}, Dtype::bf16), Tensor({3, 5})), "matmul: a_mk is bf16 on cpu, b_kn f32 on cpu", Error);
  CHECK(pick(ids({2, 5}), Tensor({9, 3}, Dtype::bf16), ids({2}))['b'] == 2);
  CHECK(pick(ids({2, 5}), Tensor({9, 3}, Dtype::f64), Tensor())['v'] == 9);
  CHECK_THROWS_WITH_AS(pick(Tensor({2, 5}), Tensor({9, 3}), Tensor()), "pick: ids_bc[2 5] is f32, expected i64", Error);
  CHECK_THROWS_WITH_AS(pick(ids({2, 5}), ids({9, 3}), Tensor()), "pick: table_vd[9 3] is i64, expected f32, f64 or bf16", Error);
  CHECK_THROWS_WITH_AS(pick(ids({2, 5}), Tensor({9, 3}), Tensor({2})), "pick: lengths_b[2] is f32, expected i64", Error);
  for (Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::bf16, Dtype::i64}) view_of(Tensor({2}, dtype));
  CHECK_THROWS_WITH_AS(view_of(Tensor()), "view_of: x is empty", Error);
}

TEST_CASE("all inputs are on one device") {
  const Device other = Device::cuda_emulated;
  require(other);
  CHECK_THROWS_WITH_AS(
      matmul(Tensor({2, 3}), Tensor({3, 5}, Dtype::f32, other)), "matmul: a_mk is f32 on cpu, b_kn f32 on cuda_emulated", Error);
  CHECK_THROWS_WITH_AS(
      pick(ids({2, 5}), Tensor({9, 3}, Dtype::f32, other), Tensor()), "pick: ids_bc is i64 on cpu, table_vd f32 on cuda_emulated", Error);
  CHECK_THROWS_WITH_AS(pick(ids({2, 5}, other), Tensor({9, 3}, Dtype::f32, other), ids({2})),
      "pick: ids_bc is i64 on cuda_emulated, lengths_b i64 on cpu", Error);
}
