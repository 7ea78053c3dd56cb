// A shard: a file with a part of a tokenised corpus. Two formats are read.
//
// Prepared shards, little-endian:
//   ShardHeader, 128 bytes
//   the ids as u16, or as u32 where the vocabulary exceeds 65,536; then zeros up to a multiple of 8 bytes
//   the document index: for each document the token of this shard that it starts with, as u64
//   where documents have labels: one i32 for each
// Shards of llm.c (dev/data/data_common.py): 256 i32, which begin with magic, version and number of tokens, then the ids: u16 with
// magic 20240520 and version 1 (GPT-2), u32 with magic 20240801 and version 7 (Llama 3).
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/file.h"
#include "core/files/folder.h"

namespace ricci {

class PieceReader;
class TextSource;
class Tokenizer;

// The tokens [first, end) of a source, or of a shard.
struct TokenSpan {
  int64_t first = 0, end = 0;
  int64_t size() const { return end - first; }
};

// The place in the inputs of ricci-prepare (data/shards/pieces.h) up to which documents were read.
struct InputPlace {
  int64_t input = 0;     // which of the input files
  int64_t document = 0;  // documents of this file that are complete
  int64_t byte = 0;      // bytes of the next one
  bool operator==(const InputPlace&) const = default;
};

struct ShardHeader {
  char magic[8] = {'R', 'I', 'C', 'C', 'I', 'S', 'H', 'D'};
  uint32_t version = 1;
  uint32_t bytes_per_token = 0;
  int64_t vocab_size = 0;
  uint64_t tokenizer_hash = 0;
  uint64_t source_hash = 0;  // inputs and settings: equal in all shards of one corpus
  int64_t number = 0;        // the shard's, from 0
  int64_t tokens = 0;
  int64_t documents = 0;
  int64_t text_bytes = 0;
  InputPlace end;          // where the next shard goes on
  uint32_t is_last = 0;    // in its corpus
  uint32_t goes_on = 0;    // the first document here is the rest of the last one of the shard before
  int64_t classes = 0;     // labels are 0 ... classes - 1; 0 if there are none
  uint64_t body_hash = 0;  // hash_of_file of everything after the header
  uint64_t own_hash = 0;   // hashes everything above

  uint64_t hash() const;
  int64_t index_offset() const { return static_cast<int64_t>(sizeof *this) + (tokens * bytes_per_token + 7) / 8 * 8; }
  int64_t labels_offset() const { return index_offset() + documents * 8; }
  int64_t file_bytes() const { return labels_offset() + (classes > 0 ? documents * 4 : 0); }
};
static_assert(sizeof(ShardHeader) == 128);

// The places in a shard of either format.
struct ShardLayout {
  bool is_prepared = false;
  int64_t tokens = 0, bytes_per_token = 0, ids_offset = 0;
  ShardHeader header = {};  // a prepared shard has one
};

// True where a file starts with the magic number of either format.
bool is_shard(const OpenFile& file);

// Reads the header, and checks it and the length of the file. The body is not read: check_shard_body().
// Errors name the file: not a shard, of another version, a damaged header, cut short or continued.
ShardLayout read_shard_header(const OpenFile& file);

// Compares the body of a prepared shard with its checksum. Error: it was altered.
void check_shard_body(const OpenFile& file, const ShardHeader& header);

// shard-00042.tokens
std::string shard_name(int64_t number);
// True where a file is named so, with any number.
bool is_shard_name(std::string_view name);

struct Prepared {
  int64_t shards = 0, tokens = 0, documents = 0, text_bytes = 0;
  int64_t found = 0;            // shards that were there already
  int64_t first_shards = 0;     // shards of ShardOptions::first_documents
  int64_t empty_documents = 0;  // documents without tokens, which no shard holds; of the shards written now
  void add(const ShardHeader& written);
};

struct PrepareProgress {
  int64_t bytes_of_files = 0, tokens = 0;  // read; of all shards so far
};

// The way in which documents are cut into shards.
struct ShardOptions {
  int64_t shard_tokens;
  bool whole_documents;         // each in one shard
  int64_t first_documents = 0;  // a shard ends after this number; with 0 anywhere
};

// The header of the first shard of a corpus.
ShardHeader header_of(const Tokenizer& tokenizer, uint64_t source_hash, int64_t classes);

// Writes the documents as shards, from the number of this header on, and adds them to `all`. The reader reads these files. Each shard is
// written beside the others under a temporary name, synced and renamed.
// Errors: in reading, encoding and writing; a file that changed meanwhile; no tokens.
void write_shards(PieceReader& reader, const TextSource& files, const Tokenizer& tokenizer, const Folder& folder, const ShardHeader& first,
    const ShardOptions& options, Prepared& all, const std::function<void(const PrepareProgress&)>& progress = {});

// Reads the shards of a corpus, each at any place by one system call, so that memory does not grow with what was read. Safe from several
// threads. Errors: a shard was cut while it was in use, or no longer fits its layout.
class ShardFiles {
 public:
  struct Shard {
    std::string path;
    ShardLayout layout;
    std::shared_ptr<const OpenFile> file = {};  // held open, and its body was compared; if null, the path is opened when it is used
  };
  explicit ShardFiles(std::vector<Shard> shards) : shards_(std::move(shards)), checked_(shards_.size()) {}

  const std::vector<Shard>& shards() const { return shards_; }
  // The ids [first, first + ids.size()) of a shard. Error: one is outside of the vocabulary.
  void read(size_t number, int64_t first, std::span<int64_t> ids, int64_t vocab_size);
  // The tokens of a document of a prepared shard. Error: the index is damaged.
  TokenSpan document(size_t number, int64_t document);
  int64_t label(size_t number, int64_t document);

 private:
  std::shared_ptr<const OpenFile> open(size_t number);
  void read(size_t number, void* target, size_t bytes, int64_t offset);

  std::vector<Shard> shards_;
  std::mutex mutex_;
  std::map<size_t, std::shared_ptr<const OpenFile>> open_;
  std::vector<bool> checked_;  // the body was compared with its checksum, at the first use
};

}  // namespace ricci
