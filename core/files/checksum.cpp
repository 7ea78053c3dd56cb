// Computes hashes of blocks on all threads. The blocks have a fixed size, so the hash does not depend on the number of threads.
#include "core/files/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/cpu/parallel.h"
#include "core/files/file.h"

namespace ricci {
namespace {

constexpr int64_t kBlock = 1 << 18;

// hash(from, bytes) returns the hash of a block.
template <class Hash> uint64_t hash_of_hashes(int64_t bytes, const Hash& hash) {
  const int64_t blocks = (std::max<int64_t>(bytes, 0) + kBlock - 1) / kBlock;
  std::vector<uint64_t> hashes(static_cast<size_t>(blocks));
  parallel_for(blocks, 1, [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i)
      hashes[static_cast<size_t>(i)] = hash(i * kBlock, static_cast<size_t>(std::min(kBlock, bytes - i * kBlock)));
  });
  return xxh64(bytes_of(hashes));
}

}  // namespace

uint64_t xxh64(std::string_view bytes, uint64_t seed) { return XXH64(bytes.data(), bytes.size(), seed); }

uint64_t hash_of_blocks(std::string_view bytes) {
  return hash_of_hashes(
      std::ssize(bytes), [&](int64_t from, size_t count) { return xxh64(bytes.substr(static_cast<size_t>(from), count)); });
}

uint64_t hash_of_file(const File& file, int64_t first, int64_t end) {
  return hash_of_hashes(end - first, [&](int64_t from, size_t count) {
    std::string block(count, '\0');
    return xxh64(std::string_view(block).substr(0, file.read(block.data(), count, first + from)));
  });
}

}  // namespace ricci
