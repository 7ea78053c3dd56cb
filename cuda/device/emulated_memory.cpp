#include "cuda/device/device_memory.h"
#include "cuda/emulator/emulator.h"
#include "cuda/emulator/queue.h"

namespace ricci {
namespace {

// The memory of cuda_emulated. Copies from and to the CPU wait for all earlier work; all other work can be queued, as on a GPU.
class EmulatedMemory final : public DeviceMemory {
 public:
  void* allocate(int64_t bytes) override {
    emu::check_options();
    return emu::allocate(static_cast<size_t>(bytes));
  }
  void release(void* data, int64_t) override { emu::release_in_order(data); }
  void copy_in(void* device, const void* host, int64_t bytes) override {
    emu::synchronize();
    emu::copy_in(device, host, static_cast<size_t>(bytes));
  }
  void copy_out(void* host, const void* device, int64_t bytes) override {
    emu::synchronize();
    emu::copy_out(host, device, static_cast<size_t>(bytes));
  }
  void copy_within(void* target, const void* source, int64_t bytes) override {
    emu::queue_or_run([=] { emu::copy_within(target, source, static_cast<size_t>(bytes)); });
  }
  void fill_zero(void* device, int64_t bytes) override {
    emu::queue_or_run([=] { emu::fill_zero(device, static_cast<size_t>(bytes)); });
  }
  void synchronize() override { emu::synchronize(); }
  void trim() override { emu::synchronize(); }
  int64_t reserved_bytes() const override { return 0; }        // no memory is kept for later requests
  int64_t shared_bytes() const override { return 227 << 10; }  // like compute capability 9.0
  int64_t total_bytes() const override { return int64_t{80} << 30; }
  bool has_wgmma() const override { return emu::options().wgmma; }

  void begin_recording() override { emu::begin_recording(); }
  void* end_recording() override { return new emu::Recorded(emu::end_recording()); }
  void drop_recording() override { emu::end_recording(); }
  void launch_graph(void* graph) override {
    for (const auto& work : *static_cast<emu::Recorded*>(graph)) emu::queue_or_run(work);
  }
  void end_graph(void* graph) override {
    emu::queue_or_run([graph] { delete static_cast<emu::Recorded*>(graph); });
  }
};

}  // namespace

DeviceMemory& emulated_memory() {
  static EmulatedMemory& memory = *new EmulatedMemory;  // outlives every tensor
  return memory;
}

}  // namespace ricci
