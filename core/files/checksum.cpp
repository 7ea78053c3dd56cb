#include "core/files/checksum.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/cpu/parallel.h"
#include "core/files/file.h"

namespace ricci {
namespace {

constexpr size_t kBlock = 1 << 18;

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u, kPrime2 = 0xC2B2AE3D27D4EB4Fu, kPrime3 = 0x165667B19E3779F9u,
                   kPrime4 = 0x85EBCA77C2B2AE63u, kPrime5 = 0x27D4EB2F165667C5u;

template <class Word> uint64_t read(const char* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

uint64_t round(uint64_t lane, uint64_t word) { return std::rotl(lane + word * kPrime2, 31) * kPrime1; }
uint64_t merge(uint64_t hash, uint64_t lane) { return (hash ^ round(0, lane)) * kPrime1 + kPrime4; }

// Four lanes over whole blocks of 32 bytes, merged; moves `at` behind them.
uint64_t hash_blocks(const char*& at, const char* end, uint64_t seed) {
  uint64_t a = seed + kPrime1 + kPrime2, b = seed + kPrime2, c = seed, d = seed - kPrime1;
  for (; end - at >= 32; at += 32) {
    a = round(a, read<uint64_t>(at));
    b = round(b, read<uint64_t>(at + 8));
    c = round(c, read<uint64_t>(at + 16));
    d = round(d, read<uint64_t>(at + 24));
  }
  const uint64_t sum = std::rotl(a, 1) + std::rotl(b, 7) + std::rotl(c, 12) + std::rotl(d, 18);
  return merge(merge(merge(merge(sum, a), b), c), d);
}

}  // namespace

uint64_t xxh64(std::string_view bytes, uint64_t seed) {
  const char *at = bytes.data(), *const end = at + bytes.size();
  uint64_t hash = bytes.size() < 32 ? seed + kPrime5 : hash_blocks(at, end, seed);
  hash += bytes.size();
  for (; end - at >= 8; at += 8) hash = std::rotl(hash ^ round(0, read<uint64_t>(at)), 27) * kPrime1 + kPrime4;
  for (; end - at >= 4; at += 4) hash = std::rotl(hash ^ read<uint32_t>(at) * kPrime1, 23) * kPrime2 + kPrime3;
  for (; at < end; ++at) hash = std::rotl(hash ^ read<uint8_t>(at) * kPrime5, 11) * kPrime1;
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

namespace {

uint64_t hash_of_hashes(const std::vector<uint64_t>& hashes) {
  return xxh64({reinterpret_cast<const char*>(hashes.data()), hashes.size() * sizeof(uint64_t)});
}

}  // namespace

void BlockHash::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t step = std::min(bytes.size(), kBlock - block_.size());
    block_.append(bytes.substr(0, step));
    bytes.remove_prefix(step);
    if (block_.size() < kBlock) return;
    hashes_.push_back(xxh64(block_));
    block_.clear();
  }
}

uint64_t BlockHash::finish() {
  if (!block_.empty()) hashes_.push_back(xxh64(block_));
  return hash_of_hashes(hashes_);
}

uint64_t hash_of_file(const OpenFile& file, int64_t first, int64_t end) {
  const int64_t block = kBlock, blocks = (std::max<int64_t>(end - first, 0) + block - 1) / block;
  std::vector<uint64_t> hashes(static_cast<size_t>(blocks));
  parallel_for(blocks, 1, [&](int64_t first_block, int64_t end_block) {
    std::string bytes(kBlock, '\0');
    for (int64_t i = first_block; i < end_block; ++i) {
      const int64_t from = first + i * block;
      const auto wanted = static_cast<size_t>(std::min(block, end - from));
      hashes[static_cast<size_t>(i)] = xxh64(std::string_view(bytes).substr(0, file.read(bytes.data(), wanted, from)));
    }
  });
  return hash_of_hashes(hashes);
}

}  // namespace ricci
