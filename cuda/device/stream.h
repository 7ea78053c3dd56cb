// Streams of a device. Work on one stream runs in order; two streams run in no particular order, because the GPU can then overlap them.
// Every device has a main stream, which is the default. A tensor belongs to the stream that made it: another stream must wait before it
// reads the tensor, and the first must wait for the other before the tensor is freed or changed.
//   Stream side(device);
//   side.wait_for(Stream::main(device));            // x was made there
//   { const OnStream on(side);  y = gelu(x); }      // launches, copies and frees of this OS thread go to `side`
//   Stream::main(device).wait_for(side);            // before y is read there
// A read on the CPU (to, copy, item) only waits for the current stream. On cuda_emulated the work of a side stream runs when something
// waits for it and no sooner, because otherwise a forgotten wait would not show (cuda/emulator/streams.h).
#pragma once
#include "core/tensor.h"

namespace ricci {

class Stream {
 public:
  explicit Stream(Device device);  // error: the cpu has no streams, device not available
  ~Stream();                       // launched work still runs
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  static const Stream& main(Device device);

  // Everything launched on this stream from now on runs after everything on `other` so far. Error: a stream of another device.
  void wait_for(const Stream& other) const;
  void synchronize() const;  // the calling thread waits
 private:
  friend class OnStream;
  Stream(Device device, void* handle) : device_(device), handle_(handle) {}
  Device device_;
  void* handle_;  // a handle of the device; null for the main stream
};

// Until the end of the scope this OS thread works on that stream. The stream must outlive the scope.
class OnStream {
 public:
  explicit OnStream(const Stream& stream);
  ~OnStream();
  OnStream(const OnStream&) = delete;
  OnStream& operator=(const OnStream&) = delete;

 private:
  Device device_;
  void* before_;
};

}  // namespace ricci
