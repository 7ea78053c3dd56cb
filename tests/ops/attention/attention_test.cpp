// attention and its backward against the definition, on every device, for all layouts of queries, keys and values. A query that sees no key
// returns exactly zero and passes no gradient. Dropout of the weights; threads and memory on the CPU; errors.
#include <cmath>
#include <vector>

#include "core/memory/memory.h"
#include "tests/ops/attention/cases.h"
#include "tests/skip.h"

using namespace ricci;

namespace {

// Queries, keys and values in every layout.
std::vector<Case> cases_of_views() {
  const auto causal = Visibility::causal, not_causal = Visibility::not_causal;
  std::vector<Case> all;
  const auto add = [&](Case of) {
    for (Place place : all_places()) {
      of.place = place;
      if (of.columns().tensors.size() > 1 || of.key_count() == of.c) all.push_back(of);
    }
  };
  add({2, 9, 2, 5, causal(0)});
  add({1, 67, 1, 12, causal(0), 0.3});
  add({2, 70, 1, 20, not_causal(6), 0, {66, 3}});
  add({1, 5, 2, 9, not_causal(0), 0, {}, Place::three_tensors, 71});  // fewer queries than keys
  add({1, 71, 2, 9, causal(0), 0.2, {}, Place::three_tensors, 5});    // more
  add({1, 3, 1, 4, causal(9).from(60), 0, {}, Place::three_tensors, 66});
  add({2, 30, 1, 8, causal(0), 0, {}, Place::three_tensors, 30, 0.2});  // a different scale of the scores
  return all;
}

std::vector<Case> cases_of_cells() {
  const auto cells = Visibility::cells;
  const CellRule inside = CellRule::inside, end = CellRule::end;
  std::vector<Case> all;
  const auto add = [&](int64_t b, int64_t c, int64_t keys, const Visibility& sees, double dropout = 0, std::vector<int64_t> lengths = {}) {
    const Place places[] = {Place::three_tensors, Place::keys_are_values, Place::wider_tensors};
    for (size_t i = 0; i < (test::everything() ? 3 : 1); ++i)  // else each in turn
      all.push_back({b, c, 2, 7, sees, dropout, lengths, places[(all.size() + i) % 3], keys});
  };
  add(1, 13, 3, cells(4, 0, Visibility::kEndless, inside));
  add(2, 150, 37, cells(4, 0, Visibility::kEndless, inside));
  add(1, 150, 75, cells(2, 8, 140, inside));
  add(1, 150, 75, cells(2, 8, 140, end), 0.3);
  add(1, 130, 43, cells(3, 0, 3, inside));     // a window of a single cell, seen by a third of the queries
  add(1, 133, 130, cells(64, 0, 64, inside));  // more cells than there are, for the blocks
  add(1, 130, 32, cells(4, 6, 9, end));        // a window narrower than a cell
  add(2, 70, 17, cells(4, 4, 40, end), 0, {17, 2});
  add(3, 40, 20, cells(2, 1, 30, inside), 0.2, {0, 1, 19});
  add(1, 20, 5, cells(4, 30, 60, inside));  // no query sees a key
  return all;
}

Case three(int64_t b, int64_t c, int64_t keys, const Visibility& sees, std::vector<int64_t> lengths = {}, int64_t width = 5) {
  return {b, c, 1, width, sees, 0, std::move(lengths), Place::three_tensors, keys};
}

// bf16 has separate kernels for the second.
std::vector<int64_t> widths(Dtype dtype) { return dtype == Dtype::bf16 ? std::vector<int64_t>{5, 32} : std::vector<int64_t>{5}; }

std::string message(const ColumnSlice& q, const ColumnSlice& k, const ColumnSlice& v, const AttentionOptions& options = {.heads = 2},
    const Visibility& sees = Visibility::causal()) {
  return message_of([&] { attention(q, k, v, sees, options); });
}

}  // namespace

TEST_CASE("attention and its backward equal the definition on the CPU") {
  int turn = 0;
  const auto takes_turn = [&] { return test::everything() || ++turn % 3 == 0; };  // adjacent cases share different parts
  for (int64_t c : {1, 2, 7, 63, 64, 65, 130, 257})
    for (bool causal : {true, false})
      for (int64_t window : {0, 1, 5, 64, 100})
        if (takes_turn()) check_exact({1, c, 2, 16, tokens(causal, window)}, Device::cpu);
  for (int64_t width : {1, 2, 3, 15, 17, 31, 32, 33, 48, 64, 65, 80, 100, 128, 256, 300})
    for (bool causal : {true, false})
      if (takes_turn()) check_exact({2, 67, 1 + width % 3, width, tokens(causal)}, Device::cpu);
  for (int64_t c : {1, 2, 3, 7, 66, 133})
    for (int64_t window : {0, 5}) check_exact({2, c, 3, 8, tokens(c % 2 == 1, window), 0.3}, Device::cpu);
  for (int64_t c : {1, 7, 64, 65, 130, 257})
    for (bool causal : {true, false})
      for (int64_t window : {0, 5, 100})
        if (takes_turn()) check_exact({5, c, 2, 9, tokens(causal, window), 0, {c, 0, 1, c / 2, c - 1}}, Device::cpu);
}

TEST_CASE("attention and its backward equal the definition on every device") {
  on_every_device([](Device device) {
    for (const Case& of : std::vector<Case>{{1, 1, 1, 1}, {2, 2, 3, 5}, {1, 7, 2, 16, tokens(false)}, {1, 63, 1, 32}, {2, 64, 2, 8},
             {1, 65, 2, 33}, {1, 65, 1, 64, tokens(false)}, {1, 130, 1, 20, tokens(true, 40)}, {1, 130, 2, 20, tokens(false, 40)},
             {1, 130, 1, 4, tokens(true, 1)}, {1, 150, 1, 4, tokens(false, 70)}, {1, 70, 1, 72}, {1, 40, 1, 130},
             {1, 20, 1, 300, tokens(false)}, {2, 67, 2, 6, tokens(true), 0.3}, {1, 30, 2, 40, tokens(false, 9), 0.5},
             {4, 7, 2, 5, tokens(true), 0, {7, 3, 0, 1}}, {3, 130, 1, 9, tokens(true, 40), 0, {64, 129, 2}},
             {2, 130, 1, 20, tokens(false), 0, {65, 63}}, {2, 66, 1, 130, tokens(false, 9), 0, {66, 5}},
             {2, 67, 2, 6, tokens(true), 0.3, {66, 1}}})
      check_exact(of, device);
  });
}

TEST_CASE("in one tensor, in two and in three, also as the same columns, and of cells of a scale") {
  on_every_device([](Device device) {
    for (const Case& of : cases_of_views()) check_exact(of, device);
    for (const Case& of : cases_of_cells()) check_exact(of, device);
  });
}

TEST_CASE("the definition, one head, equals the op and its gradients") {
  for (const Visibility& sees : {Visibility::causal(), Visibility::causal(3), Visibility::not_causal(), Visibility::cells(2, 1, 9)}) {
    const Case of{1, 17, 1, 5, sees, 0, {}, Place::three_tensors, 8, 0.7};
    const std::vector<Tensor> in = of.inputs();
    const auto matrix = [&](const Tensor& t) { return t.reshaped({t.shape()[1], 5}); };
    const Tensor q = matrix(in[0]), k = matrix(in[1]), v = matrix(in[2]);
    ForwardAndBackward got{naive_attention(q, k, v, sees, 0.7).reshaped({1, 17, 5}), {}};
    for (const Tensor& d : naive_attention_gradients(matrix(of.dy()), q, k, v, sees, 0.7))
      got.gradients.push_back(d.reshaped({1, d.shape()[0], 5}));
    check_equal(got, run(of, Dtype::f64, Device::cpu));
  }
}

TEST_CASE("a tensor that is named for each view gets the same gradient as one that is named once") {
  const Case of{2, 9, 2, 4};
  const Parameter x{of.inputs()[0], {}, "qkv"};
  const int64_t d = of.d();
  {
    Tape tape;  // each conversion of a parameter is a separate leaf
    const Tensor y = attention({x, 0, d}, {x, d, d}, {x, 2 * d, d}, of.sees, of.options());
    tape.backward(y, of.dy());
  }
  CHECK(distance(x.grad, exact(of).gradients[0]) < 1e-12);
}

TEST_CASE("padding is not read; a query that sees no key gives zero, a key that no query sees has no gradient") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    const auto nothing = [](int64_t, int64_t) { return false; };
    for (int64_t width : widths(dtype)) {
      check_zeros({3, 70, 1, width, tokens(false, 30), 0, {0, 3, 66}}, dtype, device, [](int64_t t, int64_t j) { return t - j < 30; });
      // Only keys 3 or 4 positions back: queries 0, 1, 2 see none, and no query sees the last three keys.
      check_zeros(three(1, 70, 70, Visibility::cells(1, 3, 5), {}, width), dtype, device,
          [](int64_t t, int64_t j) { return t - j == 3 || t - j == 4; });
      // The last tokens of the cells are 8 .. 39 tokens back.
      check_zeros(three(2, 150, 37, Visibility::cells(4, 8, 40, CellRule::end), {37, 2}, width), dtype, device,
          [](int64_t t, int64_t j) { return t - (4 * j + 3) >= 8 && t - (4 * j + 3) < 40; });
      // Each cell is seen by a single query.
      check_zeros(
          three(1, 150, 9, Visibility::cells(16, 0, 16), {}, width), dtype, device, [](int64_t t, int64_t j) { return t == 16 * j + 15; });
      for (const Case& of :
          {three(1, 70, 70, Visibility::cells(1, 100, 200), {}, width), three(2, 140, 35, Visibility::cells(4, 200, 400), {}, width),
              three(2, 3, 2, Visibility::cells(4), {}, width), three(2, 6, 6, Visibility::causal(), {0, 0}, width)})
        check_zeros(of, dtype, device, nothing);
    }
  });
}

TEST_CASE("no keys, no queries, no sequences") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (int64_t width : widths(dtype))
      for (const Case& of : std::vector<Case>{three(2, 3, 0, Visibility::cells(4), {}, width),
               three(2, 0, 7, Visibility::cells(4), {}, width), three(2, 0, 0, Visibility::causal(), {}, width),
               three(0, 5, 5, Visibility::causal(), {}, width), three(2, 3, 0, Visibility::cells(4), {0, 0}, width), {0, 5, 2, 2}}) {
        CAPTURE(of.text());
        const ForwardAndBackward got = run(of, dtype, device);
        CHECK(got.y.shape() == Shape{of.b, of.c, of.d()});
        for (double value : values_of(got.y)) CHECK(value == 0);
        const std::vector<Tensor> inputs = of.inputs();
        for (size_t i = 0; i < inputs.size(); ++i) {
          CHECK(got.gradients[i].shape() == inputs[i].shape());
          for (double value : values_of(got.gradients[i])) CHECK(value == 0);
        }
      }
  });
}

// The comparison with the definition tests that the backward drops the same ones.
TEST_CASE("dropout of weights: how many, which ones, and others in the next call") {
  on_every_device([](Device device) {
    constexpr double p = 0.25, positions = 70;
    const auto draw_weights = [&] { return uniform_weights(70, 70, 70, Visibility::not_causal(), Dtype::f64, device, p); };
    set_random_state({9, 4});
    const Values weights = draw_weights(), others = draw_weights();
    set_random_state({9, 4});
    CHECK(draw_weights() == weights);
    CHECK(random_state() == RandomState{9, 5});
    int64_t dropped = 0, same = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] != 0) CHECK(std::abs(weights[i] * positions * (1 - p) - 1) < 1e-14);
      dropped += weights[i] == 0, same += (weights[i] == 0) == (others[i] == 0);
    }
    const double n = positions * positions, agree = p * p + (1 - p) * (1 - p);  // both counts are within four standard deviations
    CHECK(std::abs(dropped - n * p) < 4 * std::sqrt(n * p * (1 - p)));
    CHECK(std::abs(same - n * agree) < 4 * std::sqrt(n * agree * (1 - agree)));
  });
}

TEST_CASE("attention on the CPU: the result does not depend on the number of threads") {
  for (const Case& of : std::vector<Case>{{1, 300, 1, 24}, {1, 200, 3, 32, tokens(false)}, {3, 130, 1, 64, tokens(true, 77)},
           {4, 65, 2, 16, tokens(true), 0.2}, {1, 300, 1, 24, tokens(true), 0, {100}},
           {1, 300, 1, 24, tokens(true), 0, {}, Place::all_the_same}, {1, 300, 1, 24, tokens(true), 0, {}, Place::queries_are_values},
           {1, 300, 1, 24, Visibility::cells(4, 0, 130), 0.2, {}, Place::keys_are_values, 75},
           {1, 300, 1, 24, Visibility::cells(4, 70, 500), 0, {}, Place::three_tensors, 75},
           {2, 40, 1, 24, tokens(false), 0, {}, Place::three_tensors, 300}, {1, 300, 4, 24, tokens(true), 0, {}, Place::thirds, -1, 0, 1},
           {1, 130, 6, 64, tokens(true, 77), 0.2, {}, Place::thirds, -1, 0, 2},
           {2, 70, 4, 16, tokens(false), 0, {}, Place::thirds, -1, 0, 2}})
    for (Dtype dtype : {Dtype::f32, Dtype::bf16})
      check_threads([&] {
        const ForwardAndBackward got = run(of, dtype, Device::cpu);
        std::vector<Tensor> all = got.gradients;
        all.push_back(got.y);
        return all;
      });
}

TEST_CASE("attention on the CPU: nothing as large as c x c is held, and each tensor is kept once") {
  const int64_t c = 1500, d = 16;
  const Parameter x{convert(draw({1, c, 3 * d}, 1), Dtype::f32), {}, "qkv"};
  const Tensor dy = convert(draw({1, c, d}, 2), Dtype::f32);
  const int64_t before = memory_use(Device::cpu).current;
  reset_peak(Device::cpu);
  Tape tape;
  const auto [q, k, v] = thirds(x);
  const Tensor y = attention(q, k, v, Visibility::causal(), {.heads = 1});
  CHECK(kept_bytes(tape) == x.value.bytes() + y.bytes() + c * 4);
  tape.backward(y, dy);
  CHECK(memory_use(Device::cpu).peak - before < c * c * 4 / 4);
}

// ---- Query heads share a head of keys and values: as with keys and values repeated, and their gradients summed

namespace {

// Keys with the columns of a shared head repeated for each query head (or with add the gradient of such keys, summed over query heads).
Tensor repeated(const Case& of, const Tensor& keys, bool add = false) {
  const int64_t rows = of.b * of.key_count(), group = of.heads / of.kv_heads;
  const Tensor all = zeros({of.b, of.key_count(), add ? of.kv() : of.d()}, Dtype::f64, Device::cpu);
  for (int64_t i = 0; i < rows * of.d(); ++i) {
    const int64_t x = i % of.d(), shared = i / of.d() * of.kv() + x / of.width / group * of.width + x % of.width;
    all.data<double>()[add ? shared : i] += keys.data<double>()[add ? i : shared];
  }
  return all;
}

}  // namespace

TEST_CASE("heads that share their keys are heads with repeated keys, whose gradients add up") {
  on_every_device([](Device device) {
    const Place place = Place::three_tensors;
    for (const Case& of : std::vector<Case>{{1, 67, 6, 5, tokens(true), 0, {}, place, -1, 0, 1},
             {1, 67, 6, 5, tokens(true), 0, {}, place, -1, 0, 2}, {1, 67, 6, 5, tokens(true), 0, {}, place, -1, 0, 3},
             {1, 67, 6, 5, tokens(true), 0, {}, place, -1, 0, 6}, {3, 70, 4, 3, tokens(true, 9), 0.2, {70, 1, 33}, place, -1, 0.4, 2},
             {1, 40, 4, 33, Visibility::cells(4, 0, 30), 0, {}, place, 10, 0, 2}}) {
      CAPTURE(of.text());
      const std::vector<Tensor> in = of.inputs();
      Case plain = of;
      plain.kv_heads = 0;
      ForwardAndBackward expected = exact(plain, {in[0], repeated(of, in[1]), repeated(of, in[2])}, of.dy());
      for (size_t i : {1, 2}) expected.gradients[i] = repeated(of, expected.gradients[i], true);
      check_equal(run(of, as(in, Dtype::f64, device), to(of.dy(), device)), expected);
    }
  });
}

TEST_CASE("a key head for each head gives the bits of attention without groups") {
  on_every_device([](Device device) {
    for (const auto& [dtype, width] : {std::pair<Dtype, int64_t>{Dtype::f32, 12}, {Dtype::f64, 12}, {Dtype::bf16, 12}, {Dtype::bf16, 32}}) {
      const Case plain{1, 70, 3, width, tokens(true), 0.1};
      Case same = plain;
      same.kv_heads = 3;
      CHECK(same_bits(run(same, dtype, device), run(plain, dtype, device)));
    }
  });
}

TEST_CASE("shared keys in bf16: flash, padded heads, blocks") {
  on_every_device([](Device device) {
    int turn = 0;
    for (int64_t width : {32, 64, 40})
      for (const Case& of : std::vector<Case>{{1, 135, 4, width, tokens(true), 0, {}, Place::thirds, -1, 0, 2},
               {1, 70, 3, width, tokens(true, 30), 0.2, {60}, Place::three_tensors, -1, 0, 1},
               {1, 70, 2, width, tokens(false), 0, {}, Place::keys_are_values, -1, 0, 1}})
        if (test::everything() || ++turn % 3 != 0 || width == 64) check_precision<bf16>(of, device);
  });
}

TEST_CASE("attention says what is wrong with its views") {
  const Tensor x = draw({2, 3, 24}, 1), longer = draw({2, 5, 24}, 1), other_batch = draw({1, 3, 24}, 1);
  CHECK(message({draw({3, 24}, 1)}, {x}, {x}) == "attention: q_bcx[3 24] does not have the indices 'bcx'");
  CHECK(message({x}, {other_batch}, {other_batch}) == "attention: index b is 2 in q_bcx[2 3 24] but 1 in k_bCy[1 3 24]");
  CHECK(message({x}, {x}, {longer}) == "attention: index C is 3 in k_bCy[2 3 24] but 5 in v_bCz[2 5 24]");
  CHECK(message({x, 0, 8}, {x, 8, 8}, {x, 17, 8}) == "attention: v[2 3 24] does not have 8 columns from column 17 on");
  CHECK(message({x, -1, 8}, {x, 8, 8}, {x, 16, 8}) == "attention: q[2 3 24] does not have 8 columns from column -1 on");
  CHECK(message({x, 24}, {x}, {x}) == "attention: q[2 3 24] does not have 0 columns from column 24 on");
  CHECK(message({x, INT64_MIN}, {x}, {x}) == "attention: q[2 3 24] does not have 0 columns from column -9223372036854775808 on");
  CHECK(message({x, INT64_MAX, 8}, {x}, {x}) == "attention: q[2 3 24] does not have 8 columns from column 9223372036854775807 on");
  CHECK(message({x, 8, INT64_MAX}, {x}, {x}) == "attention: q[2 3 24] does not have 9223372036854775807 columns from column 8 on");
  CHECK(message({x, 0, 8}, {x, 8}, {x, 16, 8}) == "attention: q has 8 columns and k has 16, expected the same number");
  CHECK(message({x, 0, 8}, {x, 4, 8}, {x, 16, 8}) ==
        "attention: the columns 0 .. 7 of q and 4 .. 11 of k overlap, expected equal or disjoint columns");
  CHECK(message({x, 0, 8}, {longer, 4, 8}, {longer, 11, 8}) ==
        "attention: the columns 4 .. 11 of k and 11 .. 18 of v overlap, expected equal or disjoint columns");
  CHECK(message({x, 0, 8}, {longer, 0, 8}, {longer, 8, 8}) == "no error");
  CHECK(message({x, 0, 8}, {convert(x, Dtype::f32), 8, 8}, {x, 16, 8}) == "attention: q_bcx is f64 on cpu, but k_bCy is f32 on cpu");
  CHECK(message({x, 0, 8}, {x, 8, 8}, {to(x, Device::cuda_emulated), 16, 8}) ==
        "attention: q_bcx is f64 on cpu, but v_bCz is f64 on cuda_emulated");
  CHECK(message_of([&] { thirds(draw({2, 3, 23}, 1)); }) == "attention: the shape is [2 3 23], expected q | k | v [b, c, 3 d]");
  CHECK(message_of([&] { thirds(draw({2, 24}, 1)); }) == "attention: the shape is [2 24], expected q | k | v [b, c, 3 d]");
}

TEST_CASE("attention says what is wrong with its options") {
  const Tensor x = draw({2, 3, 8}, 1);
  const auto with = [&](const AttentionOptions& options, const Visibility& sees = Visibility::causal()) {
    return message({x}, {x}, {x}, options, sees);
  };
  CHECK(with({.heads = 5}) == "attention: there are 8 columns, expected a multiple of the 5 heads");
  CHECK(with({.heads = 0}) == "attention: heads is 0, expected at least 1");
  CHECK(with({.heads = 2, .scale = -1}) == "attention: scale is -1, expected more than 0, or 0 for 1 / sqrt(k)");
  CHECK(with({.heads = 2, .scale = HUGE_VAL}) == "attention: scale is inf, expected more than 0, or 0 for 1 / sqrt(k)");
  CHECK(with({.heads = 2, .dropout = 1.0}) == "attention: dropout is 1, expected 0 or more and less than 1");
  CHECK(with({.heads = 2}, {.cell = 0}) == "attention: the keys are cells of 0 tokens, expected 1 .. 16777216");
  CHECK(with({.heads = 2}, {.cell = 16777217}) == "attention: the keys are cells of 16777217 tokens, expected 1 .. 16777216");
  CHECK(with({.heads = 2}, {.most = INT64_MAX}) == "attention: the visible keys are 0 to 9223372036854775807 tokens back, expected "
                                                   "-2305843009213693952 .. 2305843009213693952");
}

TEST_CASE("attention says what is wrong with its key heads") {
  const Tensor q = draw({1, 3, 8}, 1), kv = draw({1, 3, 8}, 2);
  const auto with = [&](int64_t kv_heads, int64_t width) {
    return message({q}, {kv, 0, width}, {kv, 4, width}, {.heads = 4, .kv_heads = kv_heads});
  };
  CHECK(with(3, 2) == "attention: kv_heads is 3, expected a divisor of 4 heads");
  CHECK(with(-1, 2) == "attention: kv_heads is -1, expected a divisor of 4 heads");
  CHECK(with(2, 2) == "attention: q has 8 columns and k has 2, expected 4 (2 query heads share a head of keys and values)");
  CHECK(with(2, 4) == "no error");
}

TEST_CASE("attention says what is wrong with its lengths") {
  const Tensor q = draw({2, 7, 8}, 1), k = draw({2, 3, 8}, 1);
  const auto with = [&](const Tensor& lengths_b) { return message({q}, {k}, {k}, {.heads = 2, .lengths_b = lengths_b}); };
  CHECK(with(ids_of({3, 3, 3}, {3}, Device::cpu)) == "attention: index b is 2 in q_bcx[2 7 8] but 3 in lengths_b[3]");
  CHECK(with(drawn({2}, Dtype::f32, Device::cpu, 1)) == "attention: lengths_b[2] is f32, expected i64");
  CHECK(with(ids_of({3, 3}, {2}, Device::cuda_emulated)) == "attention: q_bcx is f64 on cpu, but lengths_b is i64 on cuda_emulated");
  CHECK(with(ids_of({0, 4}, {2}, Device::cpu)) == "attention: length 4 at [1] of lengths_b is outside 0 .. 3");
  CHECK(with(ids_of({-1, 4}, {2}, Device::cpu)) == "attention: length -1 at [0] of lengths_b is outside 0 .. 3");
}
