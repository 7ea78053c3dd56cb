// Short words are searched from end to end for every merge. Long ones, as in a text without spaces, keep their possible merges
// in a heap, so that the time grows with n log n.
#include "data/tokenizers/bpe/merges.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <queue>

namespace ricci {
namespace {

constexpr size_t kLongestShort = 48;

uint64_t pair_of(uint32_t left, uint32_t right) { return static_cast<uint64_t>(left) << 32 | right; }
uint64_t mix(uint64_t pair) { return (pair ^ pair >> 32) * 0x9e3779b97f4a7c15u; }

}  // namespace

Merges::Merges(std::vector<Merge> merges) : merges_(std::move(merges)) {
  const size_t places = std::bit_ceil(2 * merges_.size() + 2);
  shift_ = 64 - std::countr_zero(places);
  slots_.resize(places);
  for (size_t rank = 0; rank < merges_.size(); ++rank) {
    const Merge& merge = merges_[rank];
    slots_[place_of(merge.left, merge.right)] = {pair_of(merge.left, merge.right), static_cast<uint32_t>(rank)};  // twice: the last rank
  }
}

// The slot of a pair, or an empty one where it has none.
size_t Merges::place_of(uint32_t left, uint32_t right) const {
  const uint64_t pair = pair_of(left, right);
  size_t place = mix(pair) >> shift_;
  while (slots_[place].rank != kNone && slots_[place].pair != pair) place = (place + 1) & (slots_.size() - 1);
  return place;
}

size_t Merges::apply(std::span<uint32_t> pieces) const { return pieces.size() <= kLongestShort ? apply_short(pieces) : apply_long(pieces); }

size_t Merges::apply_short(std::span<uint32_t> pieces) const {
  std::array<uint32_t, kLongestShort> ranks;  // for each piece and the next
  size_t count = pieces.size();
  for (size_t i = 0; i + 1 < count; ++i) ranks[i] = rank_of(pieces[i], pieces[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i)
      if (ranks[i] < ranks[best]) best = i;
    if (ranks[best] == kNone) break;
    pieces[best] = merges_[ranks[best]].merged;
    std::copy(pieces.begin() + static_cast<int64_t>(best) + 2, pieces.begin() + static_cast<int64_t>(count),
        pieces.begin() + static_cast<int64_t>(best) + 1);
    --count;
    if (best + 1 < count) {
      std::copy(ranks.begin() + best + 2, ranks.begin() + count, ranks.begin() + best + 1);
      ranks[best] = rank_of(pieces[best], pieces[best + 1]);
    }
    if (best > 0) ranks[best - 1] = rank_of(pieces[best - 1], pieces[best]);
  }
  return count;
}

size_t Merges::apply_long(std::span<uint32_t> pieces) const {
  constexpr uint32_t gone = UINT32_MAX;  // a piece that was merged into the one before it
  const auto count = static_cast<uint32_t>(pieces.size());
  std::vector<uint32_t> before(count), next(count);
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> possible;  // rank, then position
  const auto offer = [&](uint32_t i) {
    if (next[i] >= count) return;
    if (const uint32_t rank = rank_of(pieces[i], pieces[next[i]]); rank != kNone) possible.push(pair_of(rank, i));
  };
  for (uint32_t i = 0; i < count; ++i) {
    before[i] = i - 1;
    next[i] = i + 1;
  }
  for (uint32_t i = 0; i < count; ++i) offer(i);
  while (!possible.empty()) {
    const auto rank = static_cast<uint32_t>(possible.top() >> 32), i = static_cast<uint32_t>(possible.top());
    possible.pop();
    // The two pieces may have become others since.
    if (pieces[i] == gone || next[i] >= count || rank_of(pieces[i], pieces[next[i]]) != rank) continue;
    pieces[i] = merges_[rank].merged;
    pieces[next[i]] = gone;
    next[i] = next[next[i]];
    if (next[i] < count) before[next[i]] = i;
    offer(i);
    if (i > 0) offer(before[i]);
  }
  size_t left = 0;
  for (uint32_t i = 0; i < count; i = next[i]) pieces[left++] = pieces[i];
  return left;
}

}  // namespace ricci
