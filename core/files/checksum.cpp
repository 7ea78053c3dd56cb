#include "core/files/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

#include "core/cpu/parallel.h"
#include "core/files/file.h"

namespace ricci {
namespace {

constexpr size_t kBlock = 1 << 18;

uint64_t hash_of_hashes(const std::vector<uint64_t>& hashes) {
  return xxh64({reinterpret_cast<const char*>(hashes.data()), hashes.size() * sizeof(uint64_t)});
}

}  // namespace

uint64_t xxh64(std::string_view bytes, uint64_t seed) { return XXH64(bytes.data(), bytes.size(), seed); }

struct StreamHash::State : XXH64_state_t {};

StreamHash::StreamHash(uint64_t seed) : state_(std::make_unique<State>()) { XXH64_reset(state_.get(), seed); }
StreamHash::~StreamHash() = default;
void StreamHash::add(std::string_view bytes) { XXH64_update(state_.get(), bytes.data(), bytes.size()); }
uint64_t StreamHash::finish() const { return XXH64_digest(state_.get()); }

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
