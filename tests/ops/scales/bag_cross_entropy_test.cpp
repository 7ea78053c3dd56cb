// The cross-entropy against the tokens of the next cell, against the formula spelled out.
#include "ops/scales/cells.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

struct Case {
  int64_t b, c, v, size;
  std::vector<int64_t> lengths;
};

std::vector<int64_t> some_ids(const Case& of) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < of.b * of.c; ++i) ids.push_back((i * 7 + i / 3) % of.v);
  return ids;
}

double naive(const Values& l, const std::vector<int64_t>& ids, const Case& of) {
  double total = 0, counted = 0;
  for (int64_t b = 0; b < of.b; ++b)
    for (int64_t j = 0; j < of.c / of.size; ++j) {
      if ((j + 2) * of.size > (of.lengths.empty() ? of.c : of.lengths[static_cast<size_t>(b)])) continue;
      const double* const row = l.data() + (b * (of.c / of.size) + j) * of.v;
      double sum = 0;
      for (int64_t v = 0; v < of.v; ++v) sum += std::exp(row[v]);
      for (int64_t w = 0; w < of.size; ++w)
        total -= (row[ids[static_cast<size_t>(b * of.c + (j + 1) * of.size + w)]] - std::log(sum)) / static_cast<double>(of.size);
      ++counted;
    }
  return counted > 0 ? total / counted : 0;
}

}  // namespace

TEST_CASE("bag_cross_entropy: the formula, on every device and dtype") {
  for (const Case& of : std::vector<Case>{
           {2, 14, 5, 3, {}}, {1, 40, 300, 4, {}}, {3, 6, 7, 2, {6, 5, 1}}, {2, 5, 4, 1, {}}, {2, 3, 4, 2, {}}, {1, 3, 4, 5, {}}})
    on_every_device_and_dtype([&](Device device, Dtype dtype) {
      const Tensor logits = drawn({of.b, of.c / of.size, of.v}, dtype, device, 5);
      const std::vector<int64_t> ids = some_ids(of);
      const Tensor lengths = of.lengths.empty() ? Tensor() : ids_of(of.lengths, {of.b}, device);
      const double got = values_of(bag_cross_entropy(logits, ids_of(ids, {of.b, of.c}, device), of.size, lengths))[0];
      CHECK(std::abs(got - naive(values_of(logits), ids, of)) <= static_cast<double>(of.v + 8) * 8 * sum_unit(dtype));
    });
}

TEST_CASE("bag_cross_entropy: an id that the vocabulary does not have is NaN off the cpu") {
  const Tensor loss =
      bag_cross_entropy(drawn({1, 2, 3}, Dtype::f32, Device::cuda_emulated, 1), ids_of({0, 1, 2, 3}, {1, 4}, Device::cuda_emulated), 2);
  CHECK(std::isnan(values_of(loss)[0]));
}

TEST_CASE("bag_cross_entropy: messages") {
  const Tensor logits({1, 2, 3}), ids = ids_of({0, 1, 2, 1}, {1, 4}, Device::cpu);
  CHECK(message_of([&] { bag_cross_entropy(logits, ids, 0); }) == "bag_cross_entropy: cells of 0 tokens, expected 1 or more");
  CHECK(message_of([&] { bag_cross_entropy(logits, ids, 3); }) ==
        "bag_cross_entropy: logits_bmv[1 2 3] of 2 cells, but ids_bc[1 4] have 1 of 3 tokens");
  CHECK(message_of([&] {
    bag_cross_entropy(logits, ids_of({0, 1, 3, 1}, {1, 4}, Device::cpu), 2);
  }) == "bag_cross_entropy: id 3 at [0 2] is outside the vocabulary of 3");
  CHECK(message_of([&] { bag_cross_entropy(logits, ids, 2, ids_of({5}, {1}, Device::cpu)); }) ==
        "bag_cross_entropy: length 5 at [0] of lengths_b is outside 0 .. 4");
}
