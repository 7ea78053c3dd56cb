// Attention in which several query heads share a head of keys and values: on every path it is attention with the keys and values repeated,
// and their gradients summed over the heads that share them.
#include <vector>

#include "core/error.h"
#include "tests/ops/attention/cases.h"
#include "tests/skip.h"

using namespace ricci;

namespace {

// The case of three tensors with a key head for each query head, and its inputs with the columns of those heads repeated.
Case repeated(Case of) {
  of.kv_heads = 0;
  return of;
}
// The place in keys that element i of repeated keys has.
int64_t place(const Case& of, int64_t i) {
  const int64_t x = i % of.d(), group = of.heads / of.kv_heads;
  return i / of.d() * of.kv() + x / of.width / group * of.width + x % of.width;
}
Tensor repeated(const Case& of, const Tensor& keys) {
  const Tensor all({keys.shape()[0], keys.shape()[1], of.d()}, Dtype::f64);
  for (int64_t i = 0; i < all.size(); ++i) all.data<double>()[i] = keys.data<double>()[place(of, i)];
  return all;
}
Tensor summed(const Case& of, const Tensor& gradient) {
  const Tensor all = zeros({gradient.shape()[0], gradient.shape()[1], of.kv()}, Dtype::f64, Device::cpu);
  for (int64_t i = 0; i < gradient.size(); ++i) all.data<double>()[place(of, i)] += gradient.data<double>()[i];
  return all;
}

const std::vector<Case>& shared_cases() {
  static const Case plain{1, 67, 6, 5, tokens(true), 0, {}, Place::three_tensors};
  static const std::vector<Case> all = [] {
    std::vector<Case> cases;
    for (int64_t kv_heads : {1, 2, 3, 6}) cases.push_back(plain), cases.back().kv_heads = kv_heads;
    cases.push_back({3, 70, 4, 3, tokens(true, 9), 0.2, {70, 1, 33}, Place::three_tensors, -1, 0.4, 2});
    cases.push_back({1, 40, 4, 33, Visibility::cells(4, 0, 30), 0, {}, Place::three_tensors, 10, 0, 2});
    return cases;
  }();
  return all;
}

}  // namespace

TEST_CASE("heads that share their keys are heads with repeated keys, whose gradients add up") {
  on_every_device([](Device device) {
    for (const Case& of : shared_cases()) {
      CAPTURE(of.text());
      const std::vector<Tensor> in = of.inputs();
      const ForwardAndBackward expected = run(naive_attention, repeated(of), {in[0], repeated(of, in[1]), repeated(of, in[2])}, of.dy());
      for (Attention f : {attention, naive_attention}) {
        if (f == naive_attention && device != Device::cpu) continue;
        const ForwardAndBackward got = run(f, of, as(in, Dtype::f64, device), to(of.dy(), device));
        CHECK(distance(got.y, expected.y) < 1e-12);
        CHECK(distance(got.gradients[0], expected.gradients[0]) < 1e-12);
        for (size_t i : {1, 2}) CHECK(distance(got.gradients[i], summed(of, expected.gradients[i])) < 1e-12);
      }
    }
  });
}

TEST_CASE("a key head for each head gives the bits of attention without groups") {
  on_every_device([](Device device) {
    for (const auto& [dtype, width] : {std::pair<Dtype, int64_t>{Dtype::f32, 12}, {Dtype::f64, 12}, {Dtype::bf16, 12}, {Dtype::bf16, 32}}) {
      const Case plain{1, 70, 3, width, tokens(true), 0.1};
      Case same = plain;
      same.kv_heads = 3;
      CHECK(same_bits(run(attention, same, dtype, device), run(attention, plain, dtype, device)));
    }
  });
}

TEST_CASE("the gradients of shared keys do not depend on the number of threads") {
  for (const Case& of : std::vector<Case>{{1, 300, 4, 24, tokens(true), 0, {}, Place::thirds, -1, 0, 1},
           {1, 130, 6, 64, tokens(true, 77), 0.2, {}, Place::thirds, -1, 0, 2},
           {2, 70, 4, 16, tokens(false), 0, {}, Place::thirds, -1, 0, 2}})
    for (Dtype dtype : {Dtype::f32, Dtype::bf16}) {
      CAPTURE(of.text());
      check_threads([&] { return run(attention, of, dtype, Device::cpu).gradients; });
    }
}

TEST_CASE("shared keys in bf16: flash, padded heads, products of wide heads") {
  on_every_device([](Device device) {
    int turn = 0;
    for (int64_t width : {32, 64, 40, 132})
      for (const Case& of : std::vector<Case>{{1, 135, 4, width, tokens(true), 0, {}, Place::thirds, -1, 0, 2},
               {1, 70, 3, width, tokens(true, 30), 0.2, {60}, Place::three_tensors, -1, 0, 1},
               {1, 70, 2, width, tokens(false), 0, {}, Place::keys_are_values, -1, 0, 1}})
        if (test::everything() || ++turn % 3 != 0 || width == 64) check_precision<bf16>(of, device);
  });
}

TEST_CASE("shared keys: what cannot be is said") {
  const Tensor q = draw({1, 3, 8}, 1), kv = draw({1, 3, 8}, 2);
  const auto message = [&](int64_t heads, int64_t kv_heads, int64_t width) {
    return message_of([&] {
      attention({q}, {kv, 0, width}, {kv, 4, width}, Visibility::causal(), {.heads = heads, .kv_heads = kv_heads});
    });
  };
  CHECK(message(4, 3, 2) == "attention: 3 key heads, expected a number that divides 4 heads");
  CHECK(message(4, -1, 2) == "attention: -1 key heads, expected a number that divides 4 heads");
  CHECK(message(4, 2, 2) == "attention: q has 8 columns, k has 2, expected 4: 2 query heads share one of its heads");
  CHECK(message(4, 2, 4) == "no error");
}
