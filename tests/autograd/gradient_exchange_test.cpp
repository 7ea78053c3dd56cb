// When parameters are complete, the sums of gradients over leaves and ranks, the blocks that ranks own, and shares of micro-batches.
#include "autograd/gradient_exchange.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "autograd/completion.h"
#include "autograd/gradient_layout.h"
#include "autograd/recompute.h"
#include "models/training/share.h"
#include "ops/elements/arithmetic.h"
#include "tests/ops/values.h"
#include "tests/skip.h"
#include "tests/thread_ranks.h"

using namespace ricci;

namespace {

constexpr int64_t kBlock = GradientLayout::kBlock;

// Parameters of these sizes with drawn values.
struct Made {
  std::vector<Parameter> parameters;
  explicit Made(const std::vector<int64_t>& sizes) {
    for (int64_t n : sizes)
      parameters.push_back(
          {drawn({n}, Dtype::f32, Device::cpu, 900 + static_cast<uint64_t>(n)), {}, "p" + std::to_string(parameters.size())});
  }
  Made(const Made& other) {
    for (const Parameter& p : other.parameters) {
      parameters.push_back({like(p.value), {}, p.path});
      copy(parameters.back().value, p.value);
    }
  }
  std::vector<Parameter*> list() {
    std::vector<Parameter*> all;
    for (Parameter& p : parameters) all.push_back(&p);
    return all;
  }
};

// Gradients of leaves, drawn so that the order of additions shows in the bits.
Tensor gradient(int64_t leaf, size_t parameter) {
  return drawn({parameter ? 7 : 3}, Dtype::f32, Device::cpu, static_cast<uint64_t>(leaf * 2) + parameter);
}

// Parameters of several blocks, of one, and of a few elements; nothing reaches the last but one.
std::vector<int64_t> sizes() { return {3 * kBlock + 5, 7, kBlock, 2, 40}; }
constexpr size_t kUnreached = 3;

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
void exchange_once(GradientExchange& exchange, Made& p, Ranks& ranks, const Range& own, const std::vector<std::vector<Tensor>>& leaves,
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

// Notes the parameters it is told of and their gradients at that time.
struct Notes : GradientListener {
  std::vector<std::string> paths;
  std::vector<Values> gradients;
  void completed(const Parameter& p) override {
    paths.push_back(p.path);
    gradients.push_back(p.grad ? values_of(p.grad) : Values{});
  }
  std::string order() const {
    std::string all;
    for (const std::string& path : paths) all += path;
    return all;
  }
};

Parameter parameter(const std::string& path, double value) { return {tensor_of({value}, {1}, Dtype::f64, Device::cpu), {}, path}; }

const Tensor kOne = tensor_of({1}, {1}, Dtype::f64, Device::cpu);

}  // namespace

TEST_CASE(
    "gradient exchange: owners have the sums of the definition and all have the owners' values, for many numbers of leaves and ranks") {
  std::vector<std::vector<Tensor>> leaves(16);
  for (size_t leaf = 0; leaf < leaves.size(); ++leaf)
    for (size_t i = 0; i < sizes().size(); ++i) leaves[leaf].push_back(leaf_gradient(static_cast<int64_t>(leaf), i));
  const Made before(sizes());
  for (int64_t all = 1; all <= 16; ++all) {
    std::vector<Tensor> expected;
    for (size_t i = 0; i < sizes().size(); ++i) expected.push_back(i == kUnreached ? Tensor() : sum_of_leaves(leaves, {0, all}, i));
    for (int count = 1; count <= all; ++count) {
      const bool sampled = all <= 5 || (all % 5 != 4 && (count == 3 || count == (all + 1) / 2 || count == all));
      if (!sampled && !test::everything()) continue;
      INFO("all ", all, ", count ", count);
      std::vector<Range> own;
      for (int r = 0; r < count; ++r) own.push_back(Share::of_rank(all, all, r, count).leaves);
      std::vector<Tensor> sums;
      for (int64_t n : sizes()) sums.push_back(zeros({n}, Dtype::f32, Device::cpu));
      const auto errors = on_ranks(count, [&](Ranks& ranks) {
        Made p(before);
        GradientExchange exchange(p.list(), own, ranks, 2 * kBlock * 4);
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

TEST_CASE("leaf sums: two parameters whose gradients are one tensor do not add into each other") {
  Made p({3, 3});
  LeafSums sums(p.list(), 4, {0, 4});
  for (int64_t leaf = 0; leaf < 4; ++leaf) {
    if (leaf > 0) sums.end_leaf();
    Tape tape;
    tape.backward({Arg(p.parameters[0]) + p.parameters[1]}, {tensor_of({1, 2, 4}, {3}, Dtype::f32, Device::cpu)});
    if (leaf == 0) REQUIRE_FALSE(p.parameters[0].grad.unique());
  }
  for (size_t i = 0; i < 2; ++i) sums.finish(i);
  CHECK(values_of(p.parameters[0].grad) == Values{4, 8, 16});
  CHECK(values_of(p.parameters[1].grad) == Values{4, 8, 16});
}

TEST_CASE("leaf sums: a parameter without a gradient has none in every leaf") {
  Made p({3, 7});
  LeafSums sums(p.list(), 3, {0, 3});
  const auto step = [&](int64_t without) {
    sums.begin();
    for (int64_t leaf = 0; leaf < 3; ++leaf) {
      if (leaf > 0) sums.end_leaf();
      p.parameters[0].grad = gradient(leaf, 0);
      p.parameters[1].grad = leaf == without ? gradient(leaf, 1) : Tensor();
    }
    for (size_t i = 0; i < 2; ++i) sums.finish(i);
  };
  step(-1);
  CHECK_FALSE(p.parameters[1].grad);
  CHECK(message_of([&] { step(0); }) == "p1 has no gradient in the leaves from 1 to 1 of 3, in those from 0 to 0 it has");
  CHECK(message_of([&] { step(2); }) == "p1 has no gradient in the leaves from 0 to 1 of 3, in those from 2 to 2 it has");
}

TEST_CASE("gradient layout: sums of different dtypes are an error") {
  Made made({1, 1});
  made.parameters[1].value = Tensor({1}, Dtype::f64);
  CHECK(message_of([&] { GradientLayout(made.list(), 1); }) == "gradient layout: p0 is summed in f32, p1 in f64");
}

TEST_CASE("share: leaves hold whole micro-batches, each once, and ranks whole leaves") {
  for (int64_t micro_batches : {1, 5, 8, 64})
    for (int64_t max_ranks = 1; max_ranks <= micro_batches; ++max_ranks)
      for (int64_t ranks = 1; ranks <= max_ranks; ++ranks) {
        int64_t next = 0;
        for (int64_t rank = 0; rank < ranks; ++rank) {
          const Share share = Share::of_rank(micro_batches, max_ranks, rank, ranks);
          CHECK(share.micro_batches().lo == next);
          for (int64_t leaf = share.leaves.lo; leaf < share.leaves.hi; ++leaf) {
            CHECK(share.micro_batches(leaf).lo == next);
            CHECK(share.micro_batches(leaf).hi > next);
            next = share.micro_batches(leaf).hi;
          }
          CHECK(share.micro_batches().hi == next);
        }
        CHECK(next == micro_batches);
      }
}

TEST_CASE("completion: a parameter is complete when backward has left the first op that uses it") {
  const Parameter a = parameter("a", 2), b = parameter("b", 3), c = parameter("c", 5);
  Notes notes;
  Tape tape;
  tape.backward({Arg(a) * b * c * a}, {kOne}, &notes);  // a is used first and last
  CHECK(notes.order().substr(0, 1) == "c");
  CHECK(notes.paths.size() == 3);
  CHECK(notes.gradients[0] == Values{12});
  CHECK(values_of(a.grad) == Values{60});
  for (size_t i = 1; i < 3; ++i) CHECK(notes.gradients[i] == (notes.paths[i] == "a" ? Values{60} : Values{20}));
}

TEST_CASE("completion: parameters that no gradient reaches are complete too, frozen ones are not told") {
  const Parameter a = parameter("a", 2), b = parameter("b", 3);
  Parameter frozen = parameter("frozen", 5);
  frozen.frozen = true;
  Notes notes;
  Tape tape;
  const Tensor unused = Arg(b) * frozen;
  tape.backward({Arg(a) * frozen}, {kOne}, &notes);
  CHECK(notes.order() == "ab");
  CHECK(notes.gradients[1].empty());
  CHECK_FALSE(b.grad);
}

TEST_CASE("completion: recomputation stands for the parameters that its function reads, also inside another and when NaN are looked for") {
  for (const bool find_nonfinite : {false, true}) {
    const Parameter a = parameter("a", 2), b = parameter("b", 3), c = parameter("c", 5);
    Notes notes;
    Tape tape({.find_nonfinite = find_nonfinite});
    const auto times_b = [&](const std::vector<Tensor>& x) { return x[0] * b; };
    const auto inner = [&](const std::vector<Tensor>& x) { return recompute(times_b, {x[0]}) * a; };
    const Tensor x = recompute(inner, {Arg(a) * kOne});
    tape.backward({x * b * c}, {kOne}, &notes);
    CHECK(notes.order() == "cba");
    CHECK(notes.gradients == std::vector<Values>{{36}, {120}, {180}});
    CHECK(values_of(a.grad) == Values{180});
  }
}

TEST_CASE("completion: backward without a listener inside one that has one tells nothing") {
  const Parameter a = parameter("a", 2), b = parameter("b", 3);
  Notes notes;
  Tape tape;
  const Tensor x = recompute([&](const std::vector<Tensor>& in) { return in[0] * b * b; }, {a});
  tape.backward({x}, {kOne}, &notes);
  std::sort(notes.paths.begin(), notes.paths.end());
  CHECK(notes.order() == "ab");
}

TEST_CASE("completion: a gradient for a parameter that was complete is an error") {
  const Parameter a = parameter("a", 2), b = parameter("b.weight", 3);
  bool again = false;
  const auto f = [&](const std::vector<Tensor>& x) -> Tensor { return std::exchange(again, true) ? x[0] * b : x[0] * x[0]; };
  const auto walk = [&](GradientListener* listener) {
    again = false;
    Tape tape;
    const Tensor x = recompute(f, {a});
    tape.backward({x * b}, {kOne}, listener);
  };
  walk(nullptr);  // nobody was told
  Notes notes;
  const std::string message = message_of([&] { walk(&notes); });
  CHECK_MESSAGE(message.starts_with("backward of mul"), message);
  CHECK_MESSAGE(message.ends_with(": a gradient for b.weight after it was sent"), message);
}
