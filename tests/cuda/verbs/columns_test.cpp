// Sums over rows: on the GPU of few columns in chunks, whose sums are rows of a second sum.
#include "tests/ops/values.h"

using namespace ricci;

TEST_CASE("sums of columns: every row once, from none to many chunks") {
  for (const auto& [each_rows, each_columns] :
      {std::pair<int64_t, int64_t>{0, 3}, {1, 2}, {7, 33}, {256, 32}, {257, 31}, {1021, 40}, {4099, 5}, {300, 4097}}) {
    const auto &rows = each_rows, &columns = each_columns;
    CAPTURE(rows);
    CAPTURE(columns);
    // Small whole numbers: every order of adding gives the same.
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
  // In bf16 the sums over the second index alone would be rounded: they are above 256.
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
