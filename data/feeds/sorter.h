// A task that is generated: to sort. A row is a sequence of symbols 0 .. symbols - 1 and after it the same symbols in order,
//   x_1 .. x_n  s_1 .. s_n
// A model reads all of it but the last symbol and predicts s_1 .. s_n, from position n - 1 on. (A prediction of s_c at the position of
// x_c would ask a causal model for what it cannot know yet.)
#pragma once
#include <algorithm>
#include <string>

#include "data/feeds/feed.h"
#include "data/shards/tokens.h"

namespace ricci {

// Rows one after another. About one sequence of eight is held out: no row for training has it.
class SortingRows final : public TokenSource {
 public:
  enum class Subset : uint8_t { training, held_out };

  // Errors: fewer than 2 symbols or more than 26, a length outside 3 .. 4096, fewer than 1024 different sequences, no row.
  SortingRows(int64_t symbols, int64_t length, Subset subset, int64_t rows);

  int64_t size() const override { return rows_ * 2 * length_; }
  int64_t vocab_size() const override { return symbols_; }
  uint64_t hash() const override;
  uint64_t tokenizer_hash() const override { return 0; }
  const std::string& name() const override { return name_; }
  void read(int64_t first, std::span<int64_t> ids) const override;

 private:
  std::vector<int64_t> row(int64_t number) const;
  int64_t symbols_, length_, rows_;
  Subset subset_;
  std::string name_;
};

// Batches of such rows, whose targets are the sorted symbols.
class SortingBatches {
 public:
  // Errors: a length or batch below 1, tokens that are no whole rows of sequences of this length.
  SortingBatches(Tokens tokens, int64_t length, int64_t batch, uint64_t seed);

  int64_t context() const { return 2 * length_ - 1; }
  // Training: rows drawn independently and uniformly from the seed. Rows [micro_batch * batch, (micro_batch + 1) * batch) of a step.
  Batch at(int64_t step, int64_t micro_batch) const;
  // Evaluation: every row once, in their order, in batches as asked but no larger than all; the last has fewer rows if there are fewer.
  int64_t batches() const { return (rows() + batch() - 1) / batch(); }
  int64_t batch() const { return std::min(batch_, rows()); }
  Batch at(int64_t index) const;

 private:
  int64_t rows() const { return tokens_.size() / (2 * length_); }
  template <class Row> Batch batch_of(int64_t rows, const Row& row) const;
  Tokens tokens_;
  int64_t length_, batch_;
  uint64_t seed_;
};

}  // namespace ricci
