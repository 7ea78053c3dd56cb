// Sizes are rounded up to classes (4, 5, 6 or 7 times a power of two, at least 64 bytes), so a released block can serve any request of its
// class. The block waits in its class's list (last in, first out), but a thread first reuses the blocks that it released itself. Lines in
// another core's cache take longer to write. Small blocks are cut from slabs, and large ones are mapped one by one.
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "core/cpu/available.h"
#include "core/error.h"
#include "core/memory/memory.h"

#if defined(__SANITIZE_ADDRESS__)
#define RICCI_PLAIN_ALLOCATION true  // separate allocations, so the sanitizer detects an overrun
#else
#define RICCI_PLAIN_ALLOCATION false
#endif

namespace ricci {
namespace {

constexpr int64_t kSlab = int64_t{32} << 20, kHugePage = int64_t{2} << 20, kLargest = kSlab / 8;

struct SizeClass {
  int index;
  int64_t bytes;
};

SizeClass class_of(int64_t bytes) {
  const uint64_t units = static_cast<uint64_t>(bytes < 256 ? 255 : bytes - 1);
  const int shift = 61 - std::countl_zero(units);                    // units >> shift is 4 .. 7
  const int64_t quarter = static_cast<int64_t>(units >> shift) + 1;  // 5 .. 8
  return {shift * 4 + static_cast<int>(quarter - 5), quarter << shift};
}

constexpr int64_t huge_pages(int64_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }  // rounded up to full huge pages

char* map_huge(int64_t bytes) {
  const size_t size = static_cast<size_t>(huge_pages(bytes) + kHugePage);
  void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  const auto aligned = (reinterpret_cast<uintptr_t>(p) + kHugePage - 1) / kHugePage * kHugePage;
  madvise(reinterpret_cast<void*>(aligned), size - kHugePage, MADV_HUGEPAGE);
  return reinterpret_cast<char*>(aligned);
}

class Arena final : public Allocator {
 public:
  void* allocate(int64_t bytes) override {
    if (RICCI_PLAIN_ALLOCATION) return std::aligned_alloc(64, static_cast<size_t>((bytes + 64) / 64 * 64));
    const SizeClass c = class_of(bytes);
    std::lock_guard lock(mutex_);
    auto& list = free_[c.index];
    if (!list.empty()) {
      const auto own = std::find_if(list.rbegin(), list.rend(), [](const Free& f) { return f.thread == std::this_thread::get_id(); });
      const auto taken = own == list.rend() ? list.end() - 1 : own.base() - 1;
      void* const block = taken->block;
      list.erase(taken);
      return block;
    }
    return c.bytes > kLargest ? map(bytes, c.bytes) : carve(c.bytes);
  }

  void release(void* data, int64_t bytes) override {
    if (RICCI_PLAIN_ALLOCATION) return std::free(data);
    if (!data) return;
    std::lock_guard lock(mutex_);
    free_[class_of(bytes).index].push_back({data, std::this_thread::get_id()});
  }

  std::string room() const override { return format_message("this machine has {}", {show_bytes(available_)}); }

 private:
  struct Free {
    void* block;
    std::thread::id thread;  // the thread that released the block
  };

  // The block is as large as its size class, but only the requested bytes are touched and counted.
  char* map(int64_t asked, int64_t bytes) {
    if (asked > available_ - mapped_) return nullptr;
    char* block = map_huge(bytes);
    if (block) mapped_ += asked;
    return block;
  }

  void* carve(int64_t bytes) {
    if (left_ < bytes) {
      char* slab = map(kSlab, kSlab);
      if (!slab) return nullptr;
      at_ = slab;
      left_ = kSlab;  // the rest of the old slab is lost
    }
    void* block = at_;
    at_ += bytes;
    left_ -= bytes;
    return block;
  }

  std::mutex mutex_;
  std::vector<Free> free_[256];
  const int64_t available_ = available_memory();  // Linux would overcommit and kill the process later
  int64_t mapped_ = 0;
  char* at_ = nullptr;
  int64_t left_ = 0;
};

}  // namespace

int64_t ArenaCounter::allocate(int64_t bytes) {
  const SizeClass c = class_of(bytes);
  auto& list = free_[c.index];
  int64_t block = 0;
  if (!list.empty()) {
    block = list.back();
    list.pop_back();
  }
  if (c.bytes > kLargest) {
    const int64_t uses = huge_pages(bytes);
    touched_ += std::max<int64_t>(0, uses - block);
    return std::max(block, uses);
  }
  if (block) return block;
  if (left_ < c.bytes) left_ = kSlab;
  const int64_t begin = kSlab - left_;
  touched_ += huge_pages(begin + c.bytes) - huge_pages(begin);
  left_ -= c.bytes;
  return c.bytes;
}

void ArenaCounter::release(int64_t bytes, int64_t allocated) { free_[class_of(bytes).index].push_back(allocated); }

Allocator& cpu_arena() {
  // Never destroyed: a static tensor can be released later.
  static Arena& arena = *new Arena;
  return arena;
}

}  // namespace ricci
