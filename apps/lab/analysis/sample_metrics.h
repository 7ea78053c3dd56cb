// Numbers about generated texts that need no neural network: repeated n-grams, BLEU, and a Kneser-Ney n-gram model.
#pragma once
#include <array>
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

// An n-gram language model with interpolated, modified Kneser-Ney smoothing (Chen and Goodman 1998), over token ids.
//   p(w | h) = (c(h w) - D(c(h w))) / c(h .)  +  g(h) p(w | h'),    h' is h without its first token
//   g(h)     = (D_1 N_1(h .) + D_2 N_2(h .) + D_3 N_3+(h .)) / c(h .)
// c are counts in the text for the longest n-grams, and for shorter ones the number of different tokens before them in the text.
// D(c) is D_1, D_2 or D_3 for counts of 1, 2, and 3 or more; with n_k the number of n-grams that have the count k,
//   Y = n_1 / (n_1 + 2 n_2),   D_k = k - (k + 1) Y n_k+1 / n_k
// If a text is too short to have an n_k, D is 0.5, 1, 1.5. So is a D_k that the formula puts at 0 or below: with it, a history might
// leave nothing for the tokens that it was not seen with. A history that was never seen passes on to the shorter one; below the
// single tokens is the uniform distribution over the vocabulary. The probabilities after any history add up to one.
class KneserNey {
 public:
  static constexpr size_t kMaxOrder = 5;

  // Errors: an order outside 1 .. kMaxOrder, a text shorter than the order, an id outside of the vocabulary.
  KneserNey(std::span<const int64_t> text, size_t order, int64_t vocab);

  // The probability of the last token after the ones before it; only the last order - 1 of these are read. Errors: no token; an id that
  // the vocabulary does not have.
  double probability(std::span<const int64_t> tokens) const;
  // The mean nats of tokens[first ..], each given all before it. Error: first is not below the number of tokens.
  double nats_per_token(std::span<const int64_t> tokens, int64_t first) const;

  std::array<double, 3> discounts(size_t order) const { return orders_.at(order - 1).discounts; }

 private:
  using Gram = std::array<int32_t, kMaxOrder>;  // -1 after its last token
  struct History {
    Gram gram;
    int64_t count = 0;                 // c(h .)
    std::array<int64_t, 3> seen = {};  // N_1(h .), N_2(h .), N_3+(h .)
  };
  struct Order {
    Order(std::vector<Gram> all, size_t length);

    std::vector<Gram> grams;  // ascending
    std::vector<int64_t> counts;
    std::vector<History> histories;  // ascending
    std::array<double, 3> discounts{0.5, 1, 1.5};
  };
  static Gram gram_of(std::span<const int64_t> tokens);
  void check_id(int64_t id) const;

  int64_t vocab_;
  std::vector<Order> orders_;  // n-grams with one token, two ...
};

}  // namespace ricci::apps
