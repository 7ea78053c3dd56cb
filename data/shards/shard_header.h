// A shard: a file with a part of a tokenised corpus. Two formats are read.
//
// Prepared shards (written by shard_writer.h), little-endian:
//   ShardHeader, 128 bytes
//   the ids as u16, or as u32 where the vocabulary exceeds 65,536; then zeros up to a multiple of 8 bytes
//   the document index: for each document the token of this shard that it starts with, as u64
//   where documents have labels: one i32 for each
// Shards of llm.c (dev/data/data_common.py): 256 i32, of which the first three are magic, version and number of tokens, then the
// ids: u16 with magic 20240520 and version 1 (GPT-2), u32 with magic 20240801 and version 7 (Llama 3).
#pragma once
#include <cstdint>
#include <string>

#include "core/files/file.h"

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
  uint64_t source_hash = 0;  // of inputs and settings: equal in all shards of one corpus
  int64_t number = 0;        // of the shard, from 0
  int64_t tokens = 0;
  int64_t documents = 0;
  int64_t text_bytes = 0;
  InputPlace end;          // where the next shard goes on
  uint32_t is_last = 0;    // of its corpus
  uint32_t goes_on = 0;    // the first document here is the rest of the last one of the shard before
  int64_t classes = 0;     // labels are 0 ... classes - 1; 0: there are none
  uint64_t body_hash = 0;  // hash_of_file of everything behind the header
  uint64_t own_hash = 0;   // of everything above

  uint64_t hash() const;
  int64_t index_offset() const { return static_cast<int64_t>(sizeof *this) + (tokens * bytes_per_token + 7) / 8 * 8; }
  int64_t labels_offset() const { return index_offset() + documents * 8; }
  int64_t file_bytes() const { return labels_offset() + (classes > 0 ? documents * 4 : 0); }
};
static_assert(sizeof(ShardHeader) == 128);

// Where a shard of either format holds what.
struct ShardLayout {
  bool is_prepared = false;
  int64_t tokens = 0, bytes_per_token = 0, ids_offset = 0;
  ShardHeader header = {};  // of a prepared shard
};

// Whether a file starts with the magic number of either format.
bool is_shard(const OpenFile& file);

// Reads and checks the header, and that the file is as long as it tells. The body is not read: check_shard_body().
// Errors name the file: not a shard, of another version, a damaged header, cut short or continued.
ShardLayout read_shard_header(const OpenFile& file);

// Compares the body of a prepared shard with its checksum. Error: it was altered.
void check_shard_body(const OpenFile& file, const ShardHeader& header);

}  // namespace ricci
