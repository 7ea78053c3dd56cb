#include "cuda/emulator/memory/isolation.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cuda/emulator/block.h"

namespace emu {

constinit thread_local Isolation* isolation = nullptr;

Isolation::Isolation() {
  for_each_allocation([&](unsigned char* data, size_t bytes) { regions_.push_back({data, bytes, {data, data + bytes}, {}, {}}); });
}

// The block that runs has changed what an earlier one wrote without a fence.
void Isolation::note_race(const Region& region, size_t i) {
  if (!race_.bytes) race_ = {region.writer[i] - 1, i, region.bytes};
}

void Isolation::show_to_all(Region& region, size_t i) {
  region.before[i] = region.data[i];
  if (region.after.empty()) return;
  if (region.writer[i] != kNobody) note_race(region, i);
  region.after[i] = region.data[i];
  region.writer[i] = kNobody;
}

// Calls f(i) for each byte that is not what it was before the launch.
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
  const auto at = reinterpret_cast<uintptr_t>(p);
  for (uintptr_t word = at / 4; word * 4 < at + bytes; ++word) atomic_words_.insert(word);
}

void Isolation::fence() {
  for (Region& region : regions_) for_changed_bytes(region, [&](size_t i) { show_to_all(region, i); });
}

Isolation::Race Isolation::end_block(uint64_t block) {
  for (Region& region : regions_)
    for_changed_bytes(region, [&](size_t i) {
      if (atomic_words_.contains(reinterpret_cast<uintptr_t>(region.data + i) / 4)) return show_to_all(region, i);
      if (region.after.empty()) {
        region.after = region.before;
        region.writer.assign(region.bytes, kNobody);
      }
      if (region.writer[i] != kNobody) note_race(region, i);
      region.after[i] = region.data[i];
      region.writer[i] = static_cast<uint32_t>(block + 1);
      region.data[i] = region.before[i];
    });
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
