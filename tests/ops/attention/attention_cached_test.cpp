// Decoding with caches gives at every position what attention over the whole sequence gives.
#include <algorithm>
#include <vector>

#include "tests/ops/attention/attention_cases.h"

using namespace ricci;

namespace {

constexpr int64_t kBatches = 2, kHeads = 3, kWidth = 5;

// Positions first .. first + count of [b, c, x].
Tensor positions(const Tensor& all, int64_t first, int64_t count) {
  const int64_t c = all.shape()[1], x = all.shape()[2];
  Tensor part({all.shape()[0], count, x}, Dtype::f64);
  for (int64_t b = 0; b < all.shape()[0]; ++b)
    std::copy_n(all.data<double>() + (b * c + first) * x, count * x, part.data<double>() + b * count * x);
  return part;
}

struct Caches {
  Tensor k, v;
  Caches(int64_t capacity, Dtype dtype, Device device)
      : k(drawn({kBatches, kHeads, capacity, kWidth}, dtype, device, 90)),
        v(drawn({kBatches, kHeads, capacity, kWidth}, dtype, device, 91)) {}
};

// Feeds the sequence in pieces and compares each with the same positions of attention over all of it.
void check_pieces(const std::vector<int64_t>& pieces, int64_t window, int64_t capacity, Device device) {
  CAPTURE(window);
  CAPTURE(capacity);
  int64_t c = 0;
  for (int64_t piece : pieces) c += piece;
  const Tensor qkv = draw({kBatches, c, 3 * kHeads * kWidth}, 1);
  const AttentionOptions options{kHeads, true, window};
  const Tensor expected = naive_attention(qkv, options);
  Caches caches(capacity, Dtype::f64, device);
  int64_t past = 0;
  for (int64_t piece : pieces) {
    CAPTURE(past);
    CAPTURE(piece);
    const Tensor y = attention_cached(to(positions(qkv, past, piece), device), caches.k, caches.v, past, options);
    CHECK(distance(y, positions(expected, past, piece)) < 1e-12);
    past += piece;
  }
}

}  // namespace

TEST_CASE("cached decoding equals the full forward at every position") {
  const std::vector<int64_t> one_by_one(20, 1), prompt_first = {7, 1, 1, 1, 1, 1, 1}, uneven = {3, 4, 1, 6, 2, 70, 1};
  on_every_device([&](Device device) {
    for (int64_t window : {0, 1, 4, 30})
      for (const auto& pieces : {one_by_one, prompt_first, uneven}) {
        check_pieces(pieces, window, 90, device);                          // never wraps
        if (window > 0) check_pieces(pieces, window, window, device);      // the smallest ring
        if (window > 0) check_pieces(pieces, window, window + 3, device);  // a few positions at a time
      }
  });
}

TEST_CASE("cached decoding of every dtype") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    const Tensor qkv = convert(drawn({kBatches, 12, 3 * kHeads * kWidth}, dtype, Device::cpu, 1), Dtype::f64);
    const Tensor expected = naive_attention(qkv, {kHeads});
    Caches caches(12, dtype, device);
    for (int64_t t = 0; t < 12; ++t) {
      const Tensor y = attention_cached(to(convert(positions(qkv, t, 1), dtype), device), caches.k, caches.v, t, {kHeads});
      CHECK(y.dtype() == dtype);
      // The output is rounded once; products of 5, an exponential and sums of 12 cost some roundings of the sums' type.
      CHECK(error_of(y, values_of(positions(expected, t, 1))) <= unit(dtype) + 20 * sum_unit(dtype));
    }
  });
}

TEST_CASE("cached decoding has no gradient and says so") {
  const Parameter x{draw({1, 1, 3 * kHeads * kWidth}, 1), {}, "qkv"};
  Tensor k({1, kHeads, 4, kWidth}, Dtype::f64), v = like(k);
  Tape tape;
  const Tensor y = attention_cached(x, k, v, 0, {kHeads});
  const std::string message = message_of([&] { tape.backward(y, y.detached()); });
  CHECK(message.find("attention_cached") != message.npos);
}

TEST_CASE("cached decoding says what is wrong with its arguments") {
  const Tensor qkv = draw({2, 3, 24}, 1);
  Tensor k({2, 2, 8, 4}, Dtype::f64), v = like(k), narrow({2, 2, 8, 3}, Dtype::f64), f32({2, 2, 8, 4});
  auto call = [&](Tensor& k_cache, Tensor& v_cache, int64_t past, AttentionOptions options) {
    return message_of([&] { attention_cached(qkv, k_cache, v_cache, past, options); });
  };
  CHECK(call(k, v, 0, {2, false}) == "attention_cached: new positions cannot see later ones, expected causal attention");
  CHECK(call(k, v, 0, {.heads = 2, .lengths_b = ids_of({3, 3}, {2}, Device::cpu)}) ==
        "attention_cached: the new positions are the last of their sequences, expected no lengths");
  CHECK(call(k, v, -1, {2}) == "attention_cached: past is -1, expected 0 or more");
  CHECK(call(k, narrow, 0, {2}) == "attention_cached: index k is 4 in k_cache_bnsk[2 2 8 4] but 3 in v_cache_bnsk[2 2 8 3]");
  CHECK(call(narrow, narrow, 0, {2}) == "attention_cached: k_cache_bnsk[2 2 8 3] expected [2 2 s 4]");
  CHECK(call(k, f32, 0, {2}) == "attention_cached: k_cache_bnsk is f64 on cpu, v_cache_bnsk f32 on cpu");
  CHECK(call(k, v, 6, {2}) == "attention_cached: the caches have 8 slots, 9 positions need 9");
  CHECK(call(k, v, 6, {2, true, 9}) == "attention_cached: the caches have 8 slots, 9 positions need 9");
  CHECK(call(k, v, 60, {2, true, 8}) == "no error");
}
