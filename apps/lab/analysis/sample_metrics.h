// Numbers about generated texts that need no model.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ricci::apps {

// The share of n-grams that repeat an earlier one of the sequence: 1 - (number of different n-grams) / (number of n-grams), as in Welleck
// et al. (2020). 0 for a sequence without an n-gram.
double repeated_share(std::span<const int64_t> ids, size_t n);

// BLEU (Papineni et al. 2002) of whole corpora, 0 .. 100: the geometric mean of the clipped precisions of 1- to 4-grams, times exp(1 - r/c)
// where the candidates, c units long, are shorter than the references nearest in length, r units. Not smoothed: without a common 4-gram it
// is 0.
class Bleu {
 public:
  void add(const std::vector<std::string>& candidate, const std::vector<std::vector<std::string>>& references);
  double value() const;

 private:
  static constexpr size_t kMax = 4;
  double matched_[kMax] = {}, all_[kMax] = {}, candidates_ = 0, references_ = 0;
};

// The words of a text, divided at white space.
std::vector<std::string> words_of(const std::string& text);

}  // namespace ricci::apps
