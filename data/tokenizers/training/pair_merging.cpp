// Learns the merges of byte pair encoding. Counting all pairs for every merge would take hours, so a merge updates only the counts of words
// that contain its pair. A heap gives the most frequent pair; an entry with an outdated count is put back with the new count.
#include <algorithm>
#include <queue>
#include <unordered_map>

#include "core/cpu/parallel.h"
#include "data/tokenizers/training/training.h"

namespace ricci {
namespace {

using Pair = uint64_t;

Pair join(uint32_t left, uint32_t right) { return static_cast<Pair>(left) << 32 | right; }
uint32_t get_left(Pair pair) { return static_cast<uint32_t>(pair >> 32); }
uint32_t get_right(Pair pair) { return static_cast<uint32_t>(pair); }

struct PairHash {
  size_t operator()(Pair pair) const { return (pair ^ pair >> 29) * 0x9e3779b97f4a7c15u >> 7; }
};

struct Occurrences {
  int64_t count = 0;
  std::vector<uint32_t> words;  // words that contain or contained the pair
};
using Pairs = std::unordered_map<Pair, Occurrences, PairHash>;

struct Candidate {
  int64_t count;
  Pair pair;
  bool operator<(const Candidate& other) const { return count != other.count ? count < other.count : pair > other.pair; }
};

void note(Pairs& pairs, Pair pair, int64_t count, uint32_t word) {
  Occurrences& occurrences = pairs[pair];
  occurrences.count += count;
  if (occurrences.words.empty() || occurrences.words.back() != word) occurrences.words.push_back(word);
}

// Counts the pairs of all words; each thread processes some of the words.
Pairs count_pairs(const std::vector<PieceWord>& words) {
  const auto lanes = static_cast<size_t>(thread_count());
  const size_t share = (words.size() + lanes - 1) / lanes;
  std::vector<Pairs> found(lanes);
  parallel_for(static_cast<int64_t>(lanes), 1, [&](int64_t begin, int64_t end) {
    for (auto lane = static_cast<size_t>(begin); lane < static_cast<size_t>(end); ++lane)
      for (size_t w = lane * share; w < std::min(words.size(), (lane + 1) * share); ++w)
        for (size_t i = 0; i + 1 < words[w].pieces.size(); ++i)
          note(found[lane], join(words[w].pieces[i], words[w].pieces[i + 1]), words[w].count, static_cast<uint32_t>(w));
  });
  Pairs pairs = std::move(found[0]);
  for (size_t lane = 1; lane < lanes; ++lane)
    for (auto& [pair, occurrences] : found[lane]) {
      Occurrences& all = pairs[pair];
      all.count += occurrences.count;
      all.words.insert(all.words.end(), occurrences.words.begin(), occurrences.words.end());
    }
  return pairs;
}

class Learner {
 public:
  Learner(std::vector<PieceWord> words, std::vector<std::string>& pieces)
      : words_(std::move(words)), pieces_(pieces), pairs_(count_pairs(words_)) {
    for (uint32_t id = 0; id < pieces.size(); ++id) ids_.emplace(pieces[id], id);
    for (const auto& [pair, occurrences] : pairs_) heap_.push({occurrences.count, pair});
  }

  std::vector<Merges::Merge> run(size_t vocab, int64_t least) {
    while (pieces_.size() < vocab && !heap_.empty()) {
      const Candidate best = heap_.top();
      heap_.pop();
      const int64_t now = pairs_[best.pair].count;
      if (now < least) continue;
      if (now != best.count) {
        heap_.push({now, best.pair});
      } else {
        merge(best.pair);
      }
    }
    return std::move(merges_);
  }

 private:
  void merge(Pair pair) {
    const uint32_t left = get_left(pair), right = get_right(pair);
    std::string text = pieces_[left] + pieces_[right];
    const auto [known, is_new] = ids_.emplace(text, static_cast<uint32_t>(pieces_.size()));
    if (is_new) pieces_.push_back(std::move(text));
    const uint32_t merged = known->second;
    merges_.push_back({left, right, merged});
    const std::vector<uint32_t> words = std::move(pairs_[pair].words);
    grown_.clear();
    for (const uint32_t word : words) merge_in(word, left, right, merged);
    pairs_[pair] = {};
    std::sort(grown_.begin(), grown_.end());
    grown_.erase(std::unique(grown_.begin(), grown_.end()), grown_.end());
    for (const Pair grown : grown_)
      if (const int64_t count = pairs_[grown].count; count > 0) heap_.push({count, grown});
  }

  void merge_in(uint32_t word, uint32_t left, uint32_t right, uint32_t merged) {
    std::vector<uint32_t>& p = words_[word].pieces;
    const int64_t count = words_[word].count;
    size_t kept = 0;  // tokens that are final
    for (size_t i = 0; i < p.size(); ++i, ++kept) {
      if (p[i] != left || i + 1 == p.size() || p[i + 1] != right) {
        p[kept] = p[i];
        continue;
      }
      if (kept > 0) {
        pairs_[join(p[kept - 1], left)].count -= count;
        grow(join(p[kept - 1], merged), count, word);
      }
      p[kept] = merged;
      ++i;
      if (i + 1 < p.size()) {
        pairs_[join(right, p[i + 1])].count -= count;
        grow(join(merged, p[i + 1]), count, word);
      }
    }
    p.resize(kept);
  }

  void grow(Pair pair, int64_t count, uint32_t word) {
    note(pairs_, pair, count, word);
    grown_.push_back(pair);
  }

  std::vector<PieceWord> words_;
  std::vector<std::string>& pieces_;
  Pairs pairs_;
  std::unordered_map<std::string, uint32_t> ids_;
  std::priority_queue<Candidate> heap_;
  std::vector<Merges::Merge> merges_;
  std::vector<Pair> grown_;  // pairs that this merge made more frequent
};

}  // namespace

std::vector<Merges::Merge> learn_merges(std::vector<PieceWord> words, std::vector<std::string>& pieces, size_t vocab, int64_t min_count) {
  return Learner(std::move(words), pieces).run(vocab, std::max<int64_t>(min_count, 1));
}

}  // namespace ricci
