#include "data/shards/shard_writer.h"

#include <cstring>

#include "core/error.h"
#include "core/files/checksum.h"
#include "core/files/file.h"

namespace ricci {
namespace {

template <class T> std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// Appends ids as a shard holds them.
template <class Id> void pack(std::span<const int64_t> ids, std::string& packed) {
  const size_t before = packed.size();
  packed.resize(before + ids.size() * sizeof(Id));
  char* to = packed.data() + before;
  for (const int64_t id : ids) {
    const auto narrow = static_cast<Id>(id);
    std::memcpy(to, &narrow, sizeof narrow);
    to += sizeof narrow;
  }
}

}  // namespace

std::string shard_name(int64_t number) { return format_message("shard-{:05}.tokens", {number}); }

bool is_shard_name(std::string_view name) { return name.starts_with("shard-") && name.ends_with(".tokens"); }

int64_t bytes_per_token(int64_t vocab_size) { return vocab_size <= 65536 ? 2 : 4; }

// The rest of a document whose start is in the shard before is listed as a document of this shard, under the same label.
void ShardWriter::append(std::span<const int64_t> ids, bool starts, int32_t label, int64_t text_bytes, const InputPlace& end) {
  starts_document_ |= starts;
  if (!ids.empty()) {
    if (!starts_document_ && ids_.empty()) next_.goes_on = 1;
    if (starts_document_ || ids_.empty()) {
      starts_.push_back(static_cast<uint64_t>(tokens()));
      labels_.push_back(label);
    }
    starts_document_ = false;
    next_.bytes_per_token == 2 ? pack<uint16_t>(ids, ids_) : pack<uint32_t>(ids, ids_);
  }
  next_.text_bytes += text_bytes;
  next_.end = end;
}

ShardHeader ShardWriter::write(bool is_last) {
  next_.tokens = tokens();
  next_.documents = static_cast<int64_t>(starts_.size());
  next_.is_last = is_last;
  ids_.resize(static_cast<size_t>(next_.index_offset()) - sizeof next_, '\0');
  const std::string_view labels = next_.classes > 0 ? bytes_of(labels_) : std::string_view();
  BlockHash hash;
  for (const std::string_view part : {std::string_view(ids_), bytes_of(starts_), labels}) hash.add(part);
  next_.body_hash = hash.finish();
  next_.own_hash = next_.hash();
  write_file_atomically(FilePlace(folder_, shard_name(next_.number)), [&](FileWriter& file) {
    for (const std::string_view part :
        {std::string_view(reinterpret_cast<const char*>(&next_), sizeof next_), std::string_view(ids_), bytes_of(starts_), labels})
      file.write(part);
  });
  const ShardHeader written = next_;
  ids_.clear();
  starts_.clear();
  labels_.clear();
  ++next_.number;
  next_.text_bytes = 0;
  next_.goes_on = 0;
  return written;
}

}  // namespace ricci
