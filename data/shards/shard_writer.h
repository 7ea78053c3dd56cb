// Makes the shards of a corpus, one after the other: collects packed ids and documents until a shard is full, and writes it beside
// the others under a temporary name, syncs and renames it.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/folder.h"
#include "data/shards/shard_header.h"

namespace ricci {

// shard-00042.tokens
std::string shard_name(int64_t number);
// Whether a file is named so, with any number.
bool is_shard_name(std::string_view name);

// Bytes of an id: 2 up to 65,536 ids, else 4.
int64_t bytes_per_token(int64_t vocab_size);

class ShardWriter {
 public:
  // `first`: the header of the first shard to write: its number, tokenizer, vocabulary, classes, source and whether its first
  // document goes on from the shard before.
  ShardWriter(const Folder& folder, const ShardHeader& first) : folder_(folder), next_(first) {}

  // The next ids of the corpus. starts: a document starts with them; its label where there are labels. end: where the inputs are read
  // up to by now.
  void append(std::span<const int64_t> ids, bool starts, int32_t label, int64_t text_bytes, const InputPlace& end);
  int64_t tokens() const { return static_cast<int64_t>(ids_.size()) / next_.bytes_per_token; }  // of the shard at work

  // Writes what was collected as a shard, returns its header and starts the next one. Errors: those of writing files.
  ShardHeader write(bool is_last);

 private:
  const Folder& folder_;
  ShardHeader next_;
  std::string ids_;
  std::vector<uint64_t> starts_;
  std::vector<int32_t> labels_;
  bool starts_document_ = false;  // with the next ids, as those before gave none
};

}  // namespace ricci
