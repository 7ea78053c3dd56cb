// Attention of packed documents: in every implementation a document sees itself alone, as if it were the whole sequence.
#include "tests/ops/documents.h"

#include "core/cpu/parallel.h"
#include "ops/attention/visibility.h"
#include "tests/ops/attention/low_precision.h"
#include "tests/sanitized.h"

using namespace ricci;

namespace {

const Packing kShort{{3, 1, 5}, {9}}, kLong{{1, 60, 64, 8}, {130, 2, 1}};

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

void check_definition(const Case& of, Device device) {
  CAPTURE(of.text());
  const ForwardAndBackward expected = run(naive_attention, of, Dtype::f64, Device::cpu), got = run(attention, of, Dtype::f64, device);
  CHECK(distance(got.y, expected.y) < 1e-12);
  for (size_t i = 0; i < got.gradients.size(); ++i) CHECK(distance(got.gradients[i], expected.gradients[i]) < 1e-12);
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
  const int before = thread_count();
  const Case of = packed({{100, 7, 193}}, {0, 0, 2, 24}), whole = packed({{300}}, {0, 0, 2, 24}), plain{1, 300, 2, 24};
  for (Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    set_thread_count(1);
    const ForwardAndBackward one = run(attention, of, dtype, Device::cpu);
    CHECK(same_bits(run(attention, whole, dtype, Device::cpu), run(attention, plain, dtype, Device::cpu)));
    for (int n : {2, 5}) {
      set_thread_count(n);
      CHECK(same_bits(one, run(attention, of, dtype, Device::cpu)));
    }
  }
  set_thread_count(before);
}

TEST_CASE("packed documents in bf16, whatever the width of the heads" * doctest::skip(test::kThreadSanitizer)) {
  on_every_device([](Device device) {
    for (int64_t width : {32, 136, 12})
      for (const Case& plain : std::vector<Case>{{0, 0, 2, width}, {0, 0, 4, width, tokens(true, 20), 0.2, {}, Place::thirds, -1, 0, 2}}) {
        const Case of = packed(kLong, plain);
        CAPTURE(of.text());
        const std::vector<Tensor> inputs = as(of.inputs(), Dtype::bf16, device);
        const Tensor dy = to(convert(of.dy(), Dtype::bf16), device);
        check_errors<bf16>(of, inputs, dy, run(attention, of, inputs, dy));
      }
  });
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
