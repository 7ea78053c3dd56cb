// The merges of byte pair encoding: which two neighbouring pieces become one, and which pair goes first.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace ricci {

class Merges {
 public:
  struct Merge {
    uint32_t left, right, merged;  // ids of pieces
  };
  // In the order of their ranks: the first goes first. Where a pair is twice, its first rank counts.
  explicit Merges(std::vector<Merge> merges);

  std::span<const Merge> all() const { return merges_; }
  // Merges the neighbours of lowest rank, the leftmost of several, as long as there are any. Returns how many pieces are
  // left at the front of `pieces`.
  size_t apply(std::span<uint32_t> pieces) const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Slot {
    uint64_t pair = UINT64_MAX;
    uint32_t rank = kNone;
  };
  size_t place_of(uint32_t left, uint32_t right) const;
  uint32_t rank_of(uint32_t left, uint32_t right) const { return slots_[place_of(left, right)].rank; }
  size_t apply_short(std::span<uint32_t> pieces) const;
  size_t apply_long(std::span<uint32_t> pieces) const;

  std::vector<Merge> merges_;
  std::vector<Slot> slots_;  // a power of two of them, at most half full
  int shift_;
};

}  // namespace ricci
