// One allocation contains all variables of a block. The allocation is poisoned or filled before each block. Values of the previous block
// would hide a missing write.
#include "cuda/emulator/memory/shared_memory.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "core/error.h"
#include "cuda/emulator/block.h"
#include "cuda/emulator/memory/red_zone.h"

namespace emu {
namespace {

constexpr size_t kRedZone = 128, kAlign = 128, kBaseAlign = 1024, kMaxVariables = 256;

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

SharedMemory::~SharedMemory() { reserve(0); }

void SharedMemory::reserve(size_t bytes) {
  if (memory_) {
#if RICCI_ASAN
    __asan_unpoison_memory_region(memory_, reserved_);
#endif
    std::free(memory_);
    memory_ = nullptr;
  }
  reserved_ = round_up(bytes, kBaseAlign);
  if (!reserved_) return;
  memory_ = static_cast<unsigned char*>(std::aligned_alloc(kBaseAlign, reserved_));
  if (!memory_) throw std::bad_alloc();
}

void SharedMemory::begin_block(size_t dynamic_bytes) {
  const size_t needed = dynamic_bytes + kMaxStaticBytes + (kRedZone + kAlign) * kMaxVariables;
  // ThreadSanitizer forgets the accesses of the previous block only if the memory is freed.
  if (RICCI_TSAN || reserved_ < needed) reserve(needed);
  variables_.clear();
  static_bytes_ = top_ = 0;
  dynamic_bytes_ = dynamic_bytes;
#if RICCI_ASAN
  __asan_poison_memory_region(memory_, reserved_);
#endif
  variables_.push_back({nullptr, "dynamic shared memory", memory_, dynamic_bytes});
  open(memory_, dynamic_bytes);
}

void SharedMemory::open(unsigned char* data, size_t bytes) {
  top_ = round_up(top_ + bytes + kRedZone, kAlign);
#if RICCI_ASAN
  __asan_unpoison_memory_region(data, bytes);
#else
  fill_red_zone(data + bytes, kRedZone);
#endif
  std::memset(data, 0xff, bytes);
}

void* SharedMemory::variable(const void* key, const char* name, size_t bytes) {
  for (const Variable& v : variables_)
    if (v.key == key) return v.data;
  const size_t total = static_bytes_ + round_up(bytes, 16);
  if (total > kMaxStaticBytes || total + dynamic_bytes_ > kMaxBytes || variables_.size() == kMaxVariables) return nullptr;
  static_bytes_ = total;
  unsigned char* data = memory_ + top_;
  variables_.push_back({key, name, data, bytes});
  open(data, bytes);
  return data;
}

bool SharedMemory::contains(const void* p, size_t bytes) const {
  const auto address = static_cast<const unsigned char*>(p);
  for (const Variable& v : variables_)
    if (address >= v.data && address + bytes <= v.data + v.bytes) return true;
  return false;
}

void SharedMemory::copy_to(std::vector<unsigned char>& bytes) const {
  bytes.assign(top_, 0);
  for (const Variable& v : variables_) std::memcpy(bytes.data() + (v.data - memory_), v.data, v.bytes);
}

SharedMemory::Damage SharedMemory::damage() const {
  if (RICCI_ASAN) return {};
  for (const Variable& v : variables_) {
    const size_t written = find_written(v.data + v.bytes, kRedZone);
    if (written < kRedZone) return {v.name, v.bytes, v.bytes + written, static_cast<size_t>(v.data - memory_) + v.bytes + written};
  }
  return {};
}

const unsigned char* SharedMemory::repaired(const Damage& damage) {
  memory_[damage.offset] = red(damage.position - damage.bytes);
  return memory_ + damage.offset;
}

void* dynamic_shared_memory() { return current_block->shared().dynamic(); }

void* static_shared_memory(const void* key, const char* name, size_t bytes) {
  Quiet quiet;
  void* variable = current_block->shared().variable(key, name, bytes);
  if (!variable)
    current_block->fail_thread(
        ricci::format_message("{} of {} bytes does not fit: at most {} KiB of shared memory can be static, {} KiB in all",
            {name, bytes, SharedMemory::kMaxStaticBytes / 1024, SharedMemory::kMaxBytes / 1024}));
  return variable;
}

}  // namespace emu
