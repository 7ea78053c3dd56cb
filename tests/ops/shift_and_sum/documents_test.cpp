// The shift-and-sum of packed documents: each is computed as if it were the whole sequence.
#include "tests/ops/documents.h"

#include "tests/ops/shift_and_sum/cases.h"

using namespace ricci;

TEST_CASE("packed documents: values and gradients of the shift-and-sum are those of the documents alone, on every device") {
  const Packing rows{{1, 60, 64, 8}, {130, 2, 1}};
  const ShiftCase of{2, 133, 2, 19, 8, 0, true, starts_of(rows)};
  on_every_device([&](Device device) {
    for (ShiftAndSum f : {ShiftAndSum(shift_and_sum), ShiftAndSum(naive_shift_and_sum)}) {
      const Tensor v = of.v(Dtype::f64, device), coef = of.coef(Dtype::f64, device), dy = of.dy(Dtype::f64, device);
      const auto got = outcome_of(f, of, {v, coef}, dy);
      each_document(rows, [&](int64_t row, int64_t first, int64_t length) {
        const auto of_document = [&](const Tensor& t) { return document_of(exactly(t), row, first, length); };
        const ShiftCase alone{1, length, 2, 19, 8};
        const auto expected = outcome_of(naive_shift_and_sum, alone, {of_document(v), of_document(coef)}, of_document(dy));
        for (size_t i = 0; i < got.size(); ++i) CHECK(error_of(of_document(got[i]), values_of(expected[i])) < 1e-12);
      });
    }
  });
}

TEST_CASE("packed documents: the shift-and-sum with dropout equals the definition in every dtype") {
  ShiftCase of{2, 40, 2, 12, 6, 0.4, false, starts_of({{5, 34, 1}, {20, 20}})};
  on_every_device_and_dtype([&](Device device, Dtype dtype) {
    const Tensor v = of.v(dtype, device), coef = of.coef(dtype, device), dy = of.dy(dtype, device);
    const auto expected = outcome_of(naive_shift_and_sum, of, {exactly(v), exactly(coef)}, exactly(dy));
    const auto ours = outcome_of(shift_and_sum, of, {v, coef}, dy), plain = outcome_of(naive_shift_and_sum, of, {v, coef}, dy);
    for (size_t i = 0; i < ours.size(); ++i)
      CHECK(error_of(ours[i], values_of(expected[i])) <= 2 * error_of(plain[i], values_of(expected[i])) + 100 * sum_unit(dtype));
  });
}

TEST_CASE("packed documents: one document is a sequence, bit for bit, and wrong starts are said") {
  const ShiftCase plain{1, 33, 2, 16, 6};
  ShiftCase whole = plain;
  whole.starts = starts_of({{33}});
  const auto run = [&](const ShiftCase& of) {
    return outcome_of(shift_and_sum, of, {of.v(Dtype::f32, Device::cpu), of.coef(Dtype::f32, Device::cpu)}, of.dy(Dtype::f32, Device::cpu));
  };
  const auto a = run(plain), b = run(whole);
  for (size_t i = 0; i < 3; ++i) CHECK(same_bits(a[i], b[i]));  // nobody reads coefficients that reach before the sequence
  const auto said = [](std::vector<int64_t> starts, const Shape& shape) {
    return message_of([&] { shift_and_sum(Tensor({2, 2, 4}), Tensor({2, 2, 2}), {.starts_bc = ids_of(starts, shape, Device::cpu)}); });
  };
  CHECK(said({0, 1, 1, 1}, {2, 2}) == "shift_and_sum: start 1 at [1 0] of starts_bc is outside 0 .. 0");
  CHECK(said({0, 1, 0}, {1, 3}) == "shift_and_sum: index b is 2 in v_bcd[2 2 4] but 1 in starts_bc[1 3]");
  Tensor rings = zeros({2, 3, 4}, Dtype::f32, Device::cpu);
  CHECK(message_of([&] {
    shift_and_sum_cached(Tensor({2, 2, 4}), Tensor({2, 2, 2}), rings, 0, {.starts_bc = ids_of({0, 0, 0, 0}, {2, 2}, Device::cpu)});
  }) == "shift_and_sum_cached: starts of documents, expected none");
}
