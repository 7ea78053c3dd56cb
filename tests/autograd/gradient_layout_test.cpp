#include "autograd/gradient_layout.h"

#include <algorithm>

#include "models/training/share.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

constexpr int64_t kBlock = GradientLayout::kBlock;

// Parameters of these sizes, some over several blocks and buckets.
struct Made {
  std::vector<Parameter> parameters;
  explicit Made(const std::vector<int64_t>& sizes) {
    for (int64_t n : sizes) parameters.push_back({Tensor({n}), {}, "p" + std::to_string(parameters.size())});
  }
  std::vector<Parameter*> list() {
    std::vector<Parameter*> all;
    for (Parameter& p : parameters) all.push_back(&p);
    return all;
  }
};

std::vector<int64_t> sizes() { return {5 * kBlock + 3, 1, kBlock, 40 * kBlock - 1, 7, 2 * kBlock + 1, 1}; }

// The definition: all leaves of a node, as a text with brackets.
std::string tree(int64_t lo, int64_t hi) {
  if (hi - lo == 1) return std::to_string(lo);
  int64_t left = 1;
  for (int64_t power = 1; power < hi - lo; power *= 2) left = power;
  return "(" + tree(lo, lo + left) + " " + tree(lo + left, hi) + ")";
}

bool is_node(const Range& node, const Range& wanted) {
  if (node == wanted) return true;
  if (node.hi - node.lo < 2) return false;
  const int64_t middle = middle_of(node);
  return is_node({node.lo, middle}, wanted) || is_node({middle, node.hi}, wanted);
}

}  // namespace

TEST_CASE("gradient layout: each element has one owner, tensors start at blocks, in the reverse order") {
  Made made(sizes());
  for (int64_t ranks = 1; ranks <= 64; ++ranks)
    for (int64_t bucket_bytes : {int64_t{0}, int64_t{1}, 10 * kBlock * 4}) {
      const GradientLayout layout(made.list(), ranks, bucket_bytes);
      std::vector<std::vector<int>> owners;
      for (int64_t n : sizes()) owners.emplace_back(static_cast<size_t>((n + kBlock - 1) / kBlock));
      for (int64_t rank = 0; rank < ranks; ++rank)
        for (const ParameterBlock& block : layout.blocks_of(rank)) {
          CHECK(block.elements.lo % kBlock == 0);
          CHECK((block.elements.hi % kBlock == 0 || block.elements.hi == sizes()[block.parameter]));
          for (int64_t e = block.elements.lo; e < block.elements.hi; e += kBlock)
            ++owners[block.parameter][static_cast<size_t>(e / kBlock)];
        }
      for (const auto& one : owners) CHECK(std::all_of(one.begin(), one.end(), [](int n) { return n == 1; }));
      int64_t end = 0;
      for (size_t b = 0; b < layout.buckets().size(); ++b) {
        CHECK(layout.buckets()[b].lo == end);
        CHECK(layout.owned(b, 0).lo == end);
        end = layout.buckets()[b].hi;
        CHECK(layout.owned(b, ranks - 1).hi == end);
        CHECK((end - layout.buckets()[b].lo) % (ranks * kBlock) == 0);
      }
      size_t before = sizes().size();
      for (const GradientLayout::PlacedBlock& part : layout.parts({0, end})) {
        CHECK(part.block.parameter + 1 == before);
        CHECK(part.offset % kBlock == 0);
        CHECK(part.block.elements == Range{0, sizes()[part.block.parameter]});
        before = part.block.parameter;
      }
      CHECK(before == 0);
    }
}

TEST_CASE("gradient layout: buckets are of 25 MiB, of 4 MiB per rank above 6 ranks") {
  Made made({40 << 20});
  CHECK(GradientLayout(made.list(), 1).buckets()[0] == Range{0, 25 << 18});
  CHECK(GradientLayout(made.list(), 6).buckets()[0].hi == 402 * kBlock);  // 400 blocks, padded
  CHECK(GradientLayout(made.list(), 8).buckets()[0] == Range{0, 32 << 18});
  CHECK(GradientLayout(made.list(), 1).buckets().back() == Range{int64_t{6} * (25 << 18), 40 << 20});
}

TEST_CASE("gradient layout: sums of different dtypes are an error") {
  Made made({1, 1});
  made.parameters[1].value = Tensor({1}, Dtype::f64);
  CHECK(message_of([&] { GradientLayout(made.list(), 1); }) == "gradient layout: p0 is summed in f32, p1 in f64");
}

TEST_CASE("gradient tree: nodes are those of the definition, and the subtrees of all ranks cover the leaves once") {
  CHECK(tree(0, 5) == "(((0 1) (2 3)) 4)");
  for (int64_t all = 1; all <= 64; ++all)
    for (int64_t ranks = 1; ranks <= all; ++ranks) {
      int64_t next = 0;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const Share share = Share::of_rank(all, all, rank, ranks);
        CHECK(share.leaves.lo < share.leaves.hi);
        for (const Range& subtree : subtrees(all, share.leaves)) {
          CHECK(subtree.lo == next);
          CHECK(is_node({0, all}, subtree));
          next = subtree.hi;
        }
      }
      CHECK(next == all);
    }
  for (int64_t all = 2; all <= 64; ++all) {
    const int64_t middle = middle_of({0, all});
    CHECK(tree(0, all) == "(" + tree(0, middle) + " " + tree(middle, all) + ")");
  }
}

TEST_CASE("gradient tree: as many sums as the design counts") {
  const auto most = [](int64_t ranks, int64_t all) {
    size_t sums = 0;
    for (int64_t rank = 0; rank < ranks; ++rank) sums = std::max(sums, subtrees(all, Share::of_rank(all, all, rank, ranks).leaves).size());
    return sums;
  };
  CHECK(most(4, 8) == 1);
  CHECK(most(3, 8) == 2);
  CHECK(most(64, 1024) == 1);
  CHECK(message_of([] { middle_of({3, 4}); }) == "gradient tree: 1 leaves cannot be divided");
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
