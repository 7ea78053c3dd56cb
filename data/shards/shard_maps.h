// The shards of a corpus as memory maps: made when a shard is used, given back together when they may hold too much memory.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/files/file.h"
#include "data/shards/shard_header.h"

namespace ricci {

inline constexpr int64_t kMaxResident = 96 << 20;

// One shard, mapped.
class MappedShard {
 public:
  // Error: it is no longer what its layout tells.
  MappedShard(std::shared_ptr<const OpenFile> file, const ShardLayout& layout);

  // The ids [first, first + ids.size()). Errors: the file was cut; an id outside the vocabulary, which is `vocab_size` large.
  void read(int64_t first, std::span<int64_t> ids, int64_t vocab_size) const;
  // The first token of a document of a prepared shard. Error: the index is damaged.
  int64_t start(int64_t document) const;
  int64_t label(int64_t document) const;

 private:
  void check_uncut() const;
  std::shared_ptr<const OpenFile> file_;
  MappedFile map_;
  ShardLayout layout_;
};

// All shards of a corpus. Safe from several threads.
class ShardMaps {
 public:
  struct Shard {
    std::string path;
    ShardLayout layout;
    std::shared_ptr<const OpenFile> file = {};  // held open, and its body was compared; none: the path is opened when it is used
  };
  explicit ShardMaps(std::vector<Shard> shards) : shards_(std::move(shards)), checked_(shards_.size()) {}

  const std::vector<Shard>& shards() const { return shards_; }
  // The ids [first, first + ids.size()) of a shard: through its map; of a file that is held open by one system call, so that memory does
  // not grow with what was read. Errors: those of MappedShard::read.
  void read(size_t number, int64_t first, std::span<int64_t> ids, int64_t vocab_size);
  // The shard, for a use of so many bytes of its file from an offset on. The first use compares its body with its checksum.
  std::shared_ptr<const MappedShard> get(size_t number, int64_t offset, int64_t bytes);

 private:
  std::vector<Shard> shards_;
  std::mutex mutex_;
  struct Map {
    std::shared_ptr<const MappedShard> shard;
    std::vector<bool> touched;  // blocks of it that may be in memory
  };
  int64_t touch(Map& map, int64_t offset, int64_t bytes) const;
  void map(size_t number);

  std::map<size_t, Map> maps_;
  std::vector<bool> checked_;
  int64_t touched_ = 0;  // bytes of all maps that may be in memory
};

}  // namespace ricci
