#include "cuda/emulator/memory/read_only.h"

#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>

#include "core/error.h"
#include "cuda/emulator/block.h"

namespace emu {
namespace {

struct Load {
  unsigned char value[16];
  size_t bytes;
  const char* name;
  Loc loc;
  uint3 thread, block;
};

struct Records {
  std::mutex mutex;
  std::map<const Launch*, std::unordered_map<const unsigned char*, Load>> loads;  // by address
};

Records& records() {
  static Records& records = *new Records;
  return records;
}

}  // namespace

void note_read_only(const char* name, const void* p, size_t bytes, Loc loc) {
  Quiet quiet;
  Load load{{}, bytes, name, loc, threadIdx, blockIdx};
  std::memcpy(load.value, p, bytes);
  const std::lock_guard lock(records().mutex);
  const auto [known, added] = records().loads[&current_block->launch()].emplace(static_cast<const unsigned char*>(p), load);
  Load& longest = known->second;
  if (added || longest.bytes >= bytes) return;
  std::memcpy(load.value, longest.value, longest.bytes);  // as they were at the first load
  longest = load;
}

ReadOnlyLoads::~ReadOnlyLoads() {
  const std::lock_guard lock(records().mutex);
  records().loads.erase(&launch_);
}

void ReadOnlyLoads::check(const std::function<bool(const unsigned char* data, size_t bytes)>& written) const {
  const std::lock_guard lock(records().mutex);
  const auto found = records().loads.find(&launch_);
  if (found == records().loads.end()) return;
  for (const auto& [data, load] : found->second)
    if (std::memcmp(data, load.value, load.bytes) != 0 || written(data, load.bytes))
      ricci::fail(
          "{}: thread {} of block {}: {} at {}: the launch writes these {} bytes, expected that it only reads them (launched at {})",
          {launch_.name, position(load.thread, launch_.block), position(load.block, launch_.grid), load.name, describe(load.loc),
              load.bytes, describe(launch_.loc)});
}

}  // namespace emu
