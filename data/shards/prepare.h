// Documents as prepared shards, for ricci-prepare and for the cache: they are read by one thread, encoded by all, and written in their
// order, because the bytes of the shards must not depend on the number of threads. A later run continues after the last sound shard.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "data/formats/documents.h"
#include "data/shards/shard.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci {

struct PrepareProgress {
  int64_t bytes_of_files = 0, tokens = 0;  // read; of all shards so far
};

struct PrepareOptions {
  // A shard ends with the piece of a document that fills it; a record is in one shard.
  int64_t shard_tokens = 16 << 20;
  uint64_t source_hash = 0;  // identity_of(), or another number that changes with the inputs and settings
  bool replaces = false;     // the caller has the folder's lock, and what it holds of other inputs is replaced; else that is an error
  std::function<void(const PrepareProgress&)> progress = {};
};

struct Prepared {
  int64_t shards = 0, tokens = 0, documents = 0, text_bytes = 0;
  int64_t found = 0;            // shards that were there already
  int64_t empty_documents = 0;  // documents without tokens, which no shard holds; of the shards written now
  void add(const ShardHeader& written);
};

// A hash of all that the bytes of the shards depend on. Reads the files.
uint64_t identity_of(const Documents& documents, const Tokenizer& tokenizer, int64_t shard_tokens);

// Writes tokenizer.json and the shards into the folder; sound shards that are there are kept, a damaged one and those after it
// made again. Each shard is written under a temporary name, synced and renamed.
// Errors: in reading, encoding and writing; the folder holds a tokenizer or shards of other inputs or settings, or another program is
// preparing shards in it; files that changed meanwhile; no tokens.
Prepared prepare_shards(const Documents& documents, const std::shared_ptr<const Tokenizer>& tokenizer, const std::string& folder,
    const PrepareOptions& options);

// Reads files of ids, two bytes each, the lower one first, in the place of texts, as nanoGPT's train.bin has them; they are ids of the
// tokenizer. Errors, in reading: an id outside its vocabulary, half an id.
std::shared_ptr<const Tokenizer> reader_of_ids(std::shared_ptr<const Tokenizer> tokenizer);

}  // namespace ricci
