#include "autograd/gradient_exchange.h"

#include <utility>

#include "core/dims.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {

LeafSums::LeafSums(std::vector<Parameter*> trained, int64_t all, Range own) : trained_(std::move(trained)), all_(all), own_(own) {
  begin();
}

void LeafSums::begin() {
  leaf_ = own_.lo;
  nodes_.clear();
}

// Whether both together are a node of the tree.
bool LeafSums::joins(const Range& left, const Range& right) const {
  const Range wanted{left.lo, right.hi};
  Range node{0, all_};
  while (node.lo < wanted.lo || wanted.hi < node.hi) {
    const int64_t middle = middle_of(node);
    if (wanted.hi <= middle) node.hi = middle;
    else if (middle <= wanted.lo) node.lo = middle;
    else return false;
  }
  return middle_of(node) == right.lo;
}

// sum += more. The storage of a gradient may be another's, too: the tape hands one gradient to both terms of a sum.
void LeafSums::add(Tensor& sum, const Range& its_leaves, const Tensor& more, const Range& leaves, size_t parameter) const {
  if (static_cast<bool>(sum) != static_cast<bool>(more)) {
    const auto [with, without] = sum ? std::pair(its_leaves, leaves) : std::pair(leaves, its_leaves);
    fail("{} has no gradient in the leaves from {} to {} of {}, in those from {} to {} it has",
        {trained_[parameter]->path, without.lo, without.hi - 1, all_, with.lo, with.hi - 1});
  }
  if (!sum) return;
  if (!sum.unique()) {
    const Tensor own = like(sum);
    copy(own, sum);
    sum = own;
  }
  add_to(sum, more);
}

void LeafSums::end_leaf() {
  Node done{{leaf_, leaf_ + 1}, {}};
  ++leaf_;
  for (Parameter* p : trained_) done.sums.push_back(std::exchange(p->grad, {}));
  for (; !nodes_.empty() && joins(nodes_.back().leaves, done.leaves); nodes_.pop_back()) {
    Node& left = nodes_.back();
    for (size_t i = 0; i < trained_.size(); ++i) add(left.sums[i], left.leaves, std::exchange(done.sums[i], {}), done.leaves, i);
    done = {{left.leaves.lo, done.leaves.hi}, std::move(left.sums)};
  }
  nodes_.push_back(std::move(done));
}

void LeafSums::finish(size_t parameter) {
  Range leaves{leaf_, leaf_ + 1};
  for (size_t i = nodes_.size(); i > earlier(); --i) {
    Node& left = nodes_[i - 1];
    add(trained_[parameter]->grad, leaves, std::exchange(left.sums[parameter], {}), left.leaves, parameter);
    leaves.lo = left.leaves.lo;
  }
}

size_t LeafSums::earlier() const {
  Range leaves{leaf_, leaf_ + 1};
  size_t count = nodes_.size();
  for (; count > 0 && joins(nodes_[count - 1].leaves, leaves); --count) leaves.lo = nodes_[count - 1].leaves.lo;
  return count;
}

Tensor LeafSums::take_earlier(size_t subtree, size_t parameter) { return std::exchange(nodes_[subtree].sums[parameter], {}); }

}  // namespace ricci
