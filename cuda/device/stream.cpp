// Streams, as handles that the device gives out, because a stream of CUDA and one of the emulator have no type in common.
#include "cuda/device/stream.h"

#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/device/device_memory.h"

namespace ricci {
namespace {

DeviceMemory& streams_of(Device device) {
  if (device == Device::cpu) fail("stream: the cpu has no streams");
  return device_memory(device);
}

}  // namespace

Stream::Stream(Device device) : device_(device), handle_(streams_of(device).make_stream()) {}

Stream::~Stream() {
  if (handle_) device_memory(device_).end_stream(handle_);
}

const Stream& Stream::main(Device device) {
  streams_of(device);
  static const Stream cuda(Device::cuda, nullptr), emulated(Device::cuda_emulated, nullptr);
  return device == Device::cuda ? cuda : emulated;
}

void Stream::wait_for(const Stream& other) const {
  if (device_ != other.device_) fail("stream: a stream of {} cannot wait for a stream of {}", {name_of(device_), name_of(other.device_)});
  device_memory(device_).wait_for(handle_, other.handle_);
}

void Stream::synchronize() const { device_memory(device_).synchronize(handle_); }

OnStream::OnStream(const Stream& stream) : device_(stream.device_), before_(device_memory(device_).use_stream(stream.handle_)) {}
OnStream::~OnStream() { device_memory(device_).use_stream(before_); }

}  // namespace ricci
