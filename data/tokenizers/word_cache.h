// Caches the ids of repeated words. The cache never changes the ids.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace ricci {

// A hash table with one slot per hash: a later word replaces an earlier one. The table starts small, for prompts, and grows.
class WordCache {
 public:
  // Appends the ids of the first `word` bytes of the text. On a miss, encode() appends the ids.
  template <class Encode> void append(std::string_view text, size_t word, std::vector<int64_t>& ids, const Encode& encode) {
    if (word > kLongestWord) return encode();
    const Key key = key_of(text.substr(0, word), text.size());
    const Slot& slot = slots_[place_of(key)];
    if (slot.key == key && slot.count > 0) {
      for (uint32_t i = 0; i < slot.count; ++i) ids.push_back(slot.ids[i]);
      return;
    }
    const size_t before = ids.size();
    encode();
    keep(key, std::span(ids).subspan(before));
  }

 private:
  static constexpr size_t kLongestWord = 23, kMaxIds = 8;  // bytes, ids
  static constexpr int kMaxBits = 15;                      // 2 MiB

  // A word: its bytes, zero padding, and its length in the last byte.
  struct Key {
    std::array<uint64_t, 3> parts;
    bool operator==(const Key&) const = default;
  };
  // `readable` is the number of bytes that can be read from the start of the word.
  static Key key_of(std::string_view word, size_t readable) {
    Key key{};
    if (readable >= sizeof key) {  // three loads and a mask replace a copy of variable length
      std::memcpy(&key, word.data(), sizeof key);
      const size_t bits = 8 * word.size();
      for (size_t i = 0; i < key.parts.size(); ++i) {
        const size_t here = bits > 64 * i ? bits - 64 * i : 0;
        if (here < 64) key.parts[i] &= (uint64_t{1} << here) - 1;
      }
    } else {
      std::memcpy(&key, word.data(), word.size());
    }
    key.parts[2] |= static_cast<uint64_t>(word.size()) << 56;
    return key;
  }
  struct alignas(64) Slot {
    Key key{};  // an empty key is never looked up
    uint32_t count = 0;
    std::array<uint32_t, kMaxIds> ids;
  };
  static_assert(sizeof(Slot) == 64);  // a cache line

  void keep(const Key& key, std::span<const int64_t> ids) {
    if (ids.empty() || ids.size() > kMaxIds) return;
    if (++kept_ > slots_.size() && bits_ < kMaxBits) grow();
    Slot& slot = slots_[place_of(key)];
    slot.key = key;
    slot.count = static_cast<uint32_t>(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) slot.ids[i] = static_cast<uint32_t>(ids[i]);
  }
  size_t place_of(const Key& key) const {
    uint64_t hash = key.parts[0] * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 29 ^ key.parts[1]) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ hash >> 32 ^ key.parts[2]) * 0x94d049bb133111ebu;
    return hash >> (64 - bits_);
  }
  void grow() {
    bits_ = std::min(bits_ + 3, kMaxBits);
    slots_.assign(size_t{1} << bits_, Slot());
    kept_ = 0;
  }
  int bits_ = 6;
  size_t kept_ = 0;
  std::vector<Slot> slots_ = std::vector<Slot>(size_t{1} << bits_);
};

// Each tokenizer has a number. With it, a thread checks that its cache belongs to this tokenizer.
class WordCacheOwner {
 public:
  // This thread's cache, emptied if a different tokenizer used it.
  WordCache& cache() const {
    thread_local WordCache cache;
    thread_local uint64_t owner = 0;
    if (std::exchange(owner, number_) != number_) cache = WordCache();
    return cache;
  }

 private:
  static inline std::atomic<uint64_t> last_ = 0;
  uint64_t number_ = ++last_;
};

}  // namespace ricci
