#include "autograd/gradient_exchange.h"

#include <algorithm>
#include <utility>

#include "core/dims.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/trace.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {

namespace {

// That all ranks together hold of the gradients, with the padding.
int64_t bytes_of(const GradientLayout& layout) {
  return layout.buckets().empty() ? 0 : layout.buckets().back().hi * size_of(layout.dtype());
}

}  // namespace

LeafSums::LeafSums(std::vector<Parameter*> trained, int64_t all, Range own) : trained_(std::move(trained)), all_(all), own_(own) {
  begin();
}

void LeafSums::begin() {
  leaf_ = own_.lo;
  nodes_.clear();
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
  for (; !nodes_.empty() && are_siblings(all_, nodes_.back().leaves, done.leaves); nodes_.pop_back()) {
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
  for (; count > 0 && are_siblings(all_, nodes_[count - 1].leaves, leaves); --count) leaves.lo = nodes_[count - 1].leaves.lo;
  return count;
}

Tensor LeafSums::take_earlier(size_t subtree, size_t parameter) { return std::exchange(nodes_[subtree].sums[parameter], {}); }

void LeafSums::each_held(const Visit& visit) const {
  for (const Node& node : nodes_)
    for (const Tensor& sum : node.sums) visit(sum, HeldFor::gradients);
}

GradientExchange::GradientExchange(std::vector<Parameter*> trained, const std::vector<Range>& leaves, Ranks& ranks, int64_t bucket_bytes)
    : trained_(std::move(trained)),
      ranks_(ranks),
      rank_(static_cast<size_t>(ranks.rank())),
      all_leaves_(leaves.back().hi),
      layout_(trained_, ranks.count(), bucket_bytes),
      leaves_(trained_, all_leaves_, leaves[rank_]),
      shares_(layout_.buckets().size()),
      parameters_in_(layout_.buckets().size()),
      buckets_of_(trained_.size()) {
  for (const Range& each : leaves) {
    subtrees_.push_back(subtrees(all_leaves_, each));
    most_subtrees_ = std::max(most_subtrees_, subtrees_.back().size());
  }
  for (size_t i = 0; i < trained_.size(); ++i) number_of_[trained_[i]] = i;
  for (size_t bucket = 0; bucket < shares_.size(); ++bucket) {
    for (int64_t owner = 0; owner < ranks.count(); ++owner) shares_[bucket].push_back(layout_.parts(layout_.owned(bucket, owner)));
    for (const auto& [block, offset] : layout_.parts(layout_.buckets()[bucket])) {
      parameters_in_[bucket].push_back(block.parameter);
      buckets_of_[block.parameter].push_back(bucket);
    }
  }
  begin();
}

void GradientExchange::begin() {
  leaves_.begin();
  reached_.assign(trained_.size(), '-');
  missing_.clear();
  for (const std::vector<size_t>& parameters : parameters_in_) missing_.push_back(parameters.size());
  next_ = 0;
  gradients_.assign(subtrees_[rank_].size(), Tensors(trained_.size()));
  arrived_.assign(shares_.size(), {});
  sums_.clear();
}

void GradientExchange::completed(const Parameter& p) {
  if (const auto found = number_of_.find(&p); found != number_of_.end()) take(found->second);
}

// Takes the gradient of a parameter in each own subtree. A parameter without one has zeros, so that every rank sends the same amount.
void GradientExchange::take(size_t parameter) {
  leaves_.finish(parameter);
  Tensor& last = trained_[parameter]->grad;
  reached_[parameter] = last ? '1' : '0';
  for (size_t subtree = 0; subtree < gradients_.size(); ++subtree) {
    Tensor sum = subtree < leaves_.earlier() ? leaves_.take_earlier(subtree, parameter) : std::exchange(last, {});
    if (static_cast<bool>(sum) != (reached_[parameter] == '1'))
      fail("{} has a gradient in some leaves of this rank, and none in others", {trained_[parameter]->path});
    if (!sum) {
      sum = like(trained_[parameter]->value, trained_[parameter]->value.shape(), layout_.dtype());
      fill(sum, 0);
    }
    gradients_[subtree][parameter] = sum;
  }
  for (const size_t bucket : buckets_of_[parameter]) --missing_[bucket];
  for (; next_ < missing_.size() && missing_[next_] == 0; ++next_) send(next_);
}

// Views of the gradients of one own subtree, of the elements that an owner adds up.
GradientExchange::Tensors GradientExchange::own_parts(size_t bucket, size_t subtree, size_t owner) const {
  Tensors parts;
  for (const auto& [block, offset] : shares_[bucket][owner]) parts.push_back(part_of(gradients_[subtree][block.parameter], block.elements));
  return parts;
}

// New tensors for the elements that this rank adds up, to receive them from another.
GradientExchange::Tensors GradientExchange::room_for_parts(size_t bucket) const {
  Tensors parts;
  for (const auto& [block, offset] : shares_[bucket][rank_])
    parts.push_back(like(trained_[0]->value, {block.elements.hi - block.elements.lo}, layout_.dtype()));
  return parts;
}

void GradientExchange::send(size_t bucket) {
  if (bucket > 0) {
    ranks_.wait_but_for(static_cast<int64_t>(most_subtrees_));  // the exchanges of the bucket before
    add_arrived(bucket - 1);
  }
  std::vector<Sum>& arrived = arrived_[bucket];
  for (size_t subtree = 0; subtree < most_subtrees_; ++subtree) {
    std::vector<Tensors> outgoing(subtrees_.size()), incoming(subtrees_.size());
    for (size_t q = 0; q < subtrees_.size(); ++q) {
      if (subtree < gradients_.size()) outgoing[q] = own_parts(bucket, subtree, q);
      if (subtree >= subtrees_[q].size()) continue;
      incoming[q] = q == rank_ ? outgoing[q] : room_for_parts(bucket);
      arrived.push_back({subtrees_[q][subtree], incoming[q], q == rank_});
    }
    ranks_.all_to_all(outgoing, incoming);
  }
  std::sort(arrived.begin(), arrived.end(), [](const Sum& a, const Sum& b) { return a.leaves.lo < b.leaves.lo; });
  for (const size_t parameter : parameters_in_[bucket])
    for (Tensors& of_subtree : gradients_)
      if (buckets_of_[parameter].back() == bucket) of_subtree[parameter] = {};
}

// Adds the gradients that have arrived in the buckets before `end`.
void GradientExchange::add_arrived(size_t end) {
  const Device device = trained_[0]->value.device();
  const auto bytes = static_cast<int64_t>(end - sums_.size()) * bytes_of(layout_) / static_cast<int64_t>(shares_.size());
  trace::end("exchange of gradients", "", device, bytes);
  while (sums_.size() < end) sums_.push_back(sum_of(sums_.size()));
  trace::end("sum of gradients", "", device, bytes);
}

// The sum of all leaves, of this rank's share of a bucket. It is made in a tensor that has arrived: own ones are views of whole gradients,
// which would be kept.
GradientExchange::Tensors GradientExchange::sum_of(size_t bucket) {
  std::vector<Sum> arrived = std::move(arrived_[bucket]), open;
  for (Sum& sum : arrived) {
    for (; !open.empty() && are_siblings(all_leaves_, open.back().leaves, sum.leaves); open.pop_back()) {
      Sum& left = open.back();
      if (left.is_own) std::swap(left.parts, sum.parts);
      for (size_t i = 0; i < sum.parts.size(); ++i) add_to(left.parts[i], sum.parts[i]);
      sum = {{left.leaves.lo, sum.leaves.hi}, std::move(left.parts)};
    }
    open.push_back(std::move(sum));
  }
  return std::move(open[0].parts);
}

std::vector<Tensor> GradientExchange::finish() {
  for (size_t i = trained_.size(); i-- > 0;)
    if (reached_[i] == '-') take(i);
  ranks_.wait();
  if (!shares_.empty()) add_arrived(shares_.size());
  std::vector<Tensor> own;
  for (const OwnedBlock& block : layout_.blocks_of(ranks_.rank()))
    own.push_back(reached_[block.parameter] == '1' ? sums_[block.bucket][block.part] : Tensor());
  sums_.clear();
  return own;
}

void GradientExchange::each_held(const Visit& visit) const {
  const auto visit_all = [&](const Tensors& tensors) {
    for (const Tensor& t : tensors) visit(t, HeldFor::gradients);
  };
  for (const Tensors& of_subtree : gradients_) visit_all(of_subtree);
  for (const std::vector<Sum>& bucket : arrived_)
    for (const Sum& sum : bucket) visit_all(sum.parts);
  for (const Tensors& sum : sums_) visit_all(sum);
}

void GradientExchange::gather_values() {
  std::vector<Tensor> values(shares_.size());
  size_t unpacked = shares_.size();
  const auto unpack_from = [&](size_t first) {
    for (; unpacked > first; --unpacked) unpack_values(unpacked - 1, std::exchange(values[unpacked - 1], {}));
  };
  for (size_t bucket = shares_.size(); bucket-- > 0;) {  // the first blocks of the model first
    values[bucket] = packed_values(bucket);
    ranks_.wait_but_for(1);
    ranks_.all_gather(values[bucket]);
    unpack_from(bucket + 2);
  }
  ranks_.wait();
  unpack_from(0);
  trace::end("gathering of values", "", trained_.empty() ? Device::cpu : trained_[0]->value.device(), bytes_of(layout_));
}

// A new tensor for a bucket, with the values of the own share in their place.
Tensor GradientExchange::packed_values(size_t bucket) const {
  const auto [begin, end] = layout_.buckets()[bucket];
  const Range owned = layout_.owned(bucket, ranks_.rank());
  const Tensor values = like(trained_[0]->value, {end - begin});
  for (const auto& [block, offset] : layout_.parts(owned))
    copy(values.rows(owned.lo - begin + offset, block.elements.hi - block.elements.lo),
        part_of(trained_[block.parameter]->value, block.elements));
  return values;
}

void GradientExchange::unpack_values(size_t bucket, const Tensor& values) const {
  const auto [begin, end] = layout_.buckets()[bucket];
  const Range owned = layout_.owned(bucket, ranks_.rank());
  for (const Range& others : {Range{begin, owned.lo}, Range{owned.hi, end}})
    for (const auto& [block, offset] : layout_.parts(others))
      copy(part_of(trained_[block.parameter]->value, block.elements),
          values.rows(others.lo - begin + offset, block.elements.hi - block.elements.lo));
}

}  // namespace ricci
