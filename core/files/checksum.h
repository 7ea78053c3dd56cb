// Hashes, none of them for secrets. XXH64 (libxxhash), several GB/s, finds out whether the bytes of a file are the ones that were written.
#pragma once
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ricci {

class OpenFile;

// The bytes of the values in memory.
template <class Values> std::string_view bytes_of(const Values& values) {
  static_assert(std::is_trivially_copyable_v<std::remove_cvref_t<decltype(*std::data(values))>>, "these bytes are not all of a value");
  return {reinterpret_cast<const char*>(std::data(values)), std::size(values) * sizeof *std::data(values)};
}

// FNV-1a, 64 bits: names cache files, recognises changed inputs, gives a random stream to a name.
inline uint64_t hash_bytes(std::string_view bytes, uint64_t hash = 0xcbf29ce484222325u) {
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  return hash;
}

// The hash of the bytes. A text in pieces: the hash of one piece is the seed of the next.
uint64_t xxh64(std::string_view bytes, uint64_t seed = 0);

// xxh64 of bytes that come in pieces of any length.
class StreamHash {
 public:
  explicit StreamHash(uint64_t seed = 0);
  ~StreamHash();
  void add(std::string_view bytes);
  uint64_t finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The hash of bytes that come in pieces of any length. It is a hash of the hashes of blocks of 256 KiB, so that several threads can
// compute it for a file.
class BlockHash {
 public:
  void add(std::string_view bytes);
  uint64_t finish();

 private:
  std::string block_;  // the last one, which is not full yet
  std::vector<uint64_t> hashes_;
};

// The same of the bytes [first, end) of a file, on all threads of parallel_for. Bytes beyond the end of the file count as none.
uint64_t hash_of_file(const OpenFile& file, int64_t first, int64_t end);

}  // namespace ricci
