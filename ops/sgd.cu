// SGD, fused over all tensors: 20 bytes of memory traffic per f32 parameter with momentum, 12 without.
//   g = gradient_scale grad + decay x;  m = momentum m + g;  x = x - lr d,   d = m, g + momentum m (Nesterov), or g
#include "ops/sgd.h"

#include "core/error.h"
#include "cuda/elements.h"
#include "ops/multi_tensor.h"

namespace ricci {
namespace sgd_kernels {

template <class T> struct Item {
  using A = Accumulator<T>;
  T* value;
  A *master, *m;  // master is null: the value is updated itself; m is null: no momentum
  const T* grad;
  int64_t n;
  A decay;
};

template <class A> struct Factors {
  A gradient_scale, momentum, minus_learning_rate;
  bool nesterov;
};

template <class T> struct Update {
  using A = Accumulator<T>;
  Item<T> t;
  Factors<A> f;

  template <bool kMaster, bool kMomentum> HD void element(int64_t i) const {
    const A before = kMaster ? t.master[i] : A(t.value[i]);
    A g = A(t.grad[i]) * f.gradient_scale + t.decay * before;
    if (kMomentum) {
      const A m = t.m[i] * f.momentum + g;
      t.m[i] = m;
      g = f.nesterov ? g + f.momentum * m : m;
    }
    const A x = before + f.minus_learning_rate * g;
    if (kMaster) t.master[i] = x;
    t.value[i] = T(x);
  }
  template <bool kMaster, bool kMomentum> HD void range(int64_t begin, int64_t end, int64_t stride) const {
#pragma omp simd
    for (int64_t i = begin; i < end; i += stride) element<kMaster, kMomentum>(i);
  }
  HD void strided(int64_t begin, int64_t end, int64_t stride) const {
    if (t.master) return t.m ? range<true, true>(begin, end, stride) : range<true, false>(begin, end, stride);
    t.m ? range<false, true>(begin, end, stride) : range<false, false>(begin, end, stride);
  }
  HD void operator()(int64_t begin, int64_t end) const { strided(begin, end, 1); }
};

template <class T> struct Kernel {
  static constexpr int kThreads = 256;
  static constexpr int64_t kChunk = 4096;
  TensorBatch<Item<T>> batch;
  Factors<Accumulator<T>> factors;
  __device__ void operator()() const {
    const int k = batch.find(blockIdx.x);
    const Update<T> update{batch.item[k], factors};
    const int64_t first = (blockIdx.x - batch.first_chunk[k]) * kChunk, end = first + kChunk < update.t.n ? first + kChunk : update.t.n;
    update.strided(first + threadIdx.x, end, kThreads);
  }
};

template <class T> void update_all(Device device, const std::vector<Item<T>>& items, const Factors<Accumulator<T>>& factors) {
  constexpr int64_t kChunk = 32768;
  for (const TensorBatch<Item<T>>& batch : make_batches(items, device == Device::cpu ? kChunk : Kernel<T>::kChunk)) {
    if (device != Device::cpu) {
      launch("sgd", device, {batch.chunks(), Kernel<T>::kThreads}, Kernel<T>{batch, factors});
      continue;
    }
    parallel_for(batch.chunks(), 1, [&](int64_t begin, int64_t) {
      const int k = batch.find(begin);
      const int64_t first = (begin - batch.first_chunk[k]) * kChunk, n = batch.item[k].n;
      run_vectorized(Update<T>{batch.item[k], factors}, first, first + kChunk < n ? first + kChunk : n);
    });
  }
}

// The tensors of element type T, updated.
template <class T> void update_dtype(const std::vector<OptimizerTensor>& tensors, const SgdStep& s) {
  using A = Accumulator<T>;
  std::vector<Item<T>> items;
  for (const OptimizerTensor& t : tensors) {
    if (!t.grad || t.value.dtype() != dtype_of<T>) continue;
    items.push_back({t.value.data<T>(), t.master ? t.master.data<A>() : nullptr, s.momentum != 0 ? t.m.data<A>() : nullptr,
                     t.grad.data<T>(), t.value.size(), static_cast<A>(t.weight_decay)});
  }
  if (items.empty()) return;
  update_all<T>(tensors[0].value.device(), items,
                {static_cast<A>(s.gradient_scale), static_cast<A>(s.momentum), static_cast<A>(-s.learning_rate), s.nesterov});
}

}  // namespace sgd_kernels

using namespace sgd_kernels;

HOST void sgd_update(const std::vector<OptimizerTensor>& tensors, const SgdStep& step, const char* file, int line) {
  if (step.nesterov && step.momentum == 0) fail("sgd: nesterov needs a momentum above 0");
  check_tensors("sgd", tensors, {.m = step.momentum != 0});
  update_dtype<float>(tensors, step);
  update_dtype<double>(tensors, step);
  update_dtype<bf16>(tensors, step);
  mark_written(tensors, file, line);
}

CUDA_KERNEL(Kernel<float>);
CUDA_KERNEL(Kernel<double>);
CUDA_KERNEL(Kernel<bf16>);

}  // namespace ricci
