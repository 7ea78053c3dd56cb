// The tokens of shards, prepared ones or those of llm.c, read through memory maps. Corpora may be larger than memory: maps are
// given back as soon as they may hold more than kMaxResident bytes.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/shards/shard_maps.h"
#include "data/shards/tokens.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci {

// Whether a path is a shard, or a folder that holds prepared shards or whose files are all shards of llm.c. Error: some are, and
// others are not; either would be left out without a word.
bool names_shards(const std::string& path);

// Whether a tokenizer.json belongs to these shards: ricci-prepare writes one, llm.c does not.
bool has_tokenizer(const std::string& path);
// The tokenizer in a folder of prepared shards. Errors: those of the file.
std::shared_ptr<const Tokenizer> tokenizer_of_shards(const std::string& path);

class ShardedTokens final : public TokenSource {
 public:
  // A folder, or one file of llm.c. The headers of all shards are read; the bodies of prepared shards are compared with their
  // checksums when they are used for the first time. Shards of llm.c have no checksums; they are read whole here for hash().
  // Errors: a shard that is missing, cut short, continued or damaged; shards of several corpora or tokenizers in one folder; a
  // corpus whose preparation did not end; another tokenizer, or ids outside its vocabulary.
  static ShardedTokens open(const std::string& path, const Tokenizer& tokenizer);
  // The same of prepared shards, whose files stay open and are compared with their checksums here: whatever becomes of the folder, these
  // tokens are read.
  static ShardedTokens hold(const std::string& path, const Tokenizer& tokenizer);

  // The first documents, about `fraction` of all, and the rest. Error: one of the two would be empty.
  std::pair<ShardedTokens, ShardedTokens> split(double fraction) const;
  // What the first so many files hold, and the rest; either may hold nothing.
  std::pair<ShardedTokens, ShardedTokens> split_files(int64_t files) const;

  int64_t size() const override;
  int64_t vocab_size() const override;
  uint64_t hash() const override;
  uint64_t tokenizer_hash() const override;
  const std::string& name() const override;
  // Errors besides those of TokenSource: a shard that was altered, or cut while in use.
  void read(int64_t first, std::span<int64_t> ids) const override;
  int64_t shards() const override;
  int64_t documents(int64_t shard) const override;
  TokenSpan document(int64_t shard, int64_t index) const override;
  int64_t classes() const override;
  int64_t label(int64_t shard, int64_t index) const override;

 private:
  struct Contents;
  static ShardedTokens of(const std::string& path, std::vector<ShardMaps::Shard> shards, const Tokenizer& tokenizer);
  explicit ShardedTokens(std::shared_ptr<const Contents> contents) : contents_(std::move(contents)) {}
  ShardedTokens part(const char* label, int64_t first, int64_t end) const;
  std::shared_ptr<const Contents> contents_;
};

}  // namespace ricci
