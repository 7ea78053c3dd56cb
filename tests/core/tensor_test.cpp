#include "core/tensor.h"

#include <doctest/doctest.h>

#include <limits>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/memory/memory.h"
#include "core/view.h"

using namespace ricci;

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
  { const Tensor t({1000}); }
  const int64_t asked = memory_use(Device::cpu).allocations;
#if !defined(__SANITIZE_ADDRESS__)
  for (int i = 0; i < 10; ++i) const Tensor t({1000});
  CHECK(memory_use(Device::cpu).allocations == asked);
#endif
  CHECK(asked > 0);
}

namespace {

// The message of a tensor that cannot be made.
std::string complaint(const Shape& shape, Dtype dtype) {
  try {
    const Tensor t(shape, dtype);
  } catch (const Error& error) {
    return error.what();
  }
  return "made";
}

}  // namespace

TEST_CASE("a tensor that no memory could hold is an error, not a small block") {
  const int64_t large = int64_t{1} << 30;
  CHECK(complaint({large, large}, Dtype::f64) == "tensor: [1073741824 1073741824] f64 is larger than any memory");
  CHECK(complaint({large, large, 4}, Dtype::bf16) == "tensor: [1073741824 1073741824 4] bf16 is larger than any memory");
#if !defined(__SANITIZE_ADDRESS__)  // its allocator ends the program
  const std::string text = complaint({large, large}, Dtype::f32);
  CHECK(text.find("asked for 4194304.0 TiB (4611686018427387904 bytes); this machine has ") != text.npos);
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
  CHECK_FALSE(r.unique());
  r.written();
  CHECK(t.version() == 1);
  CHECK_THROWS_WITH_AS(t.reshaped({5, 5}), "reshape: [4 6] cannot become [5 5]", Error);
  CHECK_THROWS_WITH_AS(t.rows(3, 2), "rows: 3 .. 5 are not all in [4 6]", Error);
}

TEST_CASE("the element type is checked") {
  const Tensor t({2, 3}, Dtype::f64);
  CHECK_THROWS_WITH_AS(t.data<float>(), "tensor [2 3]: its elements are f64, not f32", Error);
  CHECK_THROWS_WITH_AS(with_dtype(Tensor({2}, Dtype::i64), [](auto) {}), "expected a floating-point tensor, got i64 [2]", Error);
  CHECK_THROWS_WITH_AS(with_dtype(Tensor(), [](auto) {}), "expected a floating-point tensor, got an empty one", Error);
}

TEST_CASE("shapes are checked") {
  CHECK_THROWS_WITH_AS(Shape({2, -1}), "shape: extent -1 is negative", Error);
  CHECK_THROWS_WITH_AS(Shape({1, 1, 1, 1, 1, 1, 1}), "shape: more than 6 extents", Error);
  CHECK(Shape().size() == 1);
  CHECK(Shape({3, 0}).size() == 0);
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
  CHECK(static_cast<float>(bf16(1.0f)) == 1.0f);
  CHECK(static_cast<float>(bf16(1.00390625f)) == 1.0f);       // halfway, to even
  CHECK(static_cast<float>(bf16(1.01171875f)) == 1.015625f);  // halfway, to even
  CHECK(static_cast<float>(bf16(-3.0e38f)) < -2.9e38f);
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(static_cast<float>(bf16(infinity)) == infinity);
  const float nan = static_cast<float>(bf16(std::numeric_limits<float>::quiet_NaN()));
  CHECK(nan != nan);
}
