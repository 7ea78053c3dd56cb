// The errors of attention for arguments that do not fit.
#include "tests/ops/attention/cases.h"

using namespace ricci;

namespace {

std::string message(const Rows& q, const Rows& k, const Rows& v, const AttentionOptions& options = {.heads = 2},
    const Visibility& sees = Visibility::causal()) {
  return message_of([&] { attention(q, k, v, sees, options); });
}

}  // namespace

TEST_CASE("attention says what is wrong with its views") {
  const Tensor x = draw({2, 3, 24}, 1), longer = draw({2, 5, 24}, 1), other_batch = draw({1, 3, 24}, 1);
  CHECK(message({draw({3, 24}, 1)}, {x}, {x}) == "attention: q_bcx[3 24] does not have the indices 'bcx'");
  CHECK(message({x}, {other_batch}, {other_batch}) == "attention: index b is 2 in q_bcx[2 3 24] but 1 in k_bCy[1 3 24]");
  CHECK(message({x}, {x}, {longer}) == "attention: index C is 3 in k_bCy[2 3 24] but 5 in v_bCz[2 5 24]");
  CHECK(message({x, 0, 8}, {x, 8, 8}, {x, 17, 8}) == "attention: v[2 3 24] does not have the columns 17 .. 24");
  CHECK(message({x, -1, 8}, {x, 8, 8}, {x, 16, 8}) == "attention: q[2 3 24] does not have the columns -1 .. 6");
  CHECK(message({x, 24}, {x}, {x}) == "attention: q[2 3 24] does not have the columns 24 .. 23");
  CHECK(message({x, 0, 8}, {x, 8}, {x, 16, 8}) == "attention: q has 8 columns, k has 16, expected the same");
  CHECK(message({x, 0, 8}, {x, 4, 8}, {x, 16, 8}) ==
        "attention: the columns 0 .. 7 of q and 4 .. 11 of k overlap, expected the same or separate ones");
  CHECK(message({x, 0, 8}, {longer, 4, 8}, {longer, 11, 8}) ==
        "attention: the columns 4 .. 11 of k and 11 .. 18 of v overlap, expected the same or separate ones");
  CHECK(message({x, 0, 8}, {longer, 0, 8}, {longer, 8, 8}) == "no error");
  CHECK(message({x, 0, 8}, {convert(x, Dtype::f32), 8, 8}, {x, 16, 8}) == "attention: q_bcx is f64 on cpu, k_bCy f32 on cpu");
  CHECK(
      message({x, 0, 8}, {x, 8, 8}, {to(x, Device::cuda_emulated), 16, 8}) == "attention: q_bcx is f64 on cpu, v_bCz f64 on cuda_emulated");
  CHECK(message_of([&] { thirds(draw({2, 3, 23}, 1)); }) == "attention: [2 3 23] is not q | k | v [b, c, 3 d]");
  CHECK(message_of([&] { thirds(draw({2, 24}, 1)); }) == "attention: [2 24] is not q | k | v [b, c, 3 d]");
}

TEST_CASE("attention says what is wrong with its options") {
  const Tensor x = draw({2, 3, 8}, 1);
  const auto with = [&](const AttentionOptions& options, const Visibility& sees = Visibility::causal()) {
    return message({x}, {x}, {x}, options, sees);
  };
  CHECK(with({.heads = 5}) == "attention: 8 columns are not a multiple of 5 heads");
  CHECK(with({.heads = 0}) == "attention: heads is 0, expected at least 1");
  CHECK(with({.heads = 2, .scale = -1}) == "attention: scale is -1, expected more than 0, or 0 for 1 / sqrt(k)");
  CHECK(with({.heads = 2, .scale = HUGE_VAL}) == "attention: scale is inf, expected more than 0, or 0 for 1 / sqrt(k)");
  CHECK(with({.heads = 2, .dropout = 1.0}) == "attention: dropout is 1, expected 0 or more and less than 1");
  CHECK(with({.heads = 2}, {.scale = 0}) == "attention: keys of 0 tokens, expected 1 .. 16777216");
  CHECK(with({.heads = 2}, {.scale = 16777217}) == "attention: keys of 16777217 tokens, expected 1 .. 16777216");
  CHECK(
      message_of([&] { naive_attention({x}, {x}, {x}, {}, {.heads = 5}); }) == "naive_attention: 8 columns are not a multiple of 5 heads");
}

TEST_CASE("attention says what is wrong with its lengths") {
  const Tensor q = draw({2, 7, 8}, 1), k = draw({2, 3, 8}, 1);
  const auto with = [&](const Tensor& lengths_b) { return message({q}, {k}, {k}, {.heads = 2, .lengths_b = lengths_b}); };
  CHECK(with(ids_of({3, 3, 3}, {3}, Device::cpu)) == "attention: index b is 2 in q_bcx[2 7 8] but 3 in lengths_b[3]");
  CHECK(with(drawn({2}, Dtype::f32, Device::cpu, 1)) == "attention: lengths_b[2] is f32, expected i64");
  CHECK(with(ids_of({3, 3}, {2}, Device::cuda_emulated)) == "attention: q_bcx is f64 on cpu, lengths_b i64 on cuda_emulated");
  CHECK(with(ids_of({0, 4}, {2}, Device::cpu)) == "attention: length 4 at [1] of lengths_b is outside 0 .. 3");
  CHECK(with(ids_of({-1, 4}, {2}, Device::cpu)) == "attention: length -1 at [0] of lengths_b is outside 0 .. 3");
}
