// A corpus as prepared shards: its documents are read by one thread, encoded by all, and written in their order, so that the bytes
// do not depend on the number of threads. A later run continues after the last sound shard.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/files/folder.h"
#include "data/shards/document_reader.h"
#include "data/shards/shard.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci {

struct PrepareOptions {
  DocumentOptions documents;
  // A shard ends with the piece of a document that fills it; a labelled document is in one shard.
  int64_t shard_tokens = 16 << 20;
};

// Writes tokenizer.json. Error: there is another.
void write_tokenizer(const Folder& folder, const Tokenizer& tokenizer);

// Reads files of ids, two bytes each, the lower one first, in the place of texts, as nanoGPT's train.bin has them; they are ids of the
// tokenizer. Errors, in reading: an id outside its vocabulary, half an id.
std::shared_ptr<const Tokenizer> reader_of_ids(std::shared_ptr<const Tokenizer> tokenizer);

// Writes tokenizer.json and the shards into the folder; sound shards that are there are kept, a damaged one and those after it
// made again.
// Errors: in reading, encoding and writing; the folder holds shards of other inputs, settings or tokenizer, whatever their
// numbers, or another program is preparing shards in it; no tokens.
Prepared prepare_shards(const TextSource& files, const Tokenizer& tokenizer, const Folder& folder, const PrepareOptions& options,
    const std::function<void(const PrepareProgress&)>& progress = {});

}  // namespace ricci
