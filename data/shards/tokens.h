// The one interface for tokens, whatever holds them: shards (sharded_tokens.h), generated rows, or several of these behind one another.
// Reading order of this folder: tokens.h; shard.h: the format of a shard, its reader and writer; sharded_tokens.h: a corpus of shards;
// document_reader.h and pieces.h: documents and texts in pieces, and their ids; prepare.h: these ids as shards; store.h: the shards of
// texts in the cache.
#pragma once
#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ricci {

// The tokens [first, end) of a source, or of a shard.
struct TokenSpan {
  int64_t first = 0, end = 0;
  int64_t size() const { return end - first; }
};

class TokenSource {
 public:
  virtual ~TokenSource() = default;

  virtual int64_t size() const = 0;  // tokens
  virtual int64_t vocab_size() const = 0;
  virtual uint64_t hash() const = 0;            // hashes the ids in their order: tells one corpus from another
  virtual uint64_t tokenizer_hash() const = 0;  // Tokenizer::hash; 0: it is not known
  virtual const std::string& name() const = 0;  // for messages

  // The ids [first, first + ids.size()). Safe from several threads. Error: outside the source.
  virtual void read(int64_t first, std::span<int64_t> ids) const = 0;

  // The documents, shard by shard: the unit in which a training order is shuffled. Tokens that tell of no documents have in their
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

// Checkpoints hold the hash of the tokens that a run learns. It does not tell how they are cut into shards.
uint64_t hash_of_text(const Tokens& tokens);
uint64_t hash_of_documents(const Tokens& tokens);  // in one shard

// Error: two of them were made by different tokenizers.
void check_same_tokenizer(std::span<const Tokens> sources);

// Several sources behind one another, as one, which has labels where all of them have. One source stays as it is.
// Errors: no source; different tokenizers, or vocabularies of different sizes.
Tokens join(std::vector<Tokens> sources);

}  // namespace ricci
