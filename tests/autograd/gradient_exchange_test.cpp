#include "autograd/gradient_exchange.h"

#include "autograd/tape.h"
#include "models/training/share.h"
#include "ops/elements/arithmetic.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

// Gradients of leaves, drawn so that the order of additions shows in the bits.
Tensor gradient(int64_t leaf, size_t parameter, Dtype dtype, Device device) {
  return drawn({parameter ? 7 : 3}, dtype, device, static_cast<uint64_t>(leaf * 2) + parameter);
}

// The definition.
Tensor tree_sum(const Range& leaves, size_t parameter, Dtype dtype, Device device) {
  if (leaves.hi - leaves.lo == 1) return gradient(leaves.lo, parameter, dtype, device);
  const int64_t middle = middle_of(leaves);
  const Tensor sum = tree_sum({leaves.lo, middle}, parameter, dtype, device);
  add_to(sum, tree_sum({middle, leaves.hi}, parameter, dtype, device));
  return sum;
}

struct TwoParameters {
  Parameter a, b;
  std::vector<Parameter*> list() { return {&a, &b}; }
  TwoParameters() : a{Tensor({3}), {}, "a"}, b{Tensor({7}), {}, "b"} {}
};

}  // namespace

TEST_CASE("leaf sums: the sums of a rank are those of its subtrees, in all bits") {
  on_every_device([](Device device) {
    for (const Dtype dtype : {Dtype::f32, Dtype::f64})
      for (int64_t all = 1; all <= (device == Device::cpu ? 16 : 5); ++all)
        for (int64_t ranks = 1; ranks <= all; ++ranks)
          for (int64_t rank = 0; rank < ranks; ++rank) {
            TwoParameters p;
            const Range own = Share::of_rank(all, all, rank, ranks).leaves;
            LeafSums sums(p.list(), all, own);
            for (int step = 0; step < 2; ++step) {
              sums.begin();
              for (int64_t leaf = own.lo; leaf < own.hi; ++leaf) {
                if (leaf > own.lo) sums.end_leaf();
                for (size_t i = 0; i < 2; ++i) p.list()[i]->grad = gradient(leaf, i, dtype, device);
              }
              const std::vector<Range> nodes = subtrees(all, own);
              REQUIRE(sums.earlier() + 1 == nodes.size());
              for (size_t i = 0; i < 2; ++i) {
                sums.finish(i);
                for (size_t s = 0; s < nodes.size(); ++s) {
                  const Tensor got = s < sums.earlier() ? sums.take_earlier(s, i) : p.list()[i]->grad;
                  CHECK(same_bits(got, tree_sum(nodes[s], i, dtype, device)));
                }
                p.list()[i]->grad = {};
              }
            }
          }
  });
}

TEST_CASE("leaf sums: two parameters whose gradients are one tensor do not add into each other") {
  TwoParameters p;
  p.a.value = drawn({3}, Dtype::f64, Device::cpu, 1), p.b.value = drawn({3}, Dtype::f64, Device::cpu, 2);
  LeafSums sums(p.list(), 4, {0, 4});
  for (int64_t leaf = 0; leaf < 4; ++leaf) {
    if (leaf > 0) sums.end_leaf();
    Tape tape;
    tape.backward({Arg(p.a) + p.b}, {tensor_of({1, 2, 4}, {3}, Dtype::f64, Device::cpu)});
    if (leaf == 0) REQUIRE_FALSE(p.a.grad.unique());
  }
  for (size_t i = 0; i < 2; ++i) sums.finish(i);
  CHECK(values_of(p.a.grad) == Values{4, 8, 16});
  CHECK(values_of(p.b.grad) == Values{4, 8, 16});
}

TEST_CASE("leaf sums: a parameter without a gradient has none in every leaf") {
  TwoParameters p;
  LeafSums sums(p.list(), 3, {0, 3});
  const auto step = [&](int64_t without) {
    sums.begin();
    for (int64_t leaf = 0; leaf < 3; ++leaf) {
      if (leaf > 0) sums.end_leaf();
      p.a.grad = gradient(leaf, 0, Dtype::f32, Device::cpu);
      p.b.grad = leaf == without ? gradient(leaf, 1, Dtype::f32, Device::cpu) : Tensor();
    }
    for (size_t i = 0; i < 2; ++i) sums.finish(i);
  };
  step(-1);
  CHECK_FALSE(p.b.grad);
  CHECK(message_of([&] { step(0); }) == "b has no gradient in the leaves from 1 to 1 of 3, in those from 0 to 0 it has");
  CHECK(message_of([&] { step(2); }) == "b has no gradient in the leaves from 0 to 1 of 3, in those from 2 to 2 it has");
}
