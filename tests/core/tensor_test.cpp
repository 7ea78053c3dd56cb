// Tensors, their memory and shapes; dims from names of arguments; numbers in messages.
#include "core/tensor.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "core/dims.h"
#include "core/error.h"
#include "core/memory/memory.h"
#include "core/view.h"
#include "cuda/device/device.h"
#include "tests/data/files.h"

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

TEST_CASE("bytes are accounted for while tensors live") {
  const int64_t before = memory_use(Device::cpu).current;
  reset_peak(Device::cpu);
  {
    const Tensor a({10, 10}, Dtype::f64);
    CHECK(memory_use(Device::cpu).current == before + 800);
    const Tensor shared = a;
    CHECK(memory_use(Device::cpu).current == before + 800);
    { const Tensor b({25}, Dtype::bf16); }
  }
  CHECK(memory_use(Device::cpu).current == before);
  CHECK(memory_use(Device::cpu).peak == before + 850);
}

TEST_CASE("a released block is used again") {
  const void* block = nullptr;
  {
    const Tensor t({1000});
    block = t.raw();
  }
  const Tensor larger({1020}), other({1000});
#if !defined(__SANITIZE_ADDRESS__)
  CHECK(larger.raw() == block);  // it has the same size class
#endif
  CHECK(other.raw() != larger.raw());
}

TEST_CASE("a thread gets first the block that it released itself") {
  Allocator& memory = allocator_of(Device::cpu);
  void* const own = memory.allocate(12345);
  void* const other = memory.allocate(12345);
  memory.release(own, 12345);
  std::thread([&] { memory.release(other, 12345); }).join();
  void* const first = memory.allocate(12345);
  void* const second = memory.allocate(12345);
#if !defined(__SANITIZE_ADDRESS__)
  CHECK(first == own);
  CHECK(second == other);  // no block stays unused while one is missing
#endif
  memory.release(first, 12345);
  memory.release(second, 12345);
}

TEST_CASE("a tensor that no memory could hold is an error, not a small block") {
  const int64_t large = int64_t{1} << 30;
  CHECK_THROWS_WITH_AS(Tensor({large, large}, Dtype::f64), "tensor: [1073741824 1073741824] f64 is larger than any memory", Error);
  CHECK_THROWS_WITH_AS(Tensor({large, large, 4}, Dtype::bf16), "tensor: [1073741824 1073741824 4] bf16 is larger than any memory", Error);
  CHECK_THROWS_WITH_AS(
      Tensor({0, large, large, large}), "tensor: [0 1073741824 1073741824 1073741824] f32 is larger than any memory", Error);
  // Products of these extents wrap around to 0 and to 1.
  CHECK_THROWS_WITH_AS(
      Tensor({0}).reshaped({large * 4, large * 4}), "tensor: [4294967296 4294967296] f32 is larger than any memory", Error);
  CHECK_THROWS_WITH_AS(
      Tensor({1}).reshaped({7, 7905747460161236407}), "tensor: [7 7905747460161236407] f32 is larger than any memory", Error);
#if !defined(__SANITIZE_ADDRESS__)  // its allocator ends the program
  const std::string text = test_data::error_of([&] { Tensor({large, large}); });
  CHECK(test_data::contains(text, "asked for 4194304.0 TiB (4611686018427387904 bytes); this machine has "));
#endif
}

TEST_CASE("blocks of every size are apart and aligned") {
  std::vector<Tensor> all;
  for (int64_t n : {0, 1, 15, 16, 17, 63, 64, 65, 255, 256, 257, 1000, 4095, 4097, 70000, 1 << 20, (1 << 21) + 3, (1 << 23) + 1}) {
    all.emplace_back(Shape{n});
    float* data = all.back().data<float>();
    CHECK(reinterpret_cast<uintptr_t>(data) % 64 == 0);
    for (int64_t i = 0; i < n; ++i) data[i] = static_cast<float>(n);
  }
  for (const Tensor& t : all)
    for (int64_t i = 0; i < t.size(); i += 61) CHECK(t.data<float>()[i] == static_cast<float>(t.size()));
}

TEST_CASE("reshaped and rows share storage") {
  const Tensor t({4, 6});
  for (int i = 0; i < 24; ++i) t.data<float>()[i] = static_cast<float>(i);
  const Tensor r = t.reshaped({2, 12}).rows(1, 1);
  CHECK(r.shape() == Shape({1, 12}));
  CHECK(r.data<float>()[0] == 12);
  CHECK(r.storage()->is_shared());
  r.written();
  CHECK(t.storage()->version == 1);
  CHECK_THROWS_WITH_AS(t.reshaped({5, 5}), "reshape: [4 6] cannot become [5 5]", Error);
  CHECK_THROWS_WITH_AS(t.rows(3, 2), "rows: 2 rows from row 3 on do not fit in [4 6]", Error);
  CHECK_THROWS_WITH_AS(t.rows(1, INT64_MAX), "rows: 9223372036854775807 rows from row 1 on do not fit in [4 6]", Error);
  CHECK_THROWS_WITH_AS(t.rows(INT64_MAX, 2), "rows: 2 rows from row 9223372036854775807 on do not fit in [4 6]", Error);
}

TEST_CASE("the element type is checked") {
  const Tensor t({2, 3}, Dtype::f64);
  CHECK_THROWS_WITH_AS(t.data<float>(), "tensor [2 3]: its elements are f64, expected f32", Error);
  CHECK_THROWS_WITH_AS(with_dtype(Tensor({2}, Dtype::i64), [](auto) {}), "expected a floating-point tensor, got i64 [2]", Error);
  CHECK_THROWS_WITH_AS(with_dtype(Tensor(), [](auto) {}), "expected a floating-point tensor, got an empty tensor", Error);
}

TEST_CASE("shapes are checked") {
  CHECK_THROWS_WITH_AS(Shape({2, -1}), "shape: extent -1 is negative", Error);
  CHECK_THROWS_WITH_AS(Shape({1, 1, 1, 1, 1, 1, 1}), "shape: more than 6 extents", Error);
  CHECK((Shape().size() == 1 && Shape({3, 0}).size() == 0));
}

TEST_CASE("moving leaves an empty tensor, copying does not") {
  Tensor a({3});
  Tensor b = a;
  const Tensor c = std::move(a);
  CHECK_FALSE(static_cast<bool>(a));
  CHECK(b.raw() == c.raw());
  const Tensor& same = b;
  b = same;
  CHECK(static_cast<bool>(b));
}

TEST_CASE("a view is indexed like the formula and merges leading indices") {
  const Tensor x_bcd({2, 3, 4});
  for (int i = 0; i < 24; ++i) x_bcd.data<float>()[i] = static_cast<float>(i);
  const auto x3 = view<const float, 3>(x_bcd);
  const auto x2 = view<const float, 2>(x_bcd);
  CHECK(x3(1, 2, 3) == 23);
  CHECK(x2.extent[0] == 6);
  CHECK(x2(5, 3) == 23);
}

TEST_CASE("bf16 rounds to nearest even and keeps NaN and infinity") {
  const auto rounded = [](float x) { return static_cast<float>(bf16(x)); };
  CHECK(rounded(1.00390625f) == 1.0f);       // halfway, to even
  CHECK(rounded(1.01171875f) == 1.015625f);  // halfway, to even
  CHECK(rounded(-3.0e38f) < -2.9e38f);
  CHECK(rounded(INFINITY) == INFINITY);
  CHECK(std::isnan(rounded(NAN)));
}

TEST_CASE("letters of the suffix are bound to extents") {
  const Dims n = matmul(Tensor({2, 3}), Tensor({3, 5}));
  CHECK((n['m'] == 2 && n['k'] == 3 && n['n'] == 5 && n['z'] == 0));
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
  CHECK((n['b'] == 7 && n['a'] == 2 && n['c'] == 3));
  CHECK_THROWS_WITH_AS(grid(Tensor({7, 11, 2, 3})), "grid: index 1 of x_b12ac[7 11 2 3] must be 12", Error);
}

TEST_CASE("a name without a suffix allows any shape") {
  any_shape(Tensor({2, 3}), Tensor(Shape{}));
  CHECK_THROWS_WITH_AS(any_shape(Tensor({2}), Tensor()), "any_shape: y is empty", Error);
  CHECK_THROWS_WITH_AS(any_shape(Tensor({2}), ids({2})), "any_shape: y[2] is i64, expected f32, f64 or bf16", Error);
}

TEST_CASE("merged: the first letter stands for all leading indices") {
  for (const Shape& shape : {Shape{10, 3}, Shape{2, 5, 3}, Shape{1, 2, 5, 3}}) {
    const Dims n = linear(Tensor(shape), Tensor({7, 3}), Tensor());
    CHECK((n['r'] == 10 && n['d'] == 3 && n['f'] == 7));
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

TEST_CASE("optional: an empty tensor is not checked, any other is") {
  CHECK(linear(Tensor({10, 3}), Tensor({7, 3}), Tensor({7}))['f'] == 7);
  CHECK_THROWS_WITH_AS(linear(Tensor({10, 3}), Tensor({7, 3}), Tensor({8})), "linear: index f is 7 in w_fd[7 3] but 8 in bias_f[8]", Error);
  CHECK_THROWS_WITH_AS(
      linear(Tensor({10, 3}), Tensor({7, 3}), Tensor({7}, Dtype::f64)), "linear: x_rd is f32 on cpu, but bias_f is f64 on cpu", Error);
  CHECK_THROWS_WITH_AS(linear(Tensor({10, 3}), Tensor(), Tensor()), "linear: w_fd is empty", Error);
}

TEST_CASE("dtypes: floating-point inputs agree, integers are where they belong") {
  CHECK_THROWS_WITH_AS(matmul(Tensor({2, 3}, Dtype::bf16), Tensor({3, 5})), "matmul: a_mk is bf16 on cpu, but b_kn is f32 on cpu", Error);
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
      matmul(Tensor({2, 3}), Tensor({3, 5}, Dtype::f32, other)), "matmul: a_mk is f32 on cpu, but b_kn is f32 on cuda_emulated", Error);
  CHECK_THROWS_WITH_AS(pick(ids({2, 5}), Tensor({9, 3}, Dtype::f32, other), Tensor()),
      "pick: ids_bc is i64 on cpu, but table_vd is f32 on cuda_emulated", Error);
  CHECK_THROWS_WITH_AS(pick(ids({2, 5}, other), Tensor({9, 3}, Dtype::f32, other), ids({2})),
      "pick: ids_bc is i64 on cuda_emulated, but lengths_b is i64 on cpu", Error);
}

TEST_CASE("numbers, letters and texts in messages") {
  CHECK(format_message("{} {}", {std::numeric_limits<uint64_t>::max(), std::numeric_limits<size_t>::max()}) ==
        "18446744073709551615 18446744073709551615");
  CHECK(format_message("{} {}", {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) ==
        "-9223372036854775808 9223372036854775807");
  CHECK(format_message("{} {} {}", {-1, uint32_t{4294967295}, uint8_t{200}}) == "-1 4294967295 200");
  CHECK(format_message("{} {} {:.3g} {}", {'k', "text", 2.0f / 3, std::string("string")}) == "k text 0.667 string");
  CHECK_THROWS_WITH_AS(fail("op: {} is wrong", {uint64_t{1} << 63}), "op: 9223372036854775808 is wrong", Error);
}
