// A shard is a file with a part of a tokenized corpus. An interrupted ricci prepare loses only the last shard. Two formats are read.
//
// Prepared shards, little-endian:
//   ShardHeader, 128 bytes
//   the ids as u16, or as u32 if the vocabulary exceeds 65,536; zeros up to a multiple of 8 bytes
//   version 2, for documents with a mask: a bit per token, the lowest bit of a byte first, set if the token is scored; zeros as above
//   document index: for each document the position of its first token in this shard, as u64
//   if documents have labels: an i32 per document
// llm.c shards (dev/data/data_common.py): 256 i32 that start with magic, version and number of tokens; then the ids: u16 with magic
// 20240520 and version 1 (GPT-2), u32 with magic 20240801 and version 7 (Llama 3).
#pragma once
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/files/file.h"
#include "data/formats/documents.h"

namespace ricci {

// The tokens [first, end) of a shard, or of a corpus.
struct TokenSpan {
  int64_t first = 0, end = 0;
  int64_t size() const { return end - first; }
};

struct ShardHeader {
  char magic[8] = {'R', 'I', 'C', 'C', 'I', 'S', 'H', 'D'};
  uint32_t version = 1;  // 0 for an llm.c shard: only members that follow from its contents are set
  uint32_t bytes_per_token = 0;
  int64_t vocab_size = 0;
  uint64_t tokenizer_hash = 0;
  uint64_t source_hash = 0;  // inputs and settings: equal in all shards of a corpus
  int64_t number = 0;        // shard index, from 0
  int64_t tokens = 0;
  int64_t documents = 0;
  int64_t text_bytes = 0;
  InputPlace end;                         // the next shard starts here
  uint32_t is_last = 0;                   // 1 for the last shard
  uint16_t first_document_continues = 0;  // the first document started in the previous shard
  uint16_t after_cut = 0;                 // the tokens belong to the validation part of a text
  int64_t classes = 0;                    // labels are 0 ... classes - 1; 0 without labels
  uint64_t body_hash = 0;                 // hash_of_file of everything after the header
  uint64_t own_hash = 0;                  // hash of everything above

  uint64_t hash() const;
  bool is_prepared() const { return version > 0; }
  bool has_mask() const { return version == 2; }
  int64_t mask_offset() const { return static_cast<int64_t>(sizeof *this) + (tokens * bytes_per_token + 7) / 8 * 8; }
  int64_t index_offset() const { return mask_offset() + (has_mask() ? (tokens + 63) / 64 * 8 : 0); }
  int64_t labels_offset() const { return index_offset() + documents * 8; }
  int64_t file_bytes() const { return labels_offset() + (classes > 0 ? documents * 4 : 0); }
};
static_assert(sizeof(ShardHeader) == 128);

// An open shard. Each read is one system call; nothing is kept in memory. Multiple threads can read at the same time.
class ShardFile {
 public:
  // Checks the header and the file length. An llm.c shard has no checksum, so it is read completely for body_hash. Errors: the file is not
  // a shard, or has the wrong version, a damaged header or the wrong length.
  explicit ShardFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const ShardHeader& header() const { return header_; }
  // Compares the body of a prepared shard with its checksum, as the first read does. Error: the checksum is wrong.
  void check_body() const;

  // Reads the ids [first, first + ids.size()). Errors: an id is outside the vocabulary; the shard was cut short while in use.
  void read(int64_t first, std::span<int64_t> ids, int64_t vocab_size) const;
  // Writes 1 for each scored token, and 0 for the others.
  void read_counts(int64_t first, std::span<uint8_t> counts) const;
  // An llm.c shard has no index: its documents are blocks of kBlock tokens.
  static constexpr int64_t kBlock = 4096;
  TokenSpan document(int64_t number) const;
  int64_t label(int64_t document) const;  // -1 without labels

 private:
  void read_llmc_header(int32_t version, int64_t bytes_per_token);
  void check_size(int64_t expected) const;
  void read_at(int64_t place, void* target, size_t bytes) const;

  File file_;
  ShardHeader header_;
  mutable std::atomic<bool> is_checked_ = false;
};

// True if the file starts with the magic number of either format.
bool is_shard(const File& file);

// A name such as shard-00042.tokens.
std::string shard_name(int64_t number);
bool is_shard_name(std::string_view name);

}  // namespace ricci
