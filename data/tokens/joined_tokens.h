// Several sources behind one another, as one.
#pragma once
#include <vector>

#include "data/tokens/tokens.h"

namespace ricci {

class JoinedTokens final : public TokenSource {
 public:
  // Errors: no source; different tokenizers, or vocabularies of different sizes.
  explicit JoinedTokens(std::vector<Tokens> sources);

  int64_t size() const override { return first_.back(); }
  int64_t vocab_size() const override { return sources_[0].vocab_size(); }
  uint64_t hash() const override;
  uint64_t tokenizer_hash() const override { return sources_[0].tokenizer_hash(); }
  const std::string& name() const override { return name_; }
  void read(int64_t first, std::span<int64_t> ids) const override;
  int64_t shards() const override { return shards_before_.back(); }
  int64_t documents(int64_t shard) const override;
  TokenSpan document(int64_t shard, int64_t index) const override;
  int64_t classes() const override;  // 0 where one of them has no labels
  int64_t label(int64_t shard, int64_t index) const override;

 private:
  std::vector<Tokens> sources_;
  std::vector<int64_t> first_, shards_before_;  // by source, and behind the last one
  std::string name_;
};

// One source stays as it is.
Tokens join(std::vector<Tokens> sources);

// Error: two of them were made by different tokenizers.
void check_same_tokenizer(std::span<const Tokens> sources);

}  // namespace ricci
