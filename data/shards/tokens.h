// Tokens, whatever holds them: shards, generated rows, or several of these one after another. Reading order of this folder: tokens.h;
// shard.h: the format of a shard, its writer and reader; document_reader.h and pieces.h: documents and texts in pieces, and their ids;
// prepare.h: the shards of ricci-prepare; store.h: the shards of texts in the cache.
#pragma once
#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/shards/shard.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci {

class TokenSource {
 public:
  virtual ~TokenSource() = default;

  virtual int64_t size() const = 0;  // tokens
  virtual int64_t vocab_size() const = 0;
  virtual uint64_t hash() const = 0;               // hashes the ids in their order: distinguishes corpora
  virtual uint64_t tokenizer_hash() const = 0;     // Tokenizer::hash, or 0 if not known
  virtual int64_t first_id() const { return -1; }  // Marks::first: an id that is no target
  virtual const std::string& name() const = 0;     // for messages

  // The ids [first, first + ids.size()). Safe from several threads. Error: outside the source.
  virtual void read(int64_t first, std::span<int64_t> ids) const = 0;

  // The documents, shard by shard: the unit in which a training order is shuffled. Tokens without known documents have in their
  // place blocks of kBlock tokens. Spans count from the start of the source, and cover all of it in order.
  static constexpr int64_t kBlock = 4096;
  virtual int64_t shards() const { return 1; }
  virtual int64_t documents(int64_t shard) const;
  virtual TokenSpan document(int64_t shard, int64_t index) const;

  // Labels of documents are 0 ... classes() - 1. 0 classes: documents have none, and label() is -1.
  virtual int64_t classes() const { return 0; }
  virtual int64_t label(int64_t shard, int64_t index) const;

 protected:
  void check_range(int64_t first, std::span<const int64_t> ids) const;
};

// Any source as a value; copies share it.
class Tokens {
 public:
  template <std::derived_from<TokenSource> Source> Tokens(Source source) : source_(std::make_shared<const Source>(std::move(source))) {}

  int64_t size() const { return source_->size(); }
  int64_t vocab_size() const { return source_->vocab_size(); }
  uint64_t hash() const { return source_->hash(); }
  uint64_t tokenizer_hash() const { return source_->tokenizer_hash(); }
  int64_t first_id() const { return source_->first_id(); }
  const std::string& name() const { return source_->name(); }
  void read(int64_t first, std::span<int64_t> ids) const { source_->read(first, ids); }
  int64_t shards() const { return source_->shards(); }
  int64_t documents(int64_t shard) const { return source_->documents(shard); }
  TokenSpan document(int64_t shard, int64_t index) const { return source_->document(shard, index); }
  int64_t classes() const { return source_->classes(); }
  int64_t label(int64_t shard, int64_t index) const { return source_->label(shard, index); }

 private:
  std::shared_ptr<const TokenSource> source_;
};

// Checkpoints hold the hash of the tokens that a run learns. It does not depend on how they are cut into shards.
uint64_t hash_of_text(const Tokens& tokens);
uint64_t hash_of_documents(const Tokens& tokens);  // in one shard

// Error: two of them were made by different tokenizers.
void check_same_tokenizer(std::span<const Tokens> sources);

// Several sources one after another, as one, which has labels where all of them have. One source stays as it is.
// Errors: no source; different tokenizers, or vocabularies of different sizes.
Tokens join(std::vector<Tokens> sources);

// True where a path is a shard, or a folder that holds prepared shards or whose files are all shards of llm.c. Error: some are, and
// others are not; either would be left out without a word.
bool names_shards(const std::string& path);

// True where a tokenizer.json belongs to these shards: ricci-prepare writes one, llm.c does not.
bool has_tokenizer(const std::string& path);
// The tokenizer in a folder of prepared shards. Errors: the file's.
std::shared_ptr<const Tokenizer> tokenizer_of_shards(const std::string& path);

// The tokens of shards: prepared ones, also in the cache for texts and documents (store.h), or llm.c's. Corpora may be larger than memory.
class ShardedTokens final : public TokenSource {
 public:
  // A folder, or one file of llm.c. The headers of all shards are read; the bodies of prepared shards are compared with their
  // checksums when they are used for the first time. Shards of llm.c have no checksums; they are read whole here for hash().
  // Errors: a shard that is missing, cut short, continued or damaged; shards of several corpora or tokenizers in one folder; a
  // corpus whose preparation did not end; another tokenizer, or ids outside its vocabulary.
  static ShardedTokens open(const std::string& path, const Tokenizer& tokenizer);
  // Prepared shards whose files stay open and are compared with their checksums here: whatever becomes of the folder, these tokens are
  // read.
  static ShardedTokens hold(const std::string& path, const Tokenizer& tokenizer);

  // The first documents, about `fraction` of all, and the rest. Error: one of the two would be empty.
  std::pair<ShardedTokens, ShardedTokens> split(double fraction) const;
  // The tokens of the first files, and the rest; either may be empty.
  std::pair<ShardedTokens, ShardedTokens> split_files(int64_t files) const;
  // All as one shard under another name and hash: of blocks, as a text is, or of the documents of all shards. A hash of 0 is computed.
  ShardedTokens as_one_shard(const std::string& name, bool is_text, uint64_t hash) const;

  int64_t size() const override { return tokens_; }
  int64_t vocab_size() const override { return vocab_size_; }
  uint64_t hash() const override { return hash_; }
  uint64_t tokenizer_hash() const override { return files_->shards()[0].layout.header.tokenizer_hash; }
  int64_t first_id() const override { return first_id_; }
  const std::string& name() const override { return name_; }
  // Errors besides TokenSource's: a shard that was altered, or cut while in use.
  void read(int64_t first, std::span<int64_t> ids) const override;
  int64_t shards() const override { return unit_ == Unit::shards ? static_cast<int64_t>(parts_.size()) : 1; }
  int64_t documents(int64_t shard) const override;
  TokenSpan document(int64_t shard, int64_t index) const override;
  int64_t classes() const override { return files_->shards()[0].layout.header.classes; }
  int64_t label(int64_t shard, int64_t index) const override;

 private:
  // The part of one file that is read.
  struct Part {
    size_t number;           // in files_
    TokenSpan tokens;        // in the file
    int64_t first_document;  // in the file
    int64_t documents;
    int64_t first, documents_before;  // token of the source; documents before this part
  };
  ShardedTokens() = default;
  enum class Unit : uint8_t { shards, documents, blocks };  // the last two: all is one shard of documents, or of blocks

  static ShardedTokens from_shards(const std::string& path, std::vector<ShardFiles::Shard> shards, const Tokenizer& tokenizer);
  ShardedTokens part(const char* label, int64_t first, int64_t end) const;
  void add(size_t number, const TokenSpan& tokens, int64_t first_document, int64_t documents);
  int64_t all_documents() const { return parts_.empty() ? 0 : parts_.back().documents_before + parts_.back().documents; }
  TokenSpan in_file(const Part& part, int64_t document) const;
  std::pair<const Part&, int64_t> find(int64_t shard, int64_t index) const;

  std::shared_ptr<ShardFiles> files_;  // shared by the parts of a corpus
  std::vector<Part> parts_;
  int64_t vocab_size_ = 0, tokens_ = 0, first_id_ = -1;
  uint64_t hash_ = 0;
  std::string name_;
  Unit unit_ = Unit::shards;
};

}  // namespace ricci
