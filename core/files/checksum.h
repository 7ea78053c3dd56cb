// Hashes, none of them for secrets. The checksum of everything that ricci writes is XXH64 (libxxhash), several GB/s.
#pragma once
#include <cstdint>
#include <iterator>
#include <string_view>
#include <type_traits>

namespace ricci {

class File;

// The bytes of the values in memory.
template <class Values> std::string_view bytes_of(const Values& values) {
  static_assert(std::is_trivially_copyable_v<std::remove_cvref_t<decltype(*std::data(values))>>, "these bytes are not all of a value");
  return {reinterpret_cast<const char*>(std::data(values)), std::size(values) * sizeof *std::data(values)};
}

// A text in pieces: the hash of one piece is the seed of the next.
uint64_t xxh64(std::string_view bytes, uint64_t seed = 0);

// The XXH64 of the hashes of blocks of 256 KiB, because all threads compute it: of bytes in memory, or of the bytes [first, end) of a file.
// Bytes beyond the end of the file do not count.
uint64_t hash_of_blocks(std::string_view bytes);
uint64_t hash_of_file(const File& file, int64_t first, int64_t end);

// FNV-1a, 64 bits, because the names of caches, the streams of random numbers and the tokenizers of runs have always been known by it.
inline uint64_t hash_bytes(std::string_view bytes, uint64_t hash = 0xcbf29ce484222325u) {
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  return hash;
}

}  // namespace ricci
