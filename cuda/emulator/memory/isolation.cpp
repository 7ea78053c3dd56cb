// Blocks run one after another on the same memory. After each block, its changed bytes are moved to `after` and the old values are
// restored, so the next block does not see the changes.
#include "cuda/emulator/memory/isolation.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cuda/emulator/emulator.h"
#include "cuda/emulator/fiber.h"
#include "cuda/emulator/memory/device_memory.h"

namespace emu {

constinit thread_local Isolation* isolation = nullptr;

Isolation::Isolation() {
  for_each_allocation([&](unsigned char* data, size_t bytes) { regions_.push_back({data, bytes, {data, data + bytes}, {}, {}, {}}); });
}

void Isolation::begin_block(uint64_t block) { block_ = static_cast<uint32_t>(block + 1); }

// Notes that the running block has changed a byte that a different block also wrote.
void Isolation::note_race(const Region& region, size_t i, uint32_t other) {
  if (!race_.bytes) race_ = {other - 1, i, region.bytes};
}

// Notes a byte that was changed without an atomic.
void Isolation::note_unordered(const Region& region, size_t i) {
  if (region.writer[i] != kNobody) note_race(region, i, region.writer[i]);
  if (ordered_) return;
  if (region.fenced[i] != kNobody && region.fenced[i] != block_) note_race(region, i, region.fenced[i]);
  const auto word = atomic_words_.find(reinterpret_cast<uintptr_t>(region.data + i) / 4);
  if (word != atomic_words_.end() && word->second != block_) note_race(region, i, word->second);
}

void Isolation::keep_writers(Region& region) {
  if (!region.after.empty()) return;
  region.after = region.before;
  region.writer.assign(region.bytes, kNobody);
  region.fenced.assign(region.bytes, kNobody);
}

void Isolation::show_to_all(Region& region, size_t i) {
  keep_writers(region);
  const bool atomic = own_words_.contains(reinterpret_cast<uintptr_t>(region.data + i) / 4);
  if (!atomic) note_unordered(region, i);
  else if (region.writer[i] != kNobody) note_race(region, i, region.writer[i]);
  region.before[i] = region.after[i] = region.data[i];
  region.writer[i] = kNobody;
  region.fenced[i] = block_;
}

// Calls f(i) for each byte that differs from its value before the launch.
template <class F> void Isolation::for_changed_bytes(const Region& region, F f) {
  constexpr size_t kAtOnce = 256;
  for (size_t first = 0; first < region.bytes; first += kAtOnce) {
    const size_t end = std::min(first + kAtOnce, region.bytes);
    if (!std::memcmp(region.data + first, region.before.data() + first, end - first)) continue;
    for (size_t i = first; i < end; ++i)
      if (region.data[i] != region.before[i]) f(i);
  }
}

void Isolation::atomic(const void* p, size_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(p);
  for (uintptr_t word = address / 4; word * 4 < address + bytes; ++word) {
    uint32_t& last = atomic_words_[word];
    ordered_ |= last != kNobody && last != block_;
    last = block_;
    own_words_.insert(word);
  }
}

void Isolation::fence() {
  for (Region& region : regions_) for_changed_bytes(region, [&](size_t i) { show_to_all(region, i); });
}

Isolation::Race Isolation::end_block() {
  for (Region& region : regions_)
    for_changed_bytes(region, [&](size_t i) {
      if (own_words_.contains(reinterpret_cast<uintptr_t>(region.data + i) / 4)) return show_to_all(region, i);
      keep_writers(region);
      note_unordered(region, i);
      region.after[i] = region.data[i];
      region.writer[i] = block_;
      region.data[i] = region.before[i];
    });
  own_words_.clear();
  ordered_ = false;
  return std::exchange(race_, {});
}

void Isolation::end_launch() {
  for (const Region& region : regions_)
    if (!region.after.empty()) std::memcpy(region.data, region.after.data(), region.bytes);
}

void note_atomic(const void* p, size_t bytes) {
  Quiet quiet;
  if (isolation) isolation->atomic(p, bytes);
}

void show_writes_to_all_blocks() {
  Quiet quiet;
  if (isolation) isolation->fence();
}

}  // namespace emu
