// Sums over rows, and for_each_element on arrays that begin anywhere and end anywhere. On the GPU most elements are read and written 16
// bytes at a time, and the others one by one.
#include "tests/ops/values.h"

using namespace ricci;

namespace {

constexpr int64_t kMargin = 9;  // elements before and after, which must not change

// n elements, `first` after a multiple of 16 bytes, within a larger tensor.
struct Inside {
  Tensor all, part;
  Inside(int64_t n, int64_t first, Dtype dtype, Device device, uint64_t stream)
      : all(drawn({16 + first + n + kMargin}, dtype, device, stream)), part(all.rows(16 + first, n)) {}

  // `all` with these values instead of the part.
  Values with(const Values& values) const {
    Values expected = values_of(all);
    const auto first = static_cast<int64_t>(expected.size()) - kMargin - static_cast<int64_t>(values.size());
    std::copy(values.begin(), values.end(), expected.begin() + first);
    return expected;
  }
};

}  // namespace

TEST_CASE("elements: any length from any address, and nothing around them") {
  for (int64_t n : {0, 1, 7, 8, 9, 31, 2048, 2057})
    for (int64_t first : {0, 1, 4, 8}) {
      INFO("n ", n, ", first ", first);
      on_every_device_and_dtype([&](Device device, Dtype dtype) {
        const Inside y(n, first, dtype, device, 1), x(n, 0, dtype, device, 2);
        Values sum = values_of(y.part), added = values_of(x.part);
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += added[i];
        const Values expected = y.with(values_of(tensor_of(sum, {n}, dtype, device)));
        add_to(y.part, x.part);
        CHECK(values_of(y.all) == expected);

        const Values filled = y.with(Values(static_cast<size_t>(n), 0.25));
        fill(y.part, 0.25);
        CHECK(values_of(y.all) == filled);
      });
    }
}

TEST_CASE("elements: between types of different sizes") {
  for (int64_t n : {1, 8, 13, 2061})
    on_every_device_and_dtype([&](Device device, Dtype from) {
      for (Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::bf16}) {
        const Tensor x = drawn({n + 3}, from, device, 3), host = to(x, Device::cpu);
        CHECK(same_bits(convert(x, dtype), convert(host, dtype)));
        CHECK(same_bits(convert(x.rows(3, n), dtype), convert(host.rows(3, n), dtype)));
      }
    });
}

// On the GPU few columns are summed in chunks, and the sums of the chunks are rows of a second sum.
TEST_CASE("sums of columns: every row once, from none to many chunks") {
  for (const auto& [each_rows, each_columns] :
      {std::pair<int64_t, int64_t>{0, 3}, {1, 2}, {7, 33}, {256, 32}, {257, 31}, {1021, 40}, {4099, 5}, {300, 4097}}) {
    const auto &rows = each_rows, &columns = each_columns;
    INFO("rows ", rows, ", columns ", columns);
    // Small integers: every order of adding gives the same.
    Values x, sums(static_cast<size_t>(columns));
    for (int64_t i = 0; i < rows * columns; ++i) {
      x.push_back(static_cast<double>((i * 7 + i / columns * 3) % 11 - 4));
      sums[static_cast<size_t>(i % columns)] += x.back();
    }
    on_every_device_and_dtype([&](Device device, Dtype dtype) {
      const Tensor got = sum_to(tensor_of(x, {rows, columns}, dtype, device), {columns});
      CHECK(same_bits(got, tensor_of(sums, {columns}, dtype, device)));
    });
  }
}

TEST_CASE("sums over neighbouring indices are rounded once") {
  // In bf16 the sums over only the second index would be rounded: they are above 256.
  const Shape shape{3, 1, 331, 5};
  Values x, sums(5), of_first(15);
  for (int64_t i = 0; i < shape.size(); ++i) {
    x.push_back(static_cast<double>(i % 7 - 1));
    sums[static_cast<size_t>(i % 5)] += x.back();
    of_first[static_cast<size_t>(i / 1655 * 5 + i % 5)] += x.back();
  }
  on_every_device_and_dtype([&](Device device, Dtype dtype) {
    const Tensor given = tensor_of(x, shape, dtype, device);
    CHECK(same_bits(sum_to(given, {5}), tensor_of(sums, {5}, dtype, device)));
    CHECK(same_bits(sum_to(given, {1, 1, 1, 5}), tensor_of(sums, {1, 1, 1, 5}, dtype, device)));
    CHECK(same_bits(sum_to(given, {3, 1, 1, 5}), tensor_of(of_first, {3, 1, 1, 5}, dtype, device)));
  });
}
