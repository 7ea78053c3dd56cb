// AdamW, fused over all tensors: 28 bytes of memory traffic per f32 parameter, which is what it costs.
//   x = x (1 - lr decay);  m = m + (1 - beta1)(g - m);  v = beta2 v + (1 - beta2) g g;  x = x - lr' m / (sqrt(v) / c + eps)
//   lr' = lr / (1 - beta1^step),   c = sqrt(1 - beta2^step),   g = gradient_scale grad
// Adam: x does not shrink, and g = gradient_scale grad + decay x
#include "ops/adamw.h"

#include <cmath>

#include "core/dims.h"
#include "core/error.h"
#include "cuda/elements.h"
#include "cuda/math.h"
#include "ops/multi_tensor.h"

namespace ricci {
namespace adamw_kernels {

template <class T> struct Item {
  using A = Accumulator<T>;
  T* value;
  A *master, *m, *v;  // master is null: the value is updated itself
  const T* grad;
  int64_t n;
  A keep;  // 1 - lr decay, 1 for Adam
  A l2;    // decay for Adam, else 0
};

template <class A> struct Factors {
  A gradient_scale, one_minus_beta1, beta2, one_minus_beta2, minus_step_size, correction2, eps;
};

template <class T> struct Update {
  using A = Accumulator<T>;
  Item<T> t;
  Factors<A> f;

  template <bool kMaster> HD void element(int64_t i) const {
    const A before = kMaster ? t.master[i] : A(t.value[i]);
    const A g = A(t.grad[i]) * f.gradient_scale + t.l2 * before;
    const A m = t.m[i] + f.one_minus_beta1 * (g - t.m[i]);
    const A v = t.v[i] * f.beta2 + f.one_minus_beta2 * g * g;
    const A denominator = math::sqrt(v) / f.correction2 + f.eps;
    const A x = before * t.keep + f.minus_step_size * m / denominator;
    t.m[i] = m;
    t.v[i] = v;
    if (kMaster) t.master[i] = x;
    t.value[i] = T(x);
  }
  HD void operator()(int64_t begin, int64_t end) const {
    if (t.master) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) element<true>(i);
    } else {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) element<false>(i);
    }
  }
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
    if (update.t.master)
      for (int64_t i = first + threadIdx.x; i < end; i += kThreads) update.template element<true>(i);
    else
      for (int64_t i = first + threadIdx.x; i < end; i += kThreads) update.template element<false>(i);
  }
};

template <class T> void update_all(Device device, const std::vector<Item<T>>& items, const Factors<Accumulator<T>>& factors) {
  constexpr int64_t kChunk = 32768;
  for (const TensorBatch<Item<T>>& batch : make_batches(items, device == Device::cpu ? kChunk : Kernel<T>::kChunk)) {
    if (device != Device::cpu) {
      launch("adamw", device, {batch.chunks(), Kernel<T>::kThreads}, Kernel<T>{batch, factors});
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
template <class T> void update_dtype(const std::vector<OptimizerTensor>& tensors, const AdamWStep& s) {
  using A = Accumulator<T>;
  std::vector<Item<T>> items;
  for (const OptimizerTensor& t : tensors) {
    const double keep = s.decoupled ? 1 - s.learning_rate * t.weight_decay : 1, l2 = s.decoupled ? 0 : t.weight_decay;
    if (!t.grad || t.value.dtype() != dtype_of<T>) continue;
    items.push_back({t.value.data<T>(), t.master ? t.master.data<A>() : nullptr, t.m.data<A>(), t.v.data<A>(), t.grad.data<T>(),
                     t.value.size(), static_cast<A>(keep), static_cast<A>(l2)});
  }
  if (items.empty()) return;
  const double step = static_cast<double>(s.step), correction1 = 1 - std::pow(s.beta1, step), correction2 = 1 - std::pow(s.beta2, step);
  update_all<T>(tensors[0].value.device(), items,
                {static_cast<A>(s.gradient_scale), static_cast<A>(1 - s.beta1), static_cast<A>(s.beta2), static_cast<A>(1 - s.beta2),
                 static_cast<A>(-s.learning_rate / correction1), static_cast<A>(std::sqrt(correction2)), static_cast<A>(s.eps)});
}

}  // namespace adamw_kernels

using namespace adamw_kernels;

HOST void adamw_update(const std::vector<OptimizerTensor>& tensors, const AdamWStep& step, const char* file, int line) {
  if (step.step < 1) fail("adamw: steps count from 1, got {}", {step.step});
  check_tensors("adamw", tensors, {.m = true, .v = true});
  update_dtype<float>(tensors, step);
  update_dtype<double>(tensors, step);
  update_dtype<bf16>(tensors, step);
  mark_written(tensors, file, line);
}

CUDA_KERNEL(Kernel<float>);
CUDA_KERNEL(Kernel<double>);
CUDA_KERNEL(Kernel<bf16>);

}  // namespace ricci
