// Streams of a device: what is launched on one runs in order, and two of them run in no particular order.
// Every device has a main stream, where work goes by default. Tensors belong to the stream on which they were made:
// another one has to wait before it reads them, and the first has to wait for it before they are freed or changed.
//   Stream side(device);
//   side.wait_for(Stream::main(device));            // x was made there
//   { const OnStream on(side);  y = gelu(x); }      // launches, copies and frees of this OS thread go to `side`
//   Stream::main(device).wait_for(side);            // before y is read there
// A read on the CPU (to, copy, item) waits for the current stream alone. On cuda_emulated work of a side stream runs when
// it is waited for and no sooner, so that a forgotten wait shows (cuda/emulator/streams.h).
#pragma once
#include "core/tensor.h"

namespace ricci {

class Stream {
 public:
  explicit Stream(Device device);  // error: the cpu has none, device not available
  ~Stream();                       // what was launched on it still runs
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  static const Stream& main(Device device);

  // All that is launched here from now on runs after what `other` holds by now. Error: a stream of another device.
  void wait_for(const Stream& other) const;
  void synchronize() const;    // the calling thread waits
  bool has_come_here() const;  // whether all that was launched on it has run. On cuda_emulated it runs now

 private:
  friend class OnStream;
  Stream(Device device, void* handle) : device_(device), handle_(handle) {}
  Device device_;
  void* handle_;  // a handle of the device; null for the main stream
};

// Until the end of the scope this OS thread works on that stream, which outlives it.
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
