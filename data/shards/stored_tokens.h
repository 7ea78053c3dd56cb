// Prepared shards as one source under a name and a hash of its own: the tokens of a text, or of documents in one order.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "data/shards/sharded_tokens.h"

namespace ricci {

// Checkpoints hold the hash of the tokens that a run learns. It does not tell how they are cut into shards.
uint64_t hash_of_text(const Tokens& tokens);
uint64_t hash_of_documents(const Tokens& tokens);

class StoredTokens final : public TokenSource {
 public:
  // A text has blocks in the place of documents; documents are all of one shard.
  StoredTokens(ShardedTokens tokens, std::string name, bool is_text);

  int64_t size() const override { return tokens_.size(); }
  int64_t vocab_size() const override { return tokens_.vocab_size(); }
  uint64_t hash() const override { return hash_; }
  uint64_t tokenizer_hash() const override { return tokens_.tokenizer_hash(); }
  const std::string& name() const override { return name_; }
  void read(int64_t first, std::span<int64_t> ids) const override;
  int64_t documents(int64_t shard) const override;
  TokenSpan document(int64_t shard, int64_t index) const override;
  int64_t classes() const override { return tokens_.classes(); }
  int64_t label(int64_t shard, int64_t index) const override;

  void set_hash(uint64_t hash) { hash_ = hash; }

 private:
  std::pair<int64_t, int64_t> find(int64_t index) const;
  ShardedTokens tokens_;
  std::string name_;
  bool is_text_;
  uint64_t hash_ = 0;
  std::vector<int64_t> before_{0};  // documents in front of each shard, and of all
};

}  // namespace ricci
