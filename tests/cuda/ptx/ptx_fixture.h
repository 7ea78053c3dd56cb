// Shared by the tests of the wrapped instructions: arrays on a device, the devices that they run on, and numbers without rounding.
#pragma once
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "tests/cuda/emulator/emulator_fixture.h"
#include "tests/ops/values.h"

namespace ricci {

// Values of a type that tensors do not have, on a device.
template <class T> struct Buffer {
  Tensor bytes;
  Buffer(const std::vector<T>& values, Device device) {
    const Tensor host({static_cast<int64_t>(values.size() * sizeof(T) + 3) / 4}, Dtype::f32);
    std::memcpy(host.raw(), values.data(), values.size() * sizeof(T));
    bytes = to(host, device);
  }
  T* data() const { return static_cast<T*>(bytes.raw()); }
  std::vector<T> host() const {
    const Tensor host = to(bytes, Device::cpu);
    return {static_cast<const T*>(host.raw()), static_cast<const T*>(host.raw()) + static_cast<size_t>(host.bytes()) / sizeof(T)};
  }
};

inline void on_emulator_and_gpu(const std::function<void(Device)>& f) {
  for (emu::Options::Order order : {emu::Options::Order::forward, emu::Options::Order::reverse, emu::Options::Order::random}) {
    WithOptions options;
    options->order = order;
    f(Device::cuda_emulated);
  }
  static bool said = false;
  if (available(Device::cuda)) f(Device::cuda);
  else if (!std::exchange(said, true)) MESSAGE("skipped on cuda: ", std::string(why_not(Device::cuda)));
}

// Small multiples of 1/8, which every type holds exactly and whose sums of 16 products f32 holds exactly.
inline float small_number(size_t i) { return static_cast<float>(static_cast<int>(i * 37 % 61) - 30) / 8; }

}  // namespace ricci
