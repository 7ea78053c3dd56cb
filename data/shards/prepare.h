// Writes documents as prepared shards, for ricci prepare and for the cache. One thread reads, all threads encode, and the shards are
// written in order. A later call continues after the last intact shard.
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
  int64_t bytes_of_files = 0, tokens = 0;  // bytes read so far; tokens in all shards so far
};

struct PrepareOptions {
  int64_t shard_tokens = 16 << 20;  // a shard ends with the piece that reaches this number; a record is never divided
  int64_t growth = 0;               // each shard has this many tokens more than the previous
  uint64_t source_hash = 0;         // hash_inputs(), or another value that changes with the inputs and settings
  bool replaces = false;            // replaces shards of other inputs; the caller holds the folder lock
  std::function<void(const PrepareProgress&)> progress = {};
};

struct Prepared {
  int64_t shards = 0, tokens = 0, documents = 0, text_bytes = 0;
  int64_t found = 0;            // shards from an earlier call
  int64_t empty_documents = 0;  // documents without tokens, omitted from the shards by this call
  void add(const ShardHeader& written);
};

uint64_t hash_of(const DocumentOptions& options);
// A hash of everything that the bytes of the shards depend on, such as the files' contents, but not of their paths. Reads the files.
uint64_t hash_inputs(const Documents& documents, const Tokenizer& tokenizer, int64_t shard_tokens);

// Writes tokenizer.json, labels.json if the classes have names, and the shards into the folder. Keeps existing shards up to the first
// damaged one. Errors: reading, encoding or writing fails; the folder has a tokenizer or shards with different inputs or settings, or
// another program is preparing shards in it; a file changed during the call; the documents have no tokens.
Prepared prepare_shards(const Documents& documents, const std::shared_ptr<const Tokenizer>& tokenizer, const std::string& folder,
    const PrepareOptions& options);

}  // namespace ricci
