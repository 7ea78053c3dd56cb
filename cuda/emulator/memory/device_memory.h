// The allocations of device memory, for the emulator's checks. Programs use emulator.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

namespace emu {

struct DeviceRange {
  uintptr_t begin = 0, end = 0;
  bool contains(uintptr_t first, size_t bytes) const { return first >= begin && first + bytes <= end; }
};
DeviceRange allocation_around(uintptr_t address);   // empty if none contains the address
DeviceRange nearest_allocation(uintptr_t address);  // empty if no memory is allocated
bool is_device_memory(uintptr_t address);           // true if the address is in an allocation or its red zones
void for_each_allocation(const std::function<void(unsigned char* data, size_t bytes)>& f);

// Gives kernels access to device memory while a launch runs.
void show_device_memory();
void hide_device_memory();

// Released device memory that a program could still use by mistake. It is filled with NaN until it is given back to the system.
struct Retired {
  unsigned char *front, *data;  // `front` is the red zone before `data`; sparse memory is zero and is not searched for writes
  bool is_sparse;
  size_t bytes, all_bytes;
};
Retired retire(void* device);
size_t give_back(const Retired& memory);  // returns the first byte that was written since the release, or the size if none was written

// A write past the end of an allocation of `bytes` bytes; the pointer is null if none was found.
struct DeviceDamage {
  unsigned char* byte = nullptr;
  ptrdiff_t offset = 0;
  size_t bytes = 0;
};
DeviceDamage repair_device_memory();  // finds and repairs one damaged red zone

}  // namespace emu
