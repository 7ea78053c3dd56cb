// The place of each gradient in what ranks send each other, and the order in which their sums are added.
//
// The trained parameters follow each other in reverse order: the head, the last block ... the first block, the tables, which is about the
// order in which backward completes them. Each starts at a block of kBlock elements. Whole blocks form buckets, which are sent one after
// the other. Each rank owns an equal share of the blocks of every bucket: it adds their gradients up, updates their elements and gives
// their values to the others (ZeRO, Rajbhandari et al. 2020, stage 1).
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "autograd/parameter.h"
#include "core/range.h"

namespace ricci {

// Elements of one parameter.
struct ParameterBlock {
  size_t parameter;  // its place in the list of trained parameters
  Range elements;
};

// Such a block with its place in the owner's share of a bucket: it is parts(owned(bucket, owner))[part].
struct OwnedBlock : ParameterBlock {
  size_t bucket, part;
};

// Its elements as one row: a view.
inline Tensor part_of(const Tensor& t, const Range& elements) {
  return t.reshaped({t.size()}).rows(elements.lo, elements.hi - elements.lo);
}

class GradientLayout {
 public:
  static constexpr int64_t kBlock = 16384;  // the chunk of gradient_norm

  // A bucket_bytes of 0 means 25 MiB, or 4 MiB per rank where that is more. Error: parameters whose gradients are summed in different
  // dtypes.
  GradientLayout(const std::vector<Parameter*>& trained, int64_t ranks, int64_t bucket_bytes = 0);

  int64_t ranks() const { return ranks_; }
  Dtype dtype() const { return dtype_; }  // the dtype of the sums
  // The elements of the layout that each bucket holds, padded to a multiple of `ranks` blocks.
  const std::vector<Range>& buckets() const { return buckets_; }
  Range owned(size_t bucket, int64_t rank) const;  // elements of the layout

  // The parts of a range of the layout, in its order, that hold elements of parameters, and where they start in the range.
  struct PlacedBlock {
    ParameterBlock block;
    int64_t offset;
  };
  std::vector<PlacedBlock> parts(const Range& range) const;
  // The blocks that a rank owns, in the order of the parameters and rising in each.
  std::vector<OwnedBlock> blocks_of(int64_t rank) const;

 private:
  int64_t ranks_;
  Dtype dtype_ = Dtype::f32;
  std::vector<Range> places_;  // in the layout, per parameter
  std::vector<Range> buckets_;
};

// ---- The tree: sum(a, b) = sum(a, m) + sum(m, b), where m - a is the largest power of two below b - a.
int64_t middle_of(const Range& leaves);  // m; error: fewer than two leaves

// True where both together are a node of the tree over [0, all). `right` begins where `left` ends.
bool are_siblings(int64_t all, const Range& left, const Range& right);

// The largest subtrees of the tree over [0, all) inside `leaves`, in order. A rank sends the sum of each.
std::vector<Range> subtrees(int64_t all, const Range& leaves);

}  // namespace ricci
