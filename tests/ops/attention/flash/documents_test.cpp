// Packed documents in the flash attention kernels, on wgmma and without: their results against the exact values, the documents alone, and
// the tiles that no document shares.
#include "tests/ops/documents.h"

#include <limits>
#include <vector>

#include "ops/attention/flash/flash.h"
#include "ops/attention/flash/mask.h"
#include "tests/ops/attention/flash/thread_orders.h"
#include "tests/ops/attention/low_precision.h"
#include "tests/sanitized.h"

using namespace ricci;
using attention_kernels::GpuPath;

namespace {

// Documents of one position, several in a tile, longer than several tiles, from any position on: from the last one of a tile, too.
const Packing kOdd{{1, 62, 62, 1, 9}, {130, 2, 1, 1, 1}}, kLong{{3, 197, 70}}, kOnes{{1, 1, 1, 1, 1}}, kTiles{{128, 256, 128}};

Case packed(const Packing& rows, Case of) {
  of.b = static_cast<int64_t>(rows.size());
  of.c = std::accumulate(rows[0].begin(), rows[0].end(), int64_t{0});
  of.starts = starts_of(rows);
  return of;
}

GpuPath path_of(const Case& of, const std::vector<Tensor>& inputs, const Tensor& dy) {
  const auto [q, k, v] = of.views(inputs);
  const AttentionOptions options = of.options(dy.device());  // the problem points into them
  auto problem = attention_kernels::check("attention", q, k, v, of.sees, options).problem;
  problem.dropout = attention_kernels::draw_dropout(of.dropout, of.b * of.heads);
  return attention_kernels::gpu_path(problem, {q, k, v, {dy}});
}

void check(const Case& of, Device device, GpuPath path = GpuPath::flash) {
  CAPTURE(of.text());
  const std::vector<Tensor> inputs = as(of.inputs(), Dtype::bf16, device);
  const Tensor dy = to(convert(of.dy(), Dtype::bf16), device);
  CHECK(path_of(of, inputs, dy) == path);
  check_errors<bf16>(of, inputs, dy, run(attention, of, inputs, dy));
}

// Calls f for every GPU, and for an emulated one without wgmma.
void with_wgmma_and_without(const std::function<void(Device)>& f) {
  on_gpus(f);
  WithOptions options;
  options->wgmma = false;
  f(Device::cuda_emulated);
}

ForwardAndBackward run_bf16(const Case& of, const std::vector<Tensor>& inputs, const Tensor& dy, Device device) {
  return run(attention, of, as(inputs, Dtype::bf16, device), to(convert(dy, Dtype::bf16), device));
}

// The positions of one document in y and in the gradients.
ForwardAndBackward document_of(const ForwardAndBackward& of, int64_t row, int64_t first, int64_t length) {
  const auto part = [&](const Tensor& t) { return document_of(to(t, Device::cpu), row, first, length); };
  ForwardAndBackward result{part(of.y), {}};
  for (const Tensor& t : of.gradients) result.gradients.push_back(part(t));
  return result;
}

}  // namespace

TEST_CASE("flash attention of packed documents is as exact as bf16 allows") {
  with_wgmma_and_without([](Device device) {
    for (int64_t width : {32, 64, 96, 128}) check(packed(kOdd, {0, 0, 1, width}), device);
    for (int64_t width : {64, 128}) check(packed(kLong, {0, 0, 1, width}), device);
    check(packed(kOnes, {0, 0, 2, 64}), device);
  });
}

TEST_CASE("flash attention of packed documents: windows, groups, padding and views" * doctest::skip(test::kThreadSanitizer)) {
  with_wgmma_and_without([](Device device) {
    for (int64_t window : {1, 40, 100}) check(packed(kOdd, {0, 0, 1, 64, tokens(true, window)}), device);
    check(packed(kLong, {0, 0, 1, 128, tokens(true, 90)}), device);
    for (int64_t width : {32, 64, 128}) check(packed(kOdd, {0, 0, 4, width, tokens(true), 0, {}, Place::thirds, -1, 0, 2}), device);
    check(packed(kOdd, {0, 0, 2, 64, tokens(true, 50), 0, {135, 64}, Place::three_tensors, -1, 0.3, 1}), device);
    for (Place place : all_places())
      if (place != Place::odd_columns)
        for (int64_t width : {32, 64}) check(packed(kOdd, {0, 0, 1, width, tokens(true), 0, {}, place}), device);
  });
}

TEST_CASE("bf16 attention of packed documents: heads of other widths are padded, with dropout matrices are multiplied") {
  with_wgmma_and_without([](Device device) {
    check(packed(kOdd, {0, 0, 2, 12}), device, GpuPath::padded);
    check(packed(kOdd, {0, 0, 4, 40, tokens(true, 20), 0, {}, Place::keys_are_values, -1, 0, 2}), device, GpuPath::padded);
    check(packed(kOdd, {0, 0, 1, 64, tokens(true), 0, {}, Place::odd_columns}), device, GpuPath::padded);
    check(packed(kOdd, {0, 0, 1, 64, tokens(true), 0.2}), device, GpuPath::products);
    check(packed(kOdd, {0, 0, 1, 12, tokens(true), 0.2}), device, GpuPath::products);
    check(packed(kOdd, {0, 0, 1, 136}), device, GpuPath::products);
  });
}

// The bounds of a rectangle of queries and keys, of its first query and of its last key are compared with a count of what is seen.
TEST_CASE("flash attention of packed documents: the bounds of tiles are exact") {
  using namespace attention_kernels;
  const std::vector<int64_t> starts = starts_of({{40}, {1, 7, 30, 2}});
  Problem problem{2, 40, 40, 3, 32, tokens(true), 1};
  problem.starts = starts.data();
  const auto sees = [&](int t, int j) { return j <= t && j >= starts[static_cast<size_t>(40 + t)]; };
  const flash::Bounds bounds(problem);
  const flash::VisibleInDocuments visible(bounds, problem, 4);  // a head of the second sequence
  for (int t0 = 0; t0 < 40; ++t0)
    for (int j0 = 0; j0 < 40; ++j0)
      for (int size : {1, 2, 5}) {
        const int t1 = std::min(t0 + size, 40), j1 = std::min(j0 + size + 1, 40);
        int seen = 0, first = 40, end = 0;
        for (int t = t0; t < t1; ++t)
          for (int j = j0; j < j1; ++j) seen += sees(t, j);
        for (int i = 39; i >= 0; --i) {
          if (sees(t0, i)) first = i;
          if (sees(39 - i, j1 - 1)) end = 40 - i;
        }
        CAPTURE(t0);
        CAPTURE(j0);
        CAPTURE(size);
        REQUIRE(visible.none(t0, t1, j0, j1) == (seen == 0));
        REQUIRE(visible.all(t0, t1, j0, j1) == (seen == (t1 - t0) * (j1 - j0)));
        REQUIRE(visible.first_key(t0) == first);
        REQUIRE(visible.end_query(j0, j1) == end);
      }
}

// These documents share no tile, so packing changes neither the tiles nor the order of the sums.
TEST_CASE("flash attention of packed documents has the bits of the documents alone" * doctest::skip(test::kThreadSanitizer)) {
  WithOptions options;
  for (bool wgmma : {true, false})
    for (int64_t width : {32, 64, 96, 128}) {
      options->wgmma = wgmma;
      const Device device = Device::cuda_emulated;
      const Case plain{1, 135, 1, width}, of = packed(kTiles, plain);
      CHECK(same_bits(run(attention, packed({{135}}, plain), Dtype::bf16, device), run(attention, plain, Dtype::bf16, device)));
      const ForwardAndBackward got = run(attention, of, Dtype::bf16, device);
      each_document(kTiles, [&](int64_t row, int64_t first, int64_t length) {
        Case alone = plain;
        alone.c = length;
        const auto part = [&](const Tensor& t) { return document_of(t, row, first, length); };
        CHECK(same_bits(document_of(got, row, first, length), run_bf16(alone, {part(of.inputs()[0])}, part(of.dy()), device)));
      });
    }
}

TEST_CASE("flash attention of packed documents skips the tiles that no document shares") {
  with_wgmma_and_without([](Device device) {
    for (int64_t width : {32, 64, 128}) {
      const Case of = packed(kTiles, {0, 0, 1, width});
      const std::vector<Tensor> inputs = of.inputs();
      const Tensor dy = of.dy();
      const ForwardAndBackward expected = run_bf16(of, inputs, dy, device);
      for (const Tensor& t : {inputs[0], dy}) {  // NaN in the second document: a product that reads it spreads it, whatever the weight
        const int64_t columns = t.shape()[2];
        std::fill_n(t.data<double>() + 128 * columns, 256 * columns, std::numeric_limits<double>::quiet_NaN());
      }
      const ForwardAndBackward got = run_bf16(of, inputs, dy, device);
      for (int64_t first : {0, 384}) CHECK(same_bits(document_of(got, 0, first, 128), document_of(expected, 0, first, 128)));
      CHECK(std::isnan(values_of(document_of(got, 0, 128, 1).y)[0]));
    }
  });
}

TEST_CASE("flash attention of packed documents has the same bits in every order of threads" * doctest::skip(test::kThreadSanitizer)) {
  check_thread_orders({packed(kOdd, {0, 0, 1, 32}), packed(kOdd, {0, 0, 2, 64, tokens(true, 70), 0, {}, Place::thirds, -1, 0, 1}),
      packed({{65, 3}}, {0, 0, 1, 128, tokens(true), 0, {}, Place::all_the_same})});
}

// Nothing looks at the starts on cuda before the kernels do.
TEST_CASE("flash attention of wrong starts: after the sequence nothing is seen, before it everything") {
  with_wgmma_and_without([](Device device) {
    using namespace attention_kernels;
    const Case of{1, 70, 1, 64};
    const std::vector<Tensor> inputs = as(of.inputs(), Dtype::bf16, device);
    const Tensor dy = to(convert(of.dy(), Dtype::bf16), device);
    const auto [q, k, v] = of.views(inputs);
    Checked checked = attention_kernels::check("attention", q, k, v, of.sees, of.options());
    const auto run_of = [&](int64_t start) {
      const Tensor starts = ids_of(std::vector<int64_t>(70, start), {1, 70}, device);
      checked.problem.starts = starts.data<int64_t>();
      const Outputs out{like(dy), like(dy, {1, 1, 70}, Dtype::f32)};
      flash_forward(checked.problem, checked.views(), out);
      const std::vector<Tensor> gradients = checked.layout.gradients(inputs);
      flash_backward(checked.problem, dy, checked.views(), out, checked.layout.views(gradients));
      return ForwardAndBackward{out.y_bcd, gradients};
    };
    const ForwardAndBackward nothing = run_of(int64_t{1} << 40);
    for (const Tensor& t : {nothing.y, nothing.gradients[0]})
      for (double x : values_of(t)) REQUIRE(x == 0);
    CHECK(same_bits(run_of(5 - (int64_t{1} << 40)), run_of(0)));
  });
}
