// Tokens: the ids of a corpus in files of shards. They are read when a batch needs them, because a corpus can be larger than memory.
// Reading order of this folder: tokens.h; shard.h: the format of a shard; prepare.h: the one writer of shards; cache.h: texts as shards in
// the cache.
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

// A value: a corpus, a part of one, or multiple joined. Copies and parts share the files. Multiple threads can read at the same time.
class Tokens {
 public:
  // The order in which documents are shuffled is a permutation of the shards, and of the documents of each. Files of shards are such
  // shards; or all of them are one, of the documents of all files, or of blocks of kBlock tokens, because a text has no documents to
  // shuffle.
  enum class Unit : uint8_t { shards, documents, blocks };
  static constexpr int64_t kBlock = ShardFile::kBlock;

  // A folder of prepared shards or of llm.c's, or one file of llm.c. All files stay open, because the folder can be replaced meanwhile. The
  // headers of all shards are read; the bodies of prepared shards are compared with their checksums when they are used for the first time.
  // Errors: a shard that is missing, cut short, continued or damaged; shards of several corpora or tokenizers in one folder; a
  // corpus whose preparation did not end; another tokenizer, or ids outside its vocabulary.
  static Tokens open(const std::string& path, const Tokenizer& tokenizer) { return open(path, tokenizer, "", Unit::shards); }
  // The same under this name, of prepared shards that are all compared with their checksums here.
  static Tokens hold(const std::string& path, const Tokenizer& tokenizer, const std::string& name, Unit unit);

  int64_t size() const { return tokens_; }
  int64_t vocab_size() const { return vocab_size_; }
  // Distinguishes corpora, and the parts of one: a hash of all shards and of the place of the part.
  uint64_t hash() const { return hash_; }
  // The number that version 0.1.0 kept in the checkpoints of runs on texts that ricci-train encodes: of the ids, which are read here.
  uint64_t former_hash() const;
  uint64_t tokenizer_hash() const { return tokenizer_hash_; }  // Tokenizer::hash, or 0 if it is not known
  int64_t first_id() const { return first_id_; }               // Marks::first: an id that is no target
  const std::string& name() const { return name_; }            // for messages

  // The ids [first, first + ids.size()). Errors: outside the corpus; a shard that was altered, or cut while it was in use.
  void read(int64_t first, std::span<int64_t> ids) const;
  // 1 for each token that counts, else 0. All tokens of a corpus without a mask count.
  bool has_mask() const;
  void read_counts(int64_t first, std::span<uint8_t> counts) const;

  // The documents, shard by shard. Spans count from the start of the corpus and cover all of it in order, unless only() chose some.
  int64_t shards() const { return std::ssize(shards_); }
  int64_t documents(int64_t shard) const { return shards_[static_cast<size_t>(shard)].documents; }
  TokenSpan document(int64_t shard, int64_t index) const;
  // Labels of documents are 0 ... classes() - 1. 0 classes: documents have none, and label() is -1.
  int64_t classes() const { return classes_; }
  int64_t label(int64_t shard, int64_t index) const;

  // The first documents, about `fraction` of all, and the rest. Error: one of the two would be empty.
  std::pair<Tokens, Tokens> split(double fraction) const;
  // The two documents of a text that was cut.
  std::pair<Tokens, Tokens> split_first() const;
  int64_t first_bytes() const;  // bytes of text in the first of these
  // The same tokens with these as their documents, without labels and in one shard.
  Tokens only(std::vector<TokenSpan> documents) const;

 private:
  friend Tokens join(std::vector<Tokens> sources);
  // The tokens of one file that are read.
  struct Part {
    std::shared_ptr<const ShardFile> file;
    TokenSpan tokens;        // in the file
    int64_t first_document;  // in the file
    int64_t documents;
    int64_t first = 0, documents_before = 0;  // token of the corpus; documents of the shard in its parts before this one
  };
  struct Shard {
    Unit unit;
    TokenSpan tokens;
    size_t first_part, end_part;
    int64_t documents = 0;
    std::shared_ptr<const std::vector<TokenSpan>> chosen = {};  // by only(): counted from the first token of the shard
  };

  Tokens() = default;
  static Tokens open(const std::string& path, const Tokenizer& tokenizer, const std::string& name, Unit unit);
  void start_shard(Unit unit);
  void add(Part part);
  template <class Use> void for_each_part(int64_t first, size_t size, const Use& use) const;
  std::pair<const Part&, int64_t> find(const Shard& shard, int64_t index) const;
  int64_t documents_in_files() const;
  static bool is_of_first_document(const Part& part);
  Tokens part(const char* label, int64_t first, int64_t end) const;
  uint64_t former_hash(const Shard& shard) const;

  std::vector<Part> parts_;
  std::vector<Shard> shards_;
  int64_t tokens_ = 0, vocab_size_ = 0, classes_ = 0, first_id_ = -1;
  uint64_t hash_ = 0, tokenizer_hash_ = 0;
  std::string name_;
};

// Error: two of them were made by different tokenizers.
void check_same_tokenizer(std::span<const Tokens> sources);

// The sources one after another, as one. It has labels if all of them have. One source stays as it is.
// Errors: none; different tokenizers, or vocabularies of different sizes.
Tokens join(std::vector<Tokens> sources);

// True where a path is a shard, or a folder that holds prepared shards or whose files are all shards of llm.c. Error: some are, and
// others are not; either would be left out without a word.
bool names_shards(const std::string& path);

// True where a tokenizer.json belongs to these shards: ricci-prepare writes one, llm.c does not.
bool has_tokenizer(const std::string& path);
// The tokenizer in a folder of prepared shards. Errors: the file's.
std::shared_ptr<const Tokenizer> tokenizer_of_shards(const std::string& path);

}  // namespace ricci
