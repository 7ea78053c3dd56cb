// Device memory of the emulator: ordinary memory, filled with 0xff (NaN), or sparse memory, between two red zones.
#include "cuda/emulator/memory/device_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "core/error.h"
#include "cuda/emulator/emulator.h"
#include "cuda/emulator/fiber.h"
#include "cuda/emulator/memory/red_zone.h"
#include "cuda/emulator/memory/sparse.h"

namespace emu {
namespace {

constexpr size_t kAlign = 256, kRedZone = 256;
// Spare bytes after the red zone, for rows that a kernel writes past the end. Such writes must not reach the CPU's heap before they are
// reported.
constexpr size_t kSpare = 16 << 10;

struct Allocation {
  unsigned char* data;
  size_t bytes;
  bool is_sparse;

  unsigned char* front() const { return data - kRedZone; }
  unsigned char* back() const { return data + bytes; }
  size_t all_bytes() const { return (kRedZone + bytes + kRedZone + kSpare + kAlign - 1) / kAlign * kAlign; }
};

// For AddressSanitizer: makes memory accessible only to kernels and copies.
void hide([[maybe_unused]] const void* data, [[maybe_unused]] size_t bytes) {
#if RICCI_ASAN
  __asan_poison_memory_region(data, bytes);
#endif
}
void show([[maybe_unused]] const void* data, [[maybe_unused]] size_t bytes) {
#if RICCI_ASAN
  __asan_unpoison_memory_region(data, bytes);
#endif
}

struct Heap {
  std::mutex mutex;
  std::map<const unsigned char*, Allocation> allocations;
  int launches = 0;  // number of running launches

  // The allocation that contains the range. `what` names the caller in messages.
  const Allocation& find(const char* what, const void* data, size_t bytes) {
    const auto address = static_cast<const unsigned char*>(data);
    auto next = allocations.upper_bound(address);
    if (next == allocations.begin()) ricci::fail("emulator: {}: the pointer is not in device memory", {what});
    const Allocation& found = std::prev(next)->second;
    const size_t offset = static_cast<size_t>(address - found.data);
    if (offset > found.bytes) ricci::fail("emulator: {}: the pointer is not in device memory", {what});
    if (bytes > found.bytes - offset)
      ricci::fail("emulator: {}: {} bytes at offset {} exceed a device allocation of {} bytes", {what, bytes, offset, found.bytes});
    return found;
  }

  // Gives the host code of one copy access to the range.
  template <class Copy> void access(const char* what, const void* data, size_t bytes, Copy copy) {
    const std::lock_guard lock(mutex);
    const Allocation allocation = find(what, data, bytes);
    if (!launches) show(allocation.data, allocation.bytes);
    copy(allocation);
    if (!launches) hide(allocation.data, allocation.bytes);
  }
};

Heap& heap() {
  static Heap& heap = *new Heap;  // outlives everything that holds device memory
  return heap;
}

const unsigned char* red_zone() {
  static const auto zone = [] {
    static unsigned char filled[kRedZone];
    fill_red_zone(filled, kRedZone);
    return filled;
  }();
  return zone;
}

// The first changed byte of the red zones, or null.
unsigned char* find_damage(const Allocation& allocation) {
  for (unsigned char* zone : {allocation.front(), allocation.back()})
    if (std::memcmp(zone, red_zone(), kRedZone) != 0) return zone + find_written(zone, kRedZone);
  return nullptr;
}

void fill_red_zones(const Allocation& allocation) {
  fill_red_zone(allocation.front(), kRedZone);
  fill_red_zone(allocation.back(), kRedZone);
}

}  // namespace

void* allocate(size_t bytes) {
  Allocation allocation{nullptr, bytes, options().ends && bytes >= kSparseFrom};
  void* all = nullptr;
  if (bytes < SIZE_MAX / 2)
    all = allocation.is_sparse ? map_sparse(allocation.all_bytes()) : std::aligned_alloc(kAlign, allocation.all_bytes());
  if (!all) ricci::fail("emulator: no memory for a device allocation of {} bytes", {std::to_string(bytes)});
  allocation.data = static_cast<unsigned char*>(all) + kRedZone;
  if (!allocation.is_sparse) std::memset(allocation.data, 0xff, bytes);
  fill_red_zones(allocation);
  Heap& h = heap();
  const std::lock_guard lock(h.mutex);
  h.allocations.emplace(allocation.data, allocation);
  hide(all, allocation.all_bytes());
  if (h.launches) show(allocation.data, bytes);
  return allocation.data;
}

namespace {

Allocation take_from_heap(void* device) {
  Heap& h = heap();
  const std::lock_guard lock(h.mutex);
  const auto found = h.allocations.find(static_cast<unsigned char*>(device));
  if (found == h.allocations.end()) ricci::fail("emulator: the released pointer is not a device allocation");
  const Allocation allocation = found->second;
  h.allocations.erase(found);
  return allocation;
}

void free_memory(unsigned char* front, size_t all_bytes, bool is_sparse) { is_sparse ? unmap_sparse(front, all_bytes) : std::free(front); }

}  // namespace

Retired retire(void* device) {
  const Allocation allocation = take_from_heap(device);
  show(allocation.data, allocation.bytes);
  if (allocation.is_sparse) zero_sparse(allocation.data, allocation.bytes);
  else fill_red_zone(allocation.data, allocation.bytes);
  hide(allocation.data, allocation.bytes);
  return {allocation.front(), allocation.data, allocation.is_sparse, allocation.bytes, allocation.all_bytes()};
}

size_t give_back(const Retired& memory) {
  show(memory.front, memory.all_bytes);
  const size_t written = memory.is_sparse ? memory.bytes : find_written(memory.data, memory.bytes);
  free_memory(memory.front, memory.all_bytes, memory.is_sparse);
  return written;
}

void release(void* device) {
  if (!device) return;
  const Allocation allocation = take_from_heap(device);
  show(allocation.front(), allocation.all_bytes());
  free_memory(allocation.front(), allocation.all_bytes(), allocation.is_sparse);
}

void copy_in(void* device, const void* host, size_t bytes) {
  if (bytes) heap().access("copy to device", device, bytes, [&](const Allocation&) { std::memcpy(device, host, bytes); });
}

void copy_out(void* host, const void* device, size_t bytes) {
  if (bytes) heap().access("copy to host", device, bytes, [&](const Allocation&) { std::memcpy(host, device, bytes); });
}

void copy_within(void* target, const void* source, size_t bytes) {
  if (!bytes) return;
  bool is_sparse = false;
  {
    const std::lock_guard lock(heap().mutex);
    is_sparse = heap().find("copy on the device, source", source, bytes).is_sparse;
    is_sparse &= heap().find("copy on the device, destination", target, bytes).is_sparse;
  }
  show_device_memory();
  is_sparse ? copy_sparse(target, source, bytes) : static_cast<void>(std::memcpy(target, source, bytes));
  hide_device_memory();
}

void fill_zero(void* device, size_t bytes) {
  if (bytes)
    heap().access("fill", device, bytes, [&](const Allocation& allocation) {
      allocation.is_sparse ? zero_sparse(device, bytes) : static_cast<void>(std::memset(device, 0, bytes));
    });
}

void show_device_memory() {
  const std::lock_guard lock(heap().mutex);
  if (heap().launches++ || !RICCI_ASAN) return;
  for (const auto& [data, allocation] : heap().allocations) show(data, allocation.bytes);
}

void for_each_allocation(const std::function<void(unsigned char* data, size_t bytes)>& f) {
  const std::lock_guard lock(heap().mutex);
  for (const auto& [data, allocation] : heap().allocations) f(allocation.data, allocation.bytes);
}

DeviceRange allocation_around(uintptr_t address) {
  const std::lock_guard lock(heap().mutex);
  const auto next = heap().allocations.upper_bound(reinterpret_cast<const unsigned char*>(address));  // NOLINT(performance-no-int-to-ptr)
  if (next == heap().allocations.begin()) return {};
  const Allocation& found = std::prev(next)->second;
  return {reinterpret_cast<uintptr_t>(found.data), reinterpret_cast<uintptr_t>(found.back())};
}

DeviceRange nearest_allocation(uintptr_t address) {
  const DeviceRange before = allocation_around(address);
  const std::lock_guard lock(heap().mutex);
  const auto next = heap().allocations.upper_bound(reinterpret_cast<const unsigned char*>(address));  // NOLINT(performance-no-int-to-ptr)
  if (next == heap().allocations.end()) return before;
  const DeviceRange after{reinterpret_cast<uintptr_t>(next->first), reinterpret_cast<uintptr_t>(next->second.back())};
  return !before.end || address - std::min(address, before.end) > after.begin - address ? after : before;
}

bool is_device_memory(uintptr_t address) {
  const std::lock_guard lock(heap().mutex);
  const auto next =
      heap().allocations.upper_bound(reinterpret_cast<const unsigned char*>(address + kRedZone));  // NOLINT(performance-no-int-to-ptr)
  if (next == heap().allocations.begin()) return false;
  const Allocation& found = std::prev(next)->second;
  return address <= reinterpret_cast<uintptr_t>(found.back()) + kRedZone;
}

void hide_device_memory() {
  const std::lock_guard lock(heap().mutex);
  if (--heap().launches || !RICCI_ASAN) return;
  for (const auto& [data, allocation] : heap().allocations) hide(data, allocation.bytes);
}

DeviceDamage repair_device_memory() {
  if (RICCI_ASAN) return {};  // AddressSanitizer has reported such writes
  const std::lock_guard lock(heap().mutex);
  for (const auto& [data, allocation] : heap().allocations)
    if (unsigned char* byte = find_damage(allocation)) {
      fill_red_zones(allocation);
      return {byte, byte - data, allocation.bytes};
    }
  return {};
}

}  // namespace emu
