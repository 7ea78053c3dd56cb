// sqrt(sum of x^2): one f64 partial sum per chunk of fixed size, the chunks added in their order on the host.
#include "ops/gradient_norm.h"

#include <cmath>

#include "core/error.h"
#include "cuda/device.h"
#include "cuda/rows.h"
#include "cuda/trace.h"
#include "ops/multi_tensor.h"

namespace ricci {
namespace gradient_norm_kernels {

constexpr int64_t kChunk = 16384;

template <class T> struct Item {
  const T* x;
  int64_t n;
  double* partial;  // of the tensor's chunks
};

template <class T> HD double square(T x) {
  const double value = static_cast<double>(Accumulator<T>(x));
  return value * value;
}

// A block per chunk.
template <class T> struct Kernel {
  static constexpr int kThreads = 256;
  TensorBatch<Item<T>> batch;
  __device__ void operator()() const {
    const int k = batch.find(blockIdx.x);
    const Item<T>& t = batch.item[k];
    const int64_t chunk = blockIdx.x - batch.first_chunk[k], left = t.n - chunk * kChunk;
    const T* x = t.x + chunk * kChunk;
    const BlockRow row{left < kChunk ? left : kChunk};
    const double sum = row.sum([&](int64_t i) { return square(x[i]); });
    row.once([&] { t.partial[chunk] = sum; });
  }
};

template <class T> struct Loop {
  Item<T> t;
  HD void operator()(int64_t begin, int64_t end) const {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = begin; i < end; ++i) sum += square(t.x[i]);
    t.partial[begin / kChunk] = sum;
  }
};

inline int64_t chunks_of(int64_t n) { return (n + kChunk - 1) / kChunk; }

// The partial sums of the tensors of element type T; those of tensor k start at partial + first[k].
template <class T> void sum_dtype(const std::vector<Tensor>& tensors, const std::vector<int64_t>& first, Device device, double* partial) {
  std::vector<Item<T>> items;
  for (size_t k = 0; k < tensors.size(); ++k)
    if (tensors[k] && tensors[k].dtype() == dtype_of<T>) items.push_back({tensors[k].data<T>(), tensors[k].size(), partial + first[k]});
  for (const TensorBatch<Item<T>>& batch : make_batches(items, kChunk)) {
    if (device != Device::cpu) {
      launch("gradient_norm", device, {batch.chunks(), Kernel<T>::kThreads}, Kernel<T>{batch});
      continue;
    }
    parallel_for(batch.chunks(), 1, [&](int64_t chunk, int64_t) {
      const int k = batch.find(chunk);
      const int64_t begin = (chunk - batch.first_chunk[k]) * kChunk, n = batch.item[k].n;
      run_vectorized(Loop<T>{batch.item[k]}, begin, begin + kChunk < n ? begin + kChunk : n);
    });
  }
}

// The device that all tensors are on.
HOST Device device_of(const std::vector<Tensor>& tensors) {
  const Tensor* some = nullptr;
  for (const Tensor& t : tensors) {
    if (!t) continue;
    if (some && t.device() != some->device())
      fail("gradient_norm: a tensor on {} and one on {}", {name_of(some->device()), name_of(t.device())});
    if (t.dtype() == Dtype::i64) not_floating(t);
    some = &t;
  }
  return some ? some->device() : Device::cpu;
}

}  // namespace gradient_norm_kernels

using namespace gradient_norm_kernels;

HOST double gradient_norm(const std::vector<Tensor>& tensors) {
  const Device device = device_of(tensors);
  std::vector<int64_t> first{0};
  for (const Tensor& t : tensors) first.push_back(first.back() + (t ? chunks_of(t.size()) : 0));
  const Tensor partial({first.back()}, Dtype::f64, device);
  sum_dtype<float>(tensors, first, device, partial.data<double>());
  sum_dtype<double>(tensors, first, device, partial.data<double>());
  sum_dtype<bf16>(tensors, first, device, partial.data<double>());
  const Tensor on_cpu = to(partial, Device::cpu);
  double sum = 0;
  for (int64_t i = 0; i < partial.size(); ++i) sum += on_cpu.data<double>()[i];
  trace::end("gradient_norm", "", device);
  return std::sqrt(sum);
}

CUDA_KERNEL(Kernel<float>);
CUDA_KERNEL(Kernel<double>);
CUDA_KERNEL(Kernel<bf16>);

}  // namespace ricci
