// Streams under tensors and ops: launches, copies and frees take their place in the current stream; reads wait for it.
#include "cuda/device/stream.h"

#include "ops/elements/activations.h"
#include "tests/cuda/emulator/emulator_fixture.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

Tensor on_side(const Stream& side, const Tensor& x, bool wait) {
  if (wait) side.wait_for(Stream::main(x.device()));
  const OnStream on(side);
  return gelu(x);
}

}  // namespace

TEST_CASE("ops on a side stream, with the waits that they need") {
  on_gpus([](Device device) {
    const Tensor x = drawn({1000}, Dtype::f32, device, 1);
    const Values expected = values_of(gelu(x));
    const Stream side(device);
    const Tensor y = on_side(side, x, true);
    Stream::main(device).wait_for(side);
    CHECK(values_of(gelu(y)) == values_of(gelu(tensor_of(expected, {1000}, Dtype::f32, device))));
    const Tensor z = on_side(side, x, true);
    side.synchronize();
    CHECK(values_of(z) == expected);
    {
      const OnStream on(side);
      CHECK(values_of(gelu(x)) == expected);  // a read waits for the current stream
      const Tensor nothing = zeros({5}, Dtype::f32, device), copied = like(nothing);
      copy(copied, nothing);
      CHECK(values_of(copied) == Values(5, 0));
    }
  });
}

TEST_CASE("a read that waits for the wrong stream, an op that does not wait") {
  const Device device = Device::cuda_emulated;
  WithOptions options;
  const Tensor x = tensor_of({1, 2, 3}, {3}, Dtype::f32, device);
  const Stream side(device), other(device);
  const Tensor y = on_side(side, x, true);
  for (double value : values_of(y)) CHECK(std::isnan(value));  // waits for the main stream
  const Tensor z = on_side(other, y, false);
  other.synchronize();
  for (double value : values_of(z)) CHECK(std::isnan(value));
  synchronize(device);
  CHECK(values_of(y) == values_of(gelu(x)));
  for (double value : values_of(z)) CHECK(std::isnan(value));
}

TEST_CASE("everything lazy: launches, copies, zeros and frees in order, errors where they are waited for") {
  const Device device = Device::cuda_emulated;
  for (emu::Options::Order order : {emu::Options::Order::forward, emu::Options::Order::reverse, emu::Options::Order::random}) {
    WithOptions options;
    options->order = order, options->lazy = true;
    const Tensor x = tensor_of({1, 2, 3}, {3}, Dtype::f32, device), copied = like(x);
    Tensor y = x;
    for (int i = 0; i < 5; ++i) y = gelu(y);  // freed tensors are freed in order
    copy(copied, y);
    y = zeros({3}, Dtype::f32, device);
    const Values got = values_of(copied);
    CHECK(values_of(y) == Values(3, 0));
    options->lazy = false;
    y = x;
    for (int i = 0; i < 5; ++i) y = gelu(y);
    CHECK(got == values_of(y));
  }
}

TEST_CASE("streams: messages") {
  CHECK(message_of([] { Stream{Device::cpu}; }) == "stream: the cpu has no streams");
  CHECK(message_of([] { Stream::main(Device::cpu); }) == "stream: the cpu has no streams");
  if (!available(Device::cuda)) CHECK(message_of([] { Stream{Device::cuda}; }) == std::string("device cuda: ") + why_not(Device::cuda));
  else
    CHECK(message_of([] { Stream::main(Device::cuda).wait_for(Stream::main(Device::cuda_emulated)); }) ==
          "stream: a stream of cuda cannot wait for a stream of cuda_emulated");
}
