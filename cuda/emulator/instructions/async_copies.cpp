#include "cuda/emulator/instructions/async_copies.h"

#include <algorithm>
#include <cstring>

#include "cuda/emulator/block.h"

namespace emu {

void AsyncCopies::begin(void* target, const void* source, size_t bytes, size_t source_bytes, Loc loc) {
  std::memset(target, 0xff, bytes);
  Quiet quiet;
  copies_.push_back({target, source, bytes, source_bytes, groups_, loc});
}

void AsyncCopies::wait(unsigned groups_left) {
  if (groups_ > groups_left) arrive(groups_ - groups_left);
}

void AsyncCopies::arrive(unsigned groups) {
  std::vector<Copy> arrived;
  {
    Quiet quiet;
    const auto end = std::find_if(copies_.begin(), copies_.end(), [=](const Copy& copy) { return copy.group >= groups; });
    arrived.assign(copies_.begin(), end);
    copies_.erase(copies_.begin(), end);
    if (!arrived.empty()) current_block->copies_arrived();
  }
  for (const Copy& copy : arrived) {
    std::memcpy(copy.target, copy.source, copy.source_bytes);
    std::memset(static_cast<char*>(copy.target) + copy.source_bytes, 0, copy.bytes - copy.source_bytes);
  }
}

}  // namespace emu
