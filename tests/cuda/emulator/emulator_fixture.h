// Shared by the tests of the emulator: a launch, device arrays, the message of a failing launch.
#pragma once
#include <cstring>
#include <string>
#include <vector>

#include "core/error.h"
#include "cuda/emulator/emulator.h"

struct LaunchShape {
  dim3 grid, block;
  size_t dynamic_shared_bytes = 0;
};

template <class Kernel> void launch(const LaunchShape& shape, const Kernel& kernel, emu::Loc at = {}) {
  const emu::Launch config{"kernel", shape.grid, shape.block, shape.dynamic_shared_bytes, at};
  emu::run(
      config, [](const void* k) { (*static_cast<const Kernel*>(k))(); }, &kernel);
}

template <class T> class DeviceArray {
 public:
  explicit DeviceArray(size_t n) : n_(n), data_(static_cast<T*>(emu::allocate(n * sizeof(T)))) {}
  explicit DeviceArray(const std::vector<T>& host) : DeviceArray(host.size()) { emu::copy_in(data_, host.data(), n_ * sizeof(T)); }
  static DeviceArray zeros(size_t n) { return DeviceArray(std::vector<T>(n)); }
  ~DeviceArray() { emu::release(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  std::vector<T> host() const {
    std::vector<T> host(n_);
    emu::copy_out(host.data(), data_, n_ * sizeof(T));
    return host;
  }

 private:
  size_t n_;
  T* data_;
};

// The emulator's default options, to be changed until the end of the scope.
class WithOptions {
 public:
  WithOptions() : before_(emu::options()) { emu::options() = {}; }
  ~WithOptions() { emu::options() = before_; }
  WithOptions(const WithOptions&) = delete;
  WithOptions& operator=(const WithOptions&) = delete;
  emu::Options* operator->() { return &emu::options(); }

 private:
  emu::Options before_;
};

// The message that the call throws; empty: none.
template <class F> std::string error_of(F f) {
  try {
    f();
  } catch (const ricci::Error& e) {
    return e.what();
  }
  return {};
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
