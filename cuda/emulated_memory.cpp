#include "cuda/device_memory.h"
#include "cuda/emulator/emulator.h"

namespace ricci {
namespace {

class EmulatedMemory final : public DeviceMemory {
 public:
  void* allocate(int64_t bytes) override {
    ++allocations_;
    return emu::allocate(static_cast<size_t>(bytes));
  }
  void release(void* data, int64_t) override { emu::release(data); }
  int64_t system_allocations() const override { return allocations_; }
  void copy_in(void* device, const void* host, int64_t bytes) override { emu::copy_in(device, host, static_cast<size_t>(bytes)); }
  void copy_out(void* host, const void* device, int64_t bytes) override { emu::copy_out(host, device, static_cast<size_t>(bytes)); }
  void copy_within(void* to, const void* from, int64_t bytes) override { emu::copy_within(to, from, static_cast<size_t>(bytes)); }
  void fill_zero(void* device, int64_t bytes) override { emu::fill_zero(device, static_cast<size_t>(bytes)); }
  void synchronize() override {}

 private:
  int64_t allocations_ = 0;
};

}  // namespace

DeviceMemory& emulated_memory() {
  static EmulatedMemory& memory = *new EmulatedMemory;  // outlives every tensor
  return memory;
}

}  // namespace ricci
