// Non-cryptographic hashes. All files of ricci have an XXH64 checksum (libxxhash). Checking a checkpoint takes less time than
// reading it.
#pragma once
#include <cstdint>
#include <iterator>
#include <string_view>
#include <type_traits>

namespace ricci {

class File;

// The values as bytes.
template <class Values> std::string_view bytes_of(const Values& values) {
  static_assert(std::is_trivially_copyable_v<std::remove_cvref_t<decltype(*std::data(values))>>, "the values must be trivially copyable");
  return {reinterpret_cast<const char*>(std::data(values)), std::size(values) * sizeof *std::data(values)};
}

// For a text in parts, the hash of one part is the seed for the next part.
uint64_t xxh64(std::string_view bytes, uint64_t seed = 0);

// The XXH64 of the XXH64 hashes of all 256 KiB blocks, computed on all threads. The data are bytes in memory, or those bytes in [first,
// end) that the file contains.
uint64_t hash_of_blocks(std::string_view bytes);
uint64_t hash_of_file(const File& file, int64_t first, int64_t end);

// FNV-1a, 64 bits, for cache names, random number streams and tokenizer hashes.
inline uint64_t hash_bytes(std::string_view bytes, uint64_t hash = 0xcbf29ce484222325u) {
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  return hash;
}

}  // namespace ricci
