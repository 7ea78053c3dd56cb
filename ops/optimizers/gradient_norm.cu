// sqrt(sum of x^2): one f64 partial sum per chunk of fixed size, then the sum of these, each in a fixed order. So the norm does not depend
// on the number of threads.
//   bytes   4 n for n f32 gradients, 2 n in bf16; FLOPs 2 n
//   floor   124 million in bf16 on an H200: 0.25 GB at 4.8 TB/s 0.05 ms
#include "core/dims.h"
#include "core/error.h"
#include "cuda/math.h"
#include "cuda/trace.h"
#include "cuda/verbs/chunks.h"
#include "cuda/verbs/elements.h"
#include "ops/optimizers/optimizers.h"

namespace ricci {
namespace gradient_norm_kernels {

inline constexpr int64_t kNormChunk = 16384;  // elements of one partial sum; the last chunk of a tensor can be shorter

template <class T> struct Chunks {
  const T* x;
  int64_t n;
  double* partial;  // the sums of the tensor's chunks
};

template <class T> struct PartialSums {
  using Item = Chunks<T>;
  static constexpr int64_t kBlockChunk = kNormChunk, kLoopChunk = kNormChunk;

  template <class Row> HD void operator()(const Item& t, int64_t begin, Row row) const {
    const T* x = t.x + begin;
    const double sum = row.sum([&](int64_t i) {
      const double value = static_cast<double>(Accumulator<T>(x[i]));
      return value * value;
    });
    row.once([&] { t.partial[begin / kNormChunk] = sum; });
  }
};

struct Root {
  const double* partial;
  double* norm;
  template <class Row> HD void operator()(int64_t, Row row) const {
    const double sum = row.sum([&](int64_t i) { return partial[i]; });
    row.once([&] { *norm = math::sqrt(sum); });
  }
};

struct ClipFactor {
  const double *norm, *loss;
  double clip;
  double* factor;
  HD void operator()(int64_t) const {
    const bool finite = math::isfinite(*norm) && math::isfinite(*loss);
    const double clipped = clip > 0 && *norm > clip ? clip / *norm : 1;
    *factor = finite ? clipped : __builtin_nan("");
  }
};

// The partial sums of the tensors of element type T; the sums of tensor k start at partial + first[k].
template <class T> void sum_dtype(const std::vector<Tensor>& tensors, const std::vector<int64_t>& first, Device device, double* partial) {
  std::vector<Chunks<T>> items;
  for (size_t k = 0; k < tensors.size(); ++k)
    if (tensors[k] && tensors[k].dtype() == dtype_of<T>) items.push_back({tensors[k].data<T>(), tensors[k].size(), partial + first[k]});
  for_each_chunk("gradient_norm", device, items, PartialSums<T>{});
}

}  // namespace gradient_norm_kernels

using namespace gradient_norm_kernels;

HOST Tensor gradient_norm(const std::vector<Tensor>& tensors) {
  Device device = Device::cpu;
  bool found = false;
  std::vector<int64_t> first{0};
  for (const Tensor& t : tensors) {
    first.push_back(first.back() + (t ? (t.size() + kNormChunk - 1) / kNormChunk : 0));
    if (!t) continue;
    if (found && t.device() != device)
      fail("gradient_norm: the tensors are on {} and {}, expected one device", {name_of(device), name_of(t.device())});
    if (t.dtype() == Dtype::i64) fail_not_floating(t);
    device = t.device();
    found = true;
  }
  const Tensor sums({first.back()}, Dtype::f64, device), norm({}, Dtype::f64, device);
  double* const partial = sums.data<double>();
  sum_dtype<float>(tensors, first, device, partial);
  sum_dtype<double>(tensors, first, device, partial);
  sum_dtype<bf16>(tensors, first, device, partial);
  for_rows("gradient_norm", device, 1, sums.size(), Root{partial, norm.data<double>()});
  trace::end("gradient_norm", "", device);
  return norm;
}

HOST Tensor clip_factor(const Tensor& norm, double clip, const Tensor& loss) {
  DIMS(norm, loss);
  for (const Tensor* t : {&norm, &loss})
    if (t->size() != 1 || t->dtype() != Dtype::f64)
      fail("clip_factor: the norm or the loss is {} {}, expected an f64 scalar", {name_of(t->dtype()), show(t->shape())});
  Tensor factor = like(norm);
  for_each_element("clip_factor", norm.device(), 1, ClipFactor{norm.data<double>(), loss.data<double>(), clip, factor.data<double>()});
  return factor;
}

CUDA_KERNEL(ChunkKernel<PartialSums<float>>);
CUDA_KERNEL(ChunkKernel<PartialSums<double>>);
CUDA_KERNEL(ChunkKernel<PartialSums<bf16>>);
CUDA_KERNEL(RowKernel<Root>);
CUDA_KERNEL(ElementKernel<ClipFactor>);

}  // namespace ricci
