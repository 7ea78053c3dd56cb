#include "autograd/gradient_layout.h"

#include <algorithm>

#include "core/dims.h"
#include "core/error.h"

namespace ricci {
namespace {

constexpr int64_t kBucketBytes = int64_t{25} << 20, kBucketBytesPerRank = int64_t{4} << 20;

int64_t divided_up(int64_t n, int64_t by) { return (n + by - 1) / by; }

}  // namespace

GradientLayout::GradientLayout(const std::vector<Parameter*>& trained, int64_t ranks, int64_t bucket_bytes)
    : ranks_(ranks), places_(trained.size()) {
  int64_t blocks = 0;
  for (size_t i = trained.size(); i-- > 0;) {
    if (i + 1 == trained.size()) dtype_ = trained[i]->sum_dtype();
    if (trained[i]->sum_dtype() != dtype_)
      fail("gradient layout: {} is summed in {}, {} in {}",
          {trained[i]->path, name_of(trained[i]->sum_dtype()), trained.back()->path, name_of(dtype_)});
    const int64_t size = trained[i]->value.size();
    places_[i] = {blocks * kBlock, blocks * kBlock + size};
    blocks += divided_up(size, kBlock);
  }
  const int64_t bytes = bucket_bytes ? bucket_bytes : std::max(kBucketBytes, kBucketBytesPerRank * ranks);
  const int64_t in_bucket = divided_up(std::max<int64_t>(bytes / size_of(dtype_) / kBlock, 1), ranks) * ranks;  // blocks
  for (int64_t first = 0; first < blocks; first += in_bucket) {
    const int64_t count = std::min(in_bucket, divided_up(blocks - first, ranks) * ranks);
    buckets_.push_back({first * kBlock, (first + count) * kBlock});
  }
}

Range GradientLayout::owned(size_t bucket, int64_t rank) const {
  const auto [lo, hi] = buckets_[bucket];
  const int64_t share = (hi - lo) / ranks_;
  return {lo + rank * share, lo + (rank + 1) * share};
}

std::vector<GradientLayout::PlacedBlock> GradientLayout::parts(const Range& range) const {
  std::vector<PlacedBlock> all;
  for (size_t i = places_.size(); i-- > 0;) {
    const auto [begin, end] = places_[i];
    const int64_t lo = std::max(begin, range.lo), hi = std::min(end, range.hi);
    if (lo < hi) all.push_back({{i, {lo - begin, hi - begin}}, lo - range.lo});
  }
  return all;
}

std::vector<OwnedBlock> GradientLayout::blocks_of(int64_t rank) const {
  std::vector<OwnedBlock> all;
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    const std::vector<PlacedBlock> share = parts(owned(bucket, rank));
    for (size_t part = 0; part < share.size(); ++part) all.push_back({share[part].block, bucket, part});
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.parameter < b.parameter; });
  return all;
}

int64_t middle_of(const Range& leaves) {
  if (leaves.hi - leaves.lo < 2) fail("gradient tree: {} leaves cannot be divided", {leaves.hi - leaves.lo});
  int64_t left = 1;
  while (2 * left < leaves.hi - leaves.lo) left *= 2;
  return leaves.lo + left;
}

bool are_siblings(int64_t all, const Range& left, const Range& right) {
  Range node{0, all};
  while (node.lo < left.lo || right.hi < node.hi) {
    const int64_t middle = middle_of(node);
    if (right.hi <= middle) node.hi = middle;
    else if (middle <= left.lo) node.lo = middle;
    else return false;
  }
  return middle_of(node) == right.lo;
}

namespace {

void add_subtrees(const Range& node, const Range& leaves, std::vector<Range>& all) {
  if (node.hi <= leaves.lo || leaves.hi <= node.lo) return;
  if (leaves.lo <= node.lo && node.hi <= leaves.hi) return all.push_back(node);
  const int64_t middle = middle_of(node);
  add_subtrees({node.lo, middle}, leaves, all);
  add_subtrees({middle, node.hi}, leaves, all);
}

}  // namespace

std::vector<Range> subtrees(int64_t all, const Range& leaves) {
  std::vector<Range> found;
  add_subtrees({0, all}, leaves, found);
  return found;
}

}  // namespace ricci
