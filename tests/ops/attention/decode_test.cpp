// Decoding with caches equals attention over the full sequence at every position.
#include <vector>

#include "ops/shapes/shape_ops.h"
#include "tests/ops/attention/cases.h"
#include "tests/sanitized.h"
#include "tests/skip.h"

using namespace ricci;

namespace {

constexpr int64_t kBatches = 2, kHeads = 3, kWidth = 5;
const AttentionOptions kOptions{.heads = kHeads};

// Positions first .. first + count of [b, c, x].
Tensor positions(const Tensor& all, int64_t first, int64_t count) { return slice(all, 1, first, count).detached(); }

struct Caches {
  Tensor k, v;
  Caches(int64_t capacity, Dtype dtype, Device device, int64_t width = kWidth, int64_t heads = kHeads)
      : k(drawn({kBatches, heads, capacity, width}, dtype, device, 90)), v(drawn({kBatches, heads, capacity, width}, dtype, device, 91)) {}
};

// Feeds the sequence in parts and compares each with the same positions of attention over all of it.
void check_pieces(const std::vector<int64_t>& pieces, const Visibility& sees, int64_t capacity, Device device, Place place = Place::thirds,
    int64_t width = kWidth, int64_t kv_heads = kHeads) {
  INFO("least ", sees.least, ", most ", sees.most, ", capacity ", capacity);
  int64_t c = 0;
  for (int64_t piece : pieces) c += piece;
  const AttentionOptions options{.heads = kHeads, .kv_heads = kv_heads};
  const Case of{kBatches, c, kHeads, width, sees, 0, {}, place, -1, 0, kv_heads};
  const std::vector<Tensor> inputs = of.inputs();
  const Tensor expected = exact(of).y;
  const bool one_cache = place == Place::keys_are_values || place == Place::all_the_same;
  Caches caches(capacity, Dtype::f64, device, width, kv_heads);
  int64_t past = 0;
  for (int64_t piece : pieces) {
    INFO("past ", past, ", piece ", piece);
    std::vector<Tensor> now;
    for (const Tensor& t : inputs) now.push_back(to(positions(t, past, piece), device));
    const auto [q, k, v] = of.slices(now);
    const Tensor y = attention_cached(q, k, v, caches.k, one_cache ? caches.k : caches.v, past, sees, options);
    CHECK(distance(y, positions(expected, past, piece)) < 1e-12);
    past += piece;
  }
}

}  // namespace

TEST_CASE("cached decoding equals the full forward at every position") {
  const std::vector<int64_t> one_by_one(20, 1), prompt_first = {7, 1, 1, 1, 1, 1, 1}, uneven = {3, 4, 1, 6, 2, 70, 1};
  std::vector<int64_t> windows = {0, 4};
  if (test::kThreadSanitizer) windows = {4};
  else if (test::everything()) windows = {0, 1, 4, 30};
  on_every_device([&](Device device) {
    for (int64_t window : windows)
      for (const auto& pieces : {one_by_one, prompt_first, uneven}) {
        const Visibility sees = Visibility::causal(window);
        check_pieces(pieces, sees, 90, device);                          // never wraps
        if (window > 0) check_pieces(pieces, sees, window, device);      // the smallest ring
        if (window > 0) check_pieces(pieces, sees, window + 3, device);  // a few positions at a time
      }
  });
}

TEST_CASE("cached decoding of wide heads, of heads that share their keys, of views, and of keys that are the values in one cache") {
  const std::vector<int64_t> prompt_first = {7, 1, 1, 1, 1, 1, 1}, uneven = {3, 4, 1, 6, 2, 20, 1};
  on_every_device([&](Device device) {
    for (int64_t width : {33, 130})  // more columns than lanes of a warp, and than threads of a thread block
      check_pieces({3, 1, 1}, Visibility::causal(), 5, device, Place::thirds, width);
    for (int64_t window : {0, 4}) check_pieces({7, 1, 1, 4, 1}, Visibility::causal(window), 14, device, Place::thirds, kWidth, 1);
    check_pieces({3, 1, 2}, Visibility::causal(3), 4, device, Place::keys_are_values, kWidth, 1);
    for (Place place : all_places()) {
      check_pieces(prompt_first, Visibility::causal(), 40, device, place);
      check_pieces(uneven, Visibility::causal(4), 6, device, place);
    }
  });
}

TEST_CASE("cached decoding of a window that begins some positions back: the first queries see no key") {
  on_every_device([](Device device) {
    for (const std::vector<int64_t>& pieces : {std::vector<int64_t>(20, 1), {7, 1, 1, 1, 1, 1, 1}, {1, 2, 9}})
      for (int64_t capacity : {9, 12}) check_pieces(pieces, Visibility::cells(1, 3, 9), capacity, device);
  });
}

TEST_CASE("attention to cells that a cache holds, one query at a time, equals the whole sequence") {
  on_every_device([](Device device) {
    const Case of{kBatches, 40, kHeads, kWidth, Visibility::cells(4, 3, 25), 0, {}, Place::three_tensors, 10};
    const std::vector<Tensor> inputs = of.inputs();
    const Tensor expected = exact(of).y;
    const ColumnSlice k_cache{to(inputs[1], device)}, v_cache{to(inputs[2], device)};
    for (int64_t t = 0; t < of.c; ++t) {
      CAPTURE(t);
      const Tensor y = attention({to(positions(inputs[0], t, 1), device)}, k_cache, v_cache, of.sees.from(t), kOptions);
      CHECK(distance(y, positions(expected, t, 1)) < 1e-12);
    }
  });
}

TEST_CASE("cached decoding of every dtype") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    const Tensor qkv = convert(drawn({kBatches, 12, 3 * kHeads * kWidth}, dtype, Device::cpu, 1), Dtype::f64);
    const Case of{kBatches, 12, kHeads, kWidth};
    const Tensor expected = exact(of, {qkv}, of.dy()).y;
    Caches caches(12, dtype, device);
    for (int64_t t = 0; t < 12; ++t) {
      const auto [q, k, v] = thirds(to(convert(positions(qkv, t, 1), dtype), device));
      const Tensor y = attention_cached(q, k, v, caches.k, caches.v, t, Visibility::causal(), kOptions);
      CHECK(y.dtype() == dtype);
      // The output is rounded once; products of 5, an exponential and sums of 12 add some roundings of the sums' type.
      CHECK(error_of(y, values_of(positions(expected, t, 1))) <= unit(dtype) + 20 * sum_unit(dtype));
    }
  });
}

TEST_CASE("cached decoding has no gradient and says so") {
  const Parameter x{draw({1, 1, 3 * kHeads * kWidth}, 1), {}, "qkv"};
  Tensor k_cache({1, kHeads, 4, kWidth}, Dtype::f64), v_cache = like(k_cache);
  Tape tape;
  const auto [q, k, v] = thirds(x);
  const Tensor y = attention_cached(q, k, v, k_cache, v_cache, 0, Visibility::causal(), kOptions);
  const std::string message = message_of([&] { tape.backward(y, y.detached()); });
  CHECK(message.find("attention_cached") != message.npos);
}

TEST_CASE("cached decoding says what is wrong with its arguments") {
  const Tensor qkv = draw({2, 3, 24}, 1);
  Tensor k({2, 2, 8, 4}, Dtype::f64), v = like(k), narrow({2, 2, 8, 3}, Dtype::f64), f32({2, 2, 8, 4});
  auto call = [&](Tensor& k_cache, Tensor& v_cache, int64_t past, const Visibility& sees = Visibility::causal(),
                  const AttentionOptions& options = {.heads = 2}) {
    return message_of([&] {
      const auto [q, k_rows, v_rows] = thirds(qkv);
      attention_cached(q, k_rows, v_rows, k_cache, v_cache, past, sees, options);
    });
  };
  CHECK(call(k, v, 0, Visibility::not_causal()) == "attention_cached: a position sees later positions, expected causal attention");
  CHECK(call(k, v, 0, Visibility::cells(4)) == "attention_cached: the keys are cells of 4 tokens, expected single tokens");
  CHECK(call(k, v, 0, Visibility::causal(), {.heads = 2, .lengths_b = ids_of({3, 3}, {2}, Device::cpu)}) ==
        "attention_cached: lengths_b is given, expected none (the new positions are the last of their sequences)");
  CHECK(call(k, v, -1) == "attention_cached: past is -1, expected 0 .. 9223372036854775804");
  CHECK(call(k, v, INT64_MAX - 2, Visibility::causal(2)) ==
        "attention_cached: past is 9223372036854775805, expected 0 .. 9223372036854775804");
  CHECK(call(k, v, INT64_MAX - 3, Visibility::causal(2)) == "no error");
  CHECK(call(k, narrow, 0) == "attention_cached: index k is 4 in k_cache_bnsk[2 2 8 4] but 3 in v_cache_bnsk[2 2 8 3]");
  CHECK(call(narrow, narrow, 0) == "attention_cached: k_cache_bnsk is [2 2 8 3], expected [2 2 s 4]");
  CHECK(call(k, f32, 0) == "attention_cached: q_bcx is f64 on cpu, but v_cache_bnsk is f32 on cpu");
  CHECK(call(k, k, 0) == "attention_cached: k and v share a cache, expected k and v to be the same columns of the same tensor");
  CHECK(call(k, v, 6) == "attention_cached: the caches have 8 slots, but 9 positions need 9");
  CHECK(call(k, v, 6, Visibility::causal(9)) == "attention_cached: the caches have 8 slots, but 9 positions need 9");
  CHECK(call(k, v, 60, Visibility::causal(8)) == "no error");
  const Tensor one = draw({2, 1, 8}, 1), three = draw({2, 3, 8}, 1);
  CHECK(message_of([&] { attention_cached({one}, {three}, {three}, k, v, 0, Visibility::causal(), {.heads = 2}); }) ==
        "attention_cached: there are 1 new queries and 3 new keys, expected the same number");
}
