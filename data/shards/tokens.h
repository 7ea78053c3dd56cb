// Tokens: the ids of a corpus in shard files, read when a batch needs them. A corpus can be larger than memory.
// Reading order of this folder: corpus.h (from a user's texts or shards to tokens), tokens.h, shard.h (the shard format), prepare.h (the
// only writer of shards), cache.h (texts as shards in the cache).
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/shards/shard.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci {

// A corpus, a part of one, or a join of multiple corpora. Copies share the files. Multiple threads can read at the same time.
class Tokens {
 public:
  Tokens() = default;  // no tokens
  static constexpr int64_t kBlock = ShardFile::kBlock;

  // Opens a folder of prepared or llm.c shards, or one llm.c file. All files stay open, even if the folder is replaced meanwhile. The first
  // use of a prepared shard compares its body with its checksum. Errors: a shard is missing, damaged or has the wrong length; the folder
  // has shards of more than one corpus or tokenizer; the preparation was interrupted; the shards have a different tokenizer.
  static Tokens open(const std::string& path, const Tokenizer& tokenizer);
  // Opens the cache's shards as one shard with this name. Compares all shards with their checksums.
  static Tokens open_cached(const std::string& path, const Tokenizer& tokenizer, const std::string& name);

  int64_t size() const { return tokens_; }
  int64_t vocab_size() const { return vocab_size_; }
  // Identifies a corpus or a part by its ids, mask, labels, and division into documents and shards.
  uint64_t hash() const { return hash_; }
  uint64_t tokenizer_hash() const { return tokenizer_hash_; }  // Tokenizer::hash, or 0 if unknown
  int64_t first_id() const { return first_id_; }               // Marks::first: an id that is never a target
  const std::string& name() const { return name_; }            // for messages

  // Reads the ids [first, first + ids.size()). Errors: the range is outside the corpus; ShardFile::read's.
  void read(int64_t first, std::span<int64_t> ids) const;
  bool has_mask() const;
  // Writes 1 for each scored token, and 0 for the others. Without a mask, all tokens are scored.
  void read_counts(int64_t first, std::span<uint8_t> counts) const;

  // The documents, shard by shard. Shuffling permutes the shards, and the documents of each. Spans are relative to the start of the corpus,
  // and cover the corpus in order except after select().
  int64_t shards() const { return std::ssize(shards_); }
  int64_t documents() const;
  int64_t documents(int64_t shard) const { return shards_[static_cast<size_t>(shard)].documents; }
  TokenSpan document(int64_t shard, int64_t index) const;
  // Labels are 0 ... classes() - 1. Documents without labels have 0 classes, and label() is -1.
  int64_t classes() const { return classes_; }
  int64_t label(int64_t shard, int64_t index) const;

  // The first documents, about `fraction` of all, and the rest. Error: a part would be empty.
  std::pair<Tokens, Tokens> split(double fraction) const;
  // The two parts of a text that was cut (Documents::cut).
  std::pair<Tokens, Tokens> split_at_cut() const;
  int64_t bytes_before_cut() const;  // bytes of the text before the cut
  // Divides the documents into blocks of kBlock tokens. A plain text can be one document, so its blocks are shuffled instead.
  Tokens in_blocks() const;
  // Replaces the documents with these spans, without labels and in one shard.
  Tokens select(std::vector<TokenSpan> documents) const;

 private:
  friend Tokens join(std::vector<Tokens> sources);
  // Consecutive documents of one file.
  struct Part {
    std::shared_ptr<const ShardFile> file;
    TokenSpan tokens;                     // in the file
    int64_t first_document, documents;    // in the file
    int64_t first = 0, first_of_all = 0;  // index of its first token, and of its first document, in the corpus
  };
  struct Shard {
    int64_t first_of_all, documents;                            // index in all parts, and number of documents
    std::shared_ptr<const std::vector<TokenSpan>> chosen = {};  // if set, the documents chosen by select()
    int64_t first = 0;                                          // spans are relative to this token of the corpus
  };

  Tokens without_parts() const;
  void add(Part part);
  int64_t documents_in_parts() const { return parts_.empty() ? 0 : parts_.back().first_of_all + parts_.back().documents; }
  template <class Use> void for_each_part(int64_t first, size_t size, const Use& use) const;
  std::pair<const Part&, int64_t> find(const Shard& shard, int64_t index) const;
  Tokens part(const char* label, int64_t first, int64_t end) const;

  std::vector<Part> parts_;
  std::vector<Shard> shards_;
  int64_t tokens_ = 0, vocab_size_ = 0, classes_ = 0, first_id_ = -1;
  uint64_t hash_ = 0, tokenizer_hash_ = 0;
  std::string name_;
};

// Joins the sources in order. The result has labels if all sources do. Errors: sources is empty; the tokenizers differ.
Tokens join(std::vector<Tokens> sources);

// True for a shard, a folder with prepared shards, or a folder of llm.c shards. Error: a folder mixes llm.c shards and other files.
bool names_shards(const std::string& path);

// True for a folder of prepared shards. Such a folder contains a tokenizer.json.
bool has_tokenizer(const std::string& path);
// The tokenizer in a folder of prepared shards. Errors: the file's.
std::shared_ptr<const Tokenizer> tokenizer_of_shards(const std::string& path);
// The class names in a folder of prepared shards; empty if classes have no names.
std::vector<std::string> labels_of_shards(const std::string& path);

}  // namespace ricci
