// A shard: a file with a part of a tokenised corpus. Two formats are read.
//
// Prepared shards (ShardWriter), little-endian:
//   ShardHeader, 128 bytes
//   the ids as u16, or as u32 where the vocabulary exceeds 65,536; then zeros up to a multiple of 8 bytes
//   the document index: for each document the token of this shard that it starts with, as u64
//   where documents have labels: one i32 for each
// Shards of llm.c (dev/data/data_common.py): 256 i32, of which the first three are magic, version and number of tokens, then the
// ids: u16 with magic 20240520 and version 1 (GPT-2), u32 with magic 20240801 and version 7 (Llama 3).
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/file.h"
#include "core/files/folder.h"
#include "data/shards/tokens.h"

namespace ricci {

// The place in the inputs of ricci-prepare (data/shards/document_reader.h) up to which documents were read.
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
  int64_t classes = 0;     // labels are 0 ... classes - 1; 0: there are none
  uint64_t body_hash = 0;  // hash_of_file of everything behind the header
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

// Reads and checks the header, and that the file is as long as it tells. The body is not read: check_shard_body().
// Errors name the file: not a shard, of another version, a damaged header, cut short or continued.
ShardLayout read_shard_header(const OpenFile& file);

// Compares the body of a prepared shard with its checksum. Error: it was altered.
void check_shard_body(const OpenFile& file, const ShardHeader& header);

// shard-00042.tokens
std::string shard_name(int64_t number);
// True where a file is named so, with any number.
bool is_shard_name(std::string_view name);

// Bytes of an id: 2 up to 65,536 ids, else 4.
int64_t bytes_per_token(int64_t vocab_size);

// Makes the shards of a corpus, one after the other: collects packed ids and documents until a shard is full, and writes it beside
// the others under a temporary name, syncs and renames it.
class ShardWriter {
 public:
  // `first`: the header of the first shard to write: its number, tokenizer, vocabulary, classes, source and whether its first
  // document goes on from the shard before.
  ShardWriter(const Folder& folder, const ShardHeader& first) : folder_(folder), next_(first) {}

  // The next ids of the corpus. starts: a document starts with them; its label where there are labels. end: where the inputs are read
  // up to by now.
  void append(std::span<const int64_t> ids, bool starts, int32_t label, int64_t text_bytes, const InputPlace& end);
  int64_t tokens() const { return static_cast<int64_t>(ids_.size()) / next_.bytes_per_token; }  // in the shard at work

  // Writes what was collected as a shard, returns its header and starts the next one. Errors: the file cannot be written.
  ShardHeader write(bool is_last);

 private:
  const Folder& folder_;
  ShardHeader next_;
  std::string ids_;
  std::vector<uint64_t> starts_;
  std::vector<int32_t> labels_;
  bool starts_document_ = false;  // with the next ids, as those before gave none
};

// Reads the shards of a corpus, each at any place by one system call, so that memory does not grow with what was read. Safe from several
// threads. Errors: a shard was cut while it was in use, or is no longer what its layout tells.
class ShardFiles {
 public:
  struct Shard {
    std::string path;
    ShardLayout layout;
    std::shared_ptr<const OpenFile> file = {};  // held open, and its body was compared; none: the path is opened when it is used
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
