// A corpus as prepared shards: its documents are read by one thread, encoded by all, and written in their order, so that the bytes
// do not depend on the number of threads. A later run continues behind the last sound shard.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/files/folder.h"
#include "data/shards/document_reader.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci {

struct PrepareOptions {
  DocumentOptions documents;
  // A shard ends with the piece of a document that brings it to so many; a labelled document is in one shard.
  int64_t shard_tokens = 16 << 20;
};

struct PrepareProgress {
  int64_t bytes_of_files = 0, tokens = 0;  // read; of all shards so far
};

struct Prepared {
  int64_t shards = 0, tokens = 0, documents = 0, text_bytes = 0;
  int64_t found = 0;         // shards that were there already
  int64_t first_shards = 0;  // shards of ShardOptions::first_documents
};

// The way in which documents are cut into shards.
struct ShardOptions {
  int64_t shard_tokens;
  bool whole_documents;         // each in one shard
  int64_t first_documents = 0;  // a shard ends behind so many; 0: anywhere
};

// The header of the first shard of a corpus.
ShardHeader header_of(const Tokenizer& tokenizer, uint64_t source_hash, int64_t classes);

// Writes the documents as shards, from the number of this header on, and adds them to `all`. The reader reads these files.
// Errors: in reading, encoding and writing; a file that changed meanwhile; no tokens.
void write_shards(PieceReader& reader, const TextSource& files, const Tokenizer& tokenizer, const Folder& folder, const ShardHeader& first,
    const ShardOptions& options, Prepared& all, const std::function<void(const PrepareProgress&)>& progress = {});

// Writes tokenizer.json. Error: there is another.
void write_tokenizer(const Folder& folder, const Tokenizer& tokenizer);

// The tokenizer whose vocabulary is the characters of the documents. Errors: they cannot be read; no characters.
std::shared_ptr<const Tokenizer> char_tokenizer_of(const TextSource& files, const DocumentOptions& options);

// Writes tokenizer.json and the shards into the folder; sound shards that are there are kept, a damaged one and those behind it
// made again.
// Errors: in reading, encoding and writing; the folder holds shards of other inputs, settings or tokenizer, whatever their
// numbers, or another program is preparing shards in it; no tokens.
Prepared prepare_shards(const TextSource& files, const Tokenizer& tokenizer, const Folder& folder, const PrepareOptions& options,
    const std::function<void(const PrepareProgress&)>& progress = {});

}  // namespace ricci
