#include "autograd/gradient_exchange.h"

#include <algorithm>
#include <utility>

#include "autograd/mutation.h"
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
      pieces_(trained_.size()),
      whole_(layout_.buckets().size()) {
  for (const Range& each : leaves) {
    subtrees_.push_back(subtrees(all_leaves_, each));
    most_subtrees_ = std::max(most_subtrees_, subtrees_.back().size());
  }
  for (size_t i = 0; i < trained_.size(); ++i) number_of_[trained_[i]] = i;
  for (size_t bucket = 0; bucket < whole_.size(); ++bucket)
    for (const auto& [block, at] : layout_.parts(layout_.buckets()[bucket])) {
      pieces_[block.parameter].push_back({bucket, block.elements, at});
      ++whole_[bucket];
    }
  begin();
}

void GradientExchange::begin() {
  leaves_.begin();
  reached_.assign(trained_.size(), '-');
  missing_ = whole_;
  next_ = 0;
  buckets_.assign(whole_.size(), {});
  arrived_.assign(whole_.size(), {});
  sums_.clear();
}

void GradientExchange::completed(const Parameter& p) {
  if (const auto found = number_of_.find(&p); found != number_of_.end()) pack(found->second);
}

void GradientExchange::pack(size_t parameter) {
  leaves_.finish(parameter);
  Tensor& last = trained_[parameter]->grad;
  reached_[parameter] = last ? '1' : '0';
  for (size_t subtree = 0; subtree < leaves_.earlier(); ++subtree) {
    const Tensor sum = leaves_.take_earlier(subtree, parameter);
    if (static_cast<bool>(sum) != static_cast<bool>(last))
      fail("{} has a gradient in some leaves of this rank, and none in others", {trained_[parameter]->path});
    put(sum, subtree, parameter);
  }
  put(std::exchange(last, {}), leaves_.earlier(), parameter);
  const Tensor& value = trained_[parameter]->value;
  trace::end("packing of gradients", "", value.device(), value.size() * size_of(layout_.dtype()));
  for (const Piece& piece : pieces_[parameter]) --missing_[piece.bucket];
  for (; next_ < missing_.size() && missing_[next_] <= (is_planted(Bug::early_bucket) ? 1 : 0); ++next_) send(next_);
}

// Copies a gradient to its places in the buckets of a subtree.
void GradientExchange::put(const Tensor& gradient, size_t subtree, size_t parameter) {
  const Tensor& value = trained_[parameter]->value;
  for (const auto& [bucket, elements, at] : pieces_[parameter]) {
    const auto [begin, end] = layout_.buckets()[bucket];
    while (buckets_[bucket].size() < subtrees_[rank_].size()) buckets_[bucket].push_back(like(value, {end - begin}, layout_.dtype()));
    const Tensor place = buckets_[bucket][subtree].rows(at, elements.hi - elements.lo);
    if (gradient) copy(place, part_of(gradient, elements));
    else fill(place, 0);
  }
}

void GradientExchange::send(size_t bucket) {
  if (bucket > 0) {
    ranks_.wait_but_for(static_cast<int64_t>(most_subtrees_));  // the exchanges of the bucket before
    add_arrived(bucket - 1);
  }
  const std::vector<Tensor> mine = std::move(buckets_[bucket]);
  const int64_t begin = layout_.buckets()[bucket].lo;
  std::vector<Sum>& arrived = arrived_[bucket];
  for (size_t subtree = 0; subtree < most_subtrees_; ++subtree) {
    std::vector<Tensor> to(subtrees_.size()), from(subtrees_.size());
    for (size_t q = 0; q < subtrees_.size(); ++q) {
      const auto [lo, hi] = layout_.owned(bucket, static_cast<int64_t>(q));
      if (subtree < mine.size()) to[q] = mine[subtree].rows(lo - begin, hi - lo);
      if (subtree >= subtrees_[q].size()) continue;
      from[q] = q == rank_ ? to[q] : like(trained_[0]->value, {hi - lo}, layout_.dtype());
      arrived.push_back({subtrees_[q][subtree], from[q], q == rank_});
    }
    ranks_.all_to_all(to, from);
  }
  std::sort(arrived.begin(), arrived.end(), [](const Sum& a, const Sum& b) { return a.leaves.lo < b.leaves.lo; });
}

// Adds what has arrived of the buckets before `end`.
void GradientExchange::add_arrived(size_t end) {
  const Device device = trained_[0]->value.device();
  const auto bytes = static_cast<int64_t>(end - sums_.size()) * bytes_of(layout_) / static_cast<int64_t>(whole_.size());
  trace::end("exchange of gradients", "", device, bytes);
  while (sums_.size() < end) sums_.push_back(sum_of(sums_.size()));
  trace::end("sum of gradients", "", device, bytes);
}

// The sum of all leaves, of this rank's share of a bucket. It is made where a sum has arrived: the own ones are parts of what was sent.
Tensor GradientExchange::sum_of(size_t bucket) {
  std::vector<Sum> arrived = std::move(arrived_[bucket]), open;
  if (is_planted(Bug::swapped_sums) && arrived.size() > 2) std::swap(arrived[1].share, arrived[2].share);
  for (Sum& sum : arrived) {
    for (; !open.empty() && are_siblings(all_leaves_, open.back().leaves, sum.leaves); open.pop_back()) {
      Sum& left = open.back();
      if (left.is_own) std::swap(left.share, sum.share);
      add_to(left.share, sum.share);
      sum = {{left.leaves.lo, sum.leaves.hi}, std::move(left.share)};
    }
    open.push_back(std::move(sum));
  }
  return open[0].share;
}

std::vector<Tensor> GradientExchange::finish() {
  for (size_t i = trained_.size(); i-- > 0;)
    if (reached_[i] == '-') pack(i);
  ranks_.wait();
  if (!whole_.empty()) add_arrived(whole_.size());
  std::vector<Tensor> own;
  for (const OwnedBlock& block : layout_.blocks_of(ranks_.rank())) {
    const auto [lo, hi] = block.elements;
    own.push_back(reached_[block.parameter] == '1' ? sums_[block.bucket].rows(block.at, hi - lo) : Tensor());
  }
  sums_.clear();
  return own;
}

void GradientExchange::each_held(const Visit& visit) const {
  for (const std::vector<Tensor>& bucket : buckets_)
    for (const Tensor& of_subtree : bucket) visit(of_subtree, HeldFor::gradients);
  for (const std::vector<Sum>& bucket : arrived_)
    for (const Sum& sum : bucket) visit(sum.share, HeldFor::gradients);
  for (const Tensor& sum : sums_) visit(sum, HeldFor::gradients);
}

void GradientExchange::gather_values() {
  std::vector<Tensor> values(whole_.size());
  size_t unpacked = whole_.size();
  const auto unpack_from = [&](size_t first) {
    for (; unpacked > first; --unpacked) unpack_values(unpacked - 1, std::exchange(values[unpacked - 1], {}));
  };
  for (size_t bucket = whole_.size(); bucket-- > 0;) {  // the first blocks of the model first
    values[bucket] = packed_values(bucket);
    ranks_.wait_but_for(1);
    ranks_.all_gather(values[bucket]);
    unpack_from(bucket + 2);
  }
  ranks_.wait();
  unpack_from(0);
  trace::end("gathering of values", "", trained_.empty() ? Device::cpu : trained_[0]->value.device(), bytes_of(layout_));
}

// A bucket in which the own share has its values.
Tensor GradientExchange::packed_values(size_t bucket) const {
  const auto [begin, end] = layout_.buckets()[bucket];
  const Range owned = layout_.owned(bucket, ranks_.rank());
  const Tensor values = like(trained_[0]->value, {end - begin});
  for (const auto& [block, at] : layout_.parts(owned))
    copy(values.rows(owned.lo - begin + at, block.elements.hi - block.elements.lo),
        part_of(trained_[block.parameter]->value, block.elements));
  return values;
}

void GradientExchange::unpack_values(size_t bucket, const Tensor& values) const {
  const auto [begin, end] = layout_.buckets()[bucket];
  const Range owned = layout_.owned(bucket, ranks_.rank());
  for (const Range& others : {Range{begin, owned.lo}, Range{owned.hi, end}})
    for (const auto& [block, at] : layout_.parts(others))
      copy(part_of(trained_[block.parameter]->value, block.elements),
          values.rows(others.lo - begin + at, block.elements.hi - block.elements.lo));
}

}  // namespace ricci
