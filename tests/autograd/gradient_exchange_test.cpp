#include "autograd/gradient_exchange.h"

#include <algorithm>

#include "autograd/tape.h"
#include "models/training/share.h"
#include "ops/elements/arithmetic.h"
#include "tests/ops/values.h"
#include "tests/thread_ranks.h"

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

// Parameters of several blocks, of one, and of a few elements; nothing reaches the last but one.
std::vector<int64_t> sizes() { return {3 * GradientLayout::kBlock + 5, 7, GradientLayout::kBlock, 2, 40}; }
constexpr size_t kUnreached = 3;

struct Several {
  std::vector<Parameter> parameters;
  Several() {
    for (int64_t n : sizes()) parameters.push_back({drawn({n}, Dtype::f32, Device::cpu, 900 + static_cast<uint64_t>(n)), {}, "p"});
  }
  std::vector<Parameter*> list() {
    std::vector<Parameter*> all;
    for (Parameter& p : parameters) all.push_back(&p);
    return all;
  }
};

Tensor leaf_gradient(int64_t leaf, size_t parameter) {
  const auto number = static_cast<uint64_t>(leaf) * sizes().size() + parameter;
  return parameter == kUnreached ? Tensor() : drawn({sizes()[parameter]}, Dtype::f32, Device::cpu, number);
}

// The definition.
Tensor sum_of_leaves(const std::vector<std::vector<Tensor>>& leaves, const Range& node, size_t parameter) {
  const Tensor sum = like(leaves[0][parameter]);
  if (node.hi - node.lo == 1) {
    copy(sum, leaves[static_cast<size_t>(node.lo)][parameter]);
    return sum;
  }
  const int64_t middle = middle_of(node);
  copy(sum, sum_of_leaves(leaves, {node.lo, middle}, parameter));
  add_to(sum, sum_of_leaves(leaves, {middle, node.hi}, parameter));
  return sum;
}

// One step of one rank: its sums go to `sums`, its values become their negatives. Ranks complete the parameters in orders of their own.
void exchange_once(GradientExchange& exchange, Several& p, Ranks& ranks, const Range& own, const std::vector<std::vector<Tensor>>& leaves,
    const std::vector<Tensor>& sums) {
  exchange.begin();
  for (int64_t leaf = own.lo; leaf < own.hi; ++leaf) {
    if (leaf > own.lo) exchange.leaves().end_leaf();
    for (size_t i = 0; i < p.parameters.size(); ++i) {
      const Tensor& gradient = leaves[static_cast<size_t>(leaf)][i];
      if (gradient) copy(p.parameters[i].grad = like(gradient), gradient);
    }
  }
  for (size_t i = 0; i + 1 < p.parameters.size(); ++i)  // the last is left to finish()
    exchange.completed(p.parameters[ranks.rank() % 2 ? i : p.parameters.size() - 2 - i]);
  const std::vector<Tensor> gradients = exchange.finish();
  const std::vector<OwnedBlock> blocks = exchange.layout().blocks_of(ranks.rank());
  CHECK(gradients.size() == blocks.size());
  for (size_t b = 0; b < blocks.size(); ++b) {
    const Tensor value = part_of(p.parameters[blocks[b].parameter].value, blocks[b].elements);
    CHECK(static_cast<bool>(gradients[b]) == (blocks[b].parameter != kUnreached));
    multiply_by(value, -1);
    if (gradients[b]) copy(part_of(sums[blocks[b].parameter], blocks[b].elements), gradients[b]);
  }
  exchange.gather_values();
}

}  // namespace

TEST_CASE("gradient exchange: owners have the sums of the definition and all have the owners' values, for every number of ranks up to 16") {
  std::vector<std::vector<Tensor>> leaves(16);
  for (size_t leaf = 0; leaf < leaves.size(); ++leaf)
    for (size_t i = 0; i < sizes().size(); ++i) leaves[leaf].push_back(leaf_gradient(static_cast<int64_t>(leaf), i));
  for (int64_t all = 1; all <= 16; ++all) {
    std::vector<Tensor> expected;
    for (size_t i = 0; i < sizes().size(); ++i) expected.push_back(i == kUnreached ? Tensor() : sum_of_leaves(leaves, {0, all}, i));
    for (int count = 1; count <= all; ++count) {
      CAPTURE(all);
      CAPTURE(count);
      std::vector<Range> own;
      for (int r = 0; r < count; ++r) own.push_back(Share::of_rank(all, all, r, count).leaves);
      std::vector<Tensor> sums;
      for (int64_t n : sizes()) sums.push_back(zeros({n}, Dtype::f32, Device::cpu));
      const auto errors = on_ranks(count, [&](Ranks& ranks) {
        Several p;
        const Several before;
        GradientExchange exchange(p.list(), own, ranks, 2 * GradientLayout::kBlock * 4);
        for (int step = 0; step < 2; ++step) exchange_once(exchange, p, ranks, own[static_cast<size_t>(ranks.rank())], leaves, sums);
        for (size_t i = 0; i < sizes().size(); ++i) CHECK(same_bits(p.parameters[i].value, before.parameters[i].value));
        CHECK(exchange.reached() == "11101");
        exchange_once(exchange, p, ranks, own[static_cast<size_t>(ranks.rank())], leaves, sums);
        for (size_t i = 0; i < sizes().size(); ++i) {
          Tensor negative = like(p.parameters[i].value);
          copy(negative, before.parameters[i].value);
          multiply_by(negative, -1);
          CHECK(same_bits(p.parameters[i].value, negative));
        }
      });
      for (const std::string& error : errors) CHECK(error == "");
      for (size_t i = 0; i < sizes().size(); ++i)
        if (expected[i]) CHECK(same_bits(sums[i], expected[i]));
    }
  }
}

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
