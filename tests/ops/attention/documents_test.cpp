// Attention of packed documents: in every implementation a document sees itself only, as if it were the whole sequence.
#include "tests/ops/documents.h"

#include <limits>
#include <vector>

#include "ops/attention/flash/flash.h"
#include "ops/attention/flash/mask.h"
#include "ops/attention/visibility.h"
#include "tests/ops/attention/cases.h"
#include "tests/sanitized.h"

using namespace ricci;
using attention_kernels::GpuPath;

namespace {

const Packing kShort{{3, 1, 5}, {9}}, kLong{{1, 60, 64, 8}, {130, 2, 1}};
// Documents of one position, several in a tile, longer than several tiles, from any position on: from the last one of a tile, too.
const Packing kOdd{{1, 62, 62, 1, 9}, {130, 2, 1, 1, 1}}, kRow{{1, 62, 62, 1, 9}}, kFew{{3, 197, 70}}, kOnes{{1, 1, 1, 1, 1}},
    kTiles{{128, 256, 128}}, kTwoTiles{{128, 256}};

Case packed(const Packing& rows, Case of) {
  of.b = static_cast<int64_t>(rows.size());
  of.c = std::accumulate(rows[0].begin(), rows[0].end(), int64_t{0});
  of.starts = starts_of(rows);
  return of;
}

// Of the positions of every document: y and the gradients equal those of the document alone.
void check_documents(const Packing& rows, const Case& of, const ForwardAndBackward& got) {
  CAPTURE(of.text());
  const std::vector<Tensor> in = of.inputs();
  each_document(rows, [&](int64_t row, int64_t first, int64_t length) {
    const auto of_document = [&](const Tensor& t) { return document_of(to(t, Device::cpu), row, first, length); };
    Case alone = of;
    alone.b = 1;
    alone.c = length;
    alone.starts = {};
    std::vector<Tensor> inputs;
    for (const Tensor& t : in) inputs.push_back(of_document(t));
    const ForwardAndBackward expected = run(naive_attention, alone, inputs, of_document(of.dy()));
    CHECK(distance(of_document(got.y), expected.y) < 1e-12);
    for (size_t i = 0; i < inputs.size(); ++i) CHECK(distance(of_document(got.gradients[i]), expected.gradients[i]) < 1e-12);
  });
}

// Calls f for every GPU, and for an emulated one without wgmma, which widths of 64 and 128 use.
void with_wgmma_and_without(const std::function<void(Device)>& f) {
  on_gpus(f);
  WithOptions options;
  options->wgmma = false;
  f(Device::cuda_emulated);
}
void check(const Case& of, Device device, GpuPath path = GpuPath::flash) {
  const bool can_use_wgmma = path != GpuPath::products && (of.width + 31) / 32 % 2 == 0;
  if (device == Device::cuda_emulated && !emu::options().wgmma && !can_use_wgmma) return;  // the kernels are the same as with it
  check_path(of, path, device);
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

TEST_CASE("packed documents: the keys of a query and the queries of a key are intervals") {
  const std::vector<int64_t> starts = starts_of({{1, 7, 30, 2}});
  const Documents documents{starts.data()};
  for (int64_t window : {0, 1, 5})
    for (int64_t t = 0; t < 40; ++t)
      for (int64_t j = 0; j < 40; ++j) {
        const Visibility sees = Visibility::causal(window);
        const bool visible = sees.visible(t, j) && j >= starts[static_cast<size_t>(t)];
        if ((j >= documents.first_key(t, sees.first_key(t)) && j < sees.end_key(t, 40)) != visible) FAIL("keys of ", t, ": ", j);
        if ((t >= sees.first_query(j) && t < documents.end_query(j, sees.end_query(j, 40))) != visible) FAIL("queries of ", j, ": ", t);
      }
  CHECK(Documents().first_key(5, 2) == 2);
  CHECK(Documents().end_query(5, 9) == 9);
}

TEST_CASE("packed documents: values and gradients are those of the documents alone, on every device, with groups and without") {
  const std::vector<Packing> all = test::kThreadSanitizer ? std::vector<Packing>{kShort} : std::vector<Packing>{kShort, kLong};
  on_every_device([&](Device device) {
    for (const Packing& rows : all)
      for (const Case& plain : std::vector<Case>{{0, 0, 2, 5}, {0, 0, 1, 3, tokens(true, 4)}, {0, 0, 1, 36},
               {0, 0, 4, 3, tokens(true), 0, {}, Place::thirds, -1, 0, 2},
               {0, 0, 3, 4, tokens(true, 70), 0, {}, Place::thirds, -1, 0.3, 1}}) {
        const Case of = packed(rows, plain);
        check_documents(rows, of, run(attention, of, Dtype::f64, device));
        if (device == Device::cpu) check_documents(rows, of, run(naive_attention, of, Dtype::f64, device));
      }
  });
}

TEST_CASE("packed documents: dropout, padding and views equal the definition on every device") {
  on_every_device([](Device device) {
    check_definition(packed(kLong, {0, 0, 2, 6, tokens(true), 0.3}), device);
    check_definition(packed(kLong, {0, 0, 1, 4, tokens(true, 9), 0, {100, 3}}), device);
    check_definition(packed(kLong, {0, 0, 4, 5, tokens(true), 0.2, {133, 64}, Place::three_tensors, -1, 0, 2}), device);
    for (Place place : all_places()) check_definition(packed(kShort, {0, 0, 2, 5, tokens(true), 0, {}, place}), device);
  });
}

TEST_CASE("packed documents: the bits do not depend on the number of threads, and one document is a sequence") {
  const Case of = packed({{100, 7, 193}}, {0, 0, 2, 24}), whole = packed({{300}}, {0, 0, 2, 24}), plain{1, 300, 2, 24};
  for (Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    CHECK(same_bits(run(attention, whole, dtype, Device::cpu), run(attention, plain, dtype, Device::cpu)));
    check_threads([&] {
      const ForwardAndBackward got = run(attention, of, dtype, Device::cpu);
      return std::vector<Tensor>{got.y, got.gradients[0]};
    });
  }
}

TEST_CASE("packed documents in bf16 on the CPU, whatever the width of the heads") {
  for (int64_t width : {32, 136, 12}) {
    check_precision<bf16>(packed(kLong, {0, 0, 2, width}), Device::cpu);
    check_precision<bf16>(packed(kLong, {0, 0, 4, width, tokens(true, 20), 0.2, {}, Place::thirds, -1, 0, 2}), Device::cpu);
  }
}

TEST_CASE("packed documents: what cannot be is said") {
  const Tensor x = draw({2, 3, 8}, 1), longer = draw({2, 5, 8}, 1);
  const auto message = [&](std::vector<int64_t> starts, const Tensor& keys, const Visibility& sees) {
    const int64_t c = static_cast<int64_t>(starts.size()) / 2;
    return message_of([&] { attention({x}, {keys}, {keys}, sees, {.heads = 2, .starts_bc = ids_of(starts, {2, c}, Device::cpu)}); });
  };
  const Visibility causal = Visibility::causal();
  CHECK(message({0, 0, 2, 0, 1, 2}, x, causal) == "no error");
  CHECK(message({0, 0, 2, 0, 2, 2}, x, causal) == "attention: start 2 at [1 1] of starts_bc is outside 0 .. 1");
  CHECK(message({0, 1, 0, 0, 1, 2}, x, causal) == "attention: start 0 at [0 2] of starts_bc is outside 1 .. 2");
  CHECK(message({0, 0, 0, 0}, x, causal) == "attention: index c is 3 in q_bcx[2 3 8] but 2 in starts_bc[2 2]");
  const std::string wrong = "attention: starts of documents, expected keys that are the tokens of the queries, and causal attention";
  CHECK(message({0, 0, 0, 0, 0, 0}, longer, causal) == wrong);
  CHECK(message({0, 0, 0, 0, 0, 0}, x, Visibility::not_causal()) == wrong);
  CHECK(message({0, 0, 0, 0, 0, 0}, x, Visibility::cells(1, 0, 2).from(1)) == wrong);
}

// ---- The kernels of flash attention, on wgmma and without

TEST_CASE("flash attention of packed documents is as exact as bf16 allows") {
  with_wgmma_and_without([](Device device) {
    for (int64_t width : {32, 64, 96, 128}) check(packed(kOdd, {0, 0, 1, width}), device);
    for (int64_t width : {64, 128}) check(packed(kFew, {0, 0, 1, width}), device);
    check(packed(kOnes, {0, 0, 2, 64}), device);
  });
}

TEST_CASE("flash attention of packed documents: windows, groups, padding and views" * doctest::skip(test::kThreadSanitizer)) {
  with_wgmma_and_without([](Device device) {
    for (int64_t window : {1, 100}) check(packed(kRow, {0, 0, 1, 64, tokens(true, window)}), device);
    check(packed(kFew, {0, 0, 1, 128, tokens(true, 90)}), device);
    for (int64_t width : {32, 64, 128}) check(packed(kRow, {0, 0, 4, width, tokens(true), 0, {}, Place::thirds, -1, 0, 2}), device);
    check(packed(kOdd, {0, 0, 2, 64, tokens(true, 50), 0, {135, 64}, Place::three_tensors, -1, 0.3, 1}), device);
    for (Place place : all_places())
      if (place != Place::odd_columns) check(packed(kRow, {0, 0, 1, in_one_tensor(place) ? 64 : 32, tokens(true), 0, {}, place}), device);
  });
}

TEST_CASE("bf16 attention of packed documents: heads of other widths are padded, with dropout matrices are multiplied") {
  with_wgmma_and_without([](Device device) {
    check(packed(kRow, {0, 0, 2, 12}), device, GpuPath::padded);
    check(packed(kRow, {0, 0, 4, 40, tokens(true, 20), 0, {}, Place::keys_are_values, -1, 0, 2}), device, GpuPath::padded);
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
        INFO("t0 ", t0, ", j0 ", j0, ", size ", size);
        REQUIRE(visible.none(t0, t1, j0, j1) == (seen == 0));
        REQUIRE(visible.all(t0, t1, j0, j1) == (seen == (t1 - t0) * (j1 - j0)));
        REQUIRE(visible.first_key(t0) == first);
        REQUIRE(visible.end_query(j0, j1) == end);
      }
}

// These documents share no tile, so packing changes neither the tiles nor the order of the sums.
TEST_CASE("flash attention of packed documents has the bits of the documents alone" * doctest::skip(test::kThreadSanitizer)) {
  WithOptions options;
  for (const auto& [wgmma, width] : {std::pair<bool, int64_t>{true, 32}, {true, 64}, {false, 128}}) {
    options->wgmma = wgmma;
    const Device device = Device::cuda_emulated;
    const Case plain{1, 135, 1, width}, of = packed(kTwoTiles, plain);
    CHECK(same_bits(run(attention, packed({{135}}, plain), Dtype::bf16, device), run(attention, plain, Dtype::bf16, device)));
    const ForwardAndBackward got = run(attention, of, Dtype::bf16, device);
    each_document(kTwoTiles, [&](int64_t row, int64_t first, int64_t length) {
      Case alone = plain;
      alone.c = length;
      const auto part = [&](const Tensor& t) { return document_of(t, row, first, length); };
      CHECK(same_bits(document_of(got, row, first, length), run_bf16(alone, {part(of.inputs()[0])}, part(of.dy()), device)));
    });
  }
}

TEST_CASE("flash attention of packed documents skips the tiles that no document shares") {
  with_wgmma_and_without([](Device device) {
    for (int64_t width : {32, 64}) {
      if (width == 32 && device == Device::cuda_emulated && !emu::options().wgmma) continue;
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
