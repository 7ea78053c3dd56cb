// Shared by the tests of ops: tensors of random values, their values as doubles, every device and dtype, and bounds that follow from the
// dtype.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/tape.h"
#include "core/cpu/parallel.h"
#include "core/error.h"
#include "core/random.h"
#include "core/tensor.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {

using Values = std::vector<double>;

inline std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

inline int64_t kept_bytes(const Tape& tape) {
  int64_t bytes = 0;
  for (const auto& node : tape.nodes()) bytes += node->kept_bytes();
  return bytes;
}

inline Tensor tensor_of(const Values& values, const Shape& shape, Dtype dtype, Device device) {
  const Tensor t(shape, Dtype::f64);
  std::copy(values.begin(), values.end(), t.data<double>());
  return to(convert(t, dtype), device);
}

inline Tensor ids_of(const std::vector<int64_t>& ids, const Shape& shape, Device device) {
  const Tensor t(shape, Dtype::i64);
  std::copy(ids.begin(), ids.end(), t.data<int64_t>());
  return to(t, device);
}

inline Values values_of(const Tensor& t) {
  const Tensor host = to(t, Device::cpu);
  Values values;
  if (t.dtype() == Dtype::i64) {
    for (int64_t i = 0; i < t.size(); ++i) values.push_back(static_cast<double>(host.data<int64_t>()[i]));
  } else {
    const Tensor wide = convert(host, Dtype::f64);
    values.assign(wide.data<double>(), wide.data<double>() + wide.size());
  }
  return values;
}

// Independent normal values, rounded to dtype; different streams give different values.
inline Tensor drawn(const Shape& shape, Dtype dtype, Device device, uint64_t stream) {
  const Tensor t(shape, Dtype::f64);
  fill_normal(t.data<double>(), t.size(), 0.0, 1.0, Philox{11, stream});
  return to(convert(t, dtype), device);
}

// The largest relative error of one rounding.
inline double unit(Dtype dtype) { return dtype == Dtype::f64 ? 0x1p-53 : dtype == Dtype::f32 ? 0x1p-24 : 0x1p-8; }
inline double sum_unit(Dtype dtype) { return dtype == Dtype::f64 ? 0x1p-53 : 0x1p-24; }  // for the type of sums

// The larger of an error and the previous ones. A NaN is an infinite error from then on.
inline void raise_to(double& worst, double error) { worst = std::isnan(error) ? HUGE_VAL : std::max(worst, error); }

// The largest |got - expected|, relative to the largest |expected|; infinite if one of them is NaN.
inline double error_of(const Tensor& got, const Values& expected) {
  const Values values = values_of(got);
  REQUIRE(values.size() == expected.size());
  double worst = 0, largest = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    raise_to(worst, std::abs(values[i] - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
  }
  return largest > 0 ? worst / largest : worst;
}

// The largest |got - expected| / size, element by element: for sums that cancel, size is the sum of the absolute terms.
inline double error_of(const Tensor& got, const Values& expected, const Values& size) {
  const Values values = values_of(got);
  REQUIRE(values.size() == expected.size());
  double worst = 0;
  for (size_t i = 0; i < values.size(); ++i) raise_to(worst, std::abs(values[i] - expected[i]) / (size[i] > 0 ? size[i] : 1));
  return worst;
}

inline bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = to(a, Device::cpu), y = to(b, Device::cpu);
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         std::equal(static_cast<const char*>(x.raw()), static_cast<const char*>(x.raw()) + x.bytes(), static_cast<const char*>(y.raw()));
}

// RICCI_TEST_DEVICES=cuda leaves out the other devices, to save time on a GPU.
inline bool is_tested(Device device) {
  const char* only = std::getenv("RICCI_TEST_DEVICES");
  return !only || std::string_view(only) == name_of(device);
}

inline void on_every_device(const std::function<void(Device)>& f) {
  for (Device device : {Device::cpu, Device::cuda_emulated, Device::cuda}) {
    if (!is_tested(device)) continue;
    const std::string name = name_of(device);
    if (!available(device)) {
      static bool said = false;
      if (!said) MESSAGE("skipped on ", name, ": ", std::string(why_not(device)));
      said = true;
      continue;
    }
    CAPTURE(name);
    f(device);
  }
}

// Calls f for the GPU, if any, and for the emulated one.
inline void on_gpus(const std::function<void(Device)>& f) {
  on_every_device([&](Device device) {
    if (device != Device::cpu) f(device);
  });
}

// The gradients of the inputs, given the gradient of the one output of f(inputs).
template <class F> std::vector<Tensor> gradients_of(const F& f, std::vector<Tensor> inputs, const Tensor& dy) {
  Tape tape;
  for (Tensor& x : inputs) x = tape.watch(x);
  tape.backward({f(inputs)}, {dy});
  for (Tensor& x : inputs) x = tape.gradient_of(x);
  return inputs;
}

// `results` returns the same bits for any number of threads.
inline void check_threads(const std::function<std::vector<Tensor>()>& results, const std::vector<int>& counts = {1, 2, 5}) {
  const int before = thread_count();
  std::vector<Tensor> first;
  for (int threads : counts) {
    set_thread_count(threads);
    const std::vector<Tensor> now = results();
    if (first.empty()) first = now;
    CAPTURE(threads);
    REQUIRE(now.size() == first.size());
    for (size_t i = 0; i < now.size(); ++i) CHECK(same_bits(now[i], first[i]));
  }
  set_thread_count(before);
}

// The values in f64 on the CPU.
inline Tensor exactly(const Tensor& t) { return to(convert(t, Dtype::f64), Device::cpu); }

// f(device, dtype)
template <class F> void on_every_device_and_dtype(const F& f) {
  on_every_device([&](Device device) {
    for (Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::bf16}) {
      const std::string dtype_name = name_of(dtype);
      CAPTURE(dtype_name);
      f(device, dtype);
    }
  });
}

}  // namespace ricci
