// The last linear map and the cross-entropy in one op, for a chunk of rows at a time. The logits of a full batch would be the largest
// tensor of a training step.
//   l_rv = x_rd w_vd + bias_v          nll_r = log sum_v exp(l_rv) - l_r[target_r]          loss = sum_r nll_r / counted
//   dl_rv = (exp(l_rv) / sum_v exp(l_rv) - [v = target_r]) / counted         rows without target: nll 0, dl 0
//   dx_rd = dl_rv w_vd,  dw_vd = dl_rv x_rd,  dbias_v = sum_r dl_rv          computed in the forward pass, scaled by dloss later
#include <algorithm>

#include "autograd/record.h"
#include "core/dims.h"
#include "core/view.h"
#include "cuda/device/device.h"
#include "cuda/device/device_memory.h"
#include "cuda/gemm/gemm.h"
#include "cuda/trace.h"
#include "cuda/verbs/arithmetic.h"
#include "cuda/verbs/columns.h"
#include "cuda/verbs/elements.h"
#include "cuda/verbs/rows.h"
#include "ops/products/products.h"
#include "ops/rows/cross_entropy_rows.h"

namespace ricci {
namespace classifier_kernels {

using namespace cross_entropy_kernels;

template <class T> struct BiasGradient {
  using Value = Accumulator<T>;
  static constexpr int kSums = 1;
  View<const T, 2> dl_rv;
  Value* dbias_v;
  HD void add(int64_t r, int64_t v, Value (&sum)[1]) const { sum[0] += Value(dl_rv(r, v)); }
  HD void store(int64_t v, const Value (&sum)[1]) const { dbias_v[v] += sum[0]; }
};

template <class T> struct ScaleBy {
  const T* x;
  T* y;
  const double* factor;
  HD void operator()(int64_t i) const { y[i] = T(Accumulator<T>(x[i]) * Accumulator<T>(*factor)); }
  template <class V> HD auto arrays(V visit) { return visit(x, y); }
};

struct Problem {
  int64_t vocabulary;
  Tensor x_rd, w_vd, bias_v, targets_r;  // w_vd and bias_v are padded, see padded_vocabulary
  Tensor counted, nll_r;
  Tensor dx_rd, dw_vd, dbias_v;  // each is empty if it is not wanted
  bool gradients() const { return dx_rd || dw_vd || dbias_v; }
};

// Returns the number of rows of logits in memory at a time. A few long chunks of similar length are best: each chunk reads the weights and
// adds to their gradient. On the CPU a chunk has at most 32 Mi logits. On a GPU, where products are much faster, a chunk has 1 GiB of
// logits, or 2 GiB if the GPU has more than 40 GiB, and a multiple of 128 rows, to fill tiles.
HOST int64_t rows_per_chunk(Device device, Dtype dtype, int64_t rows, int64_t vocabulary) {
  int64_t held = int64_t{32} << 20;  // logits
  if (device == Device::cuda) {
    const bool large = device_memory(device).total_bytes() > (int64_t{40} << 30);
    held = (int64_t{large ? 2 : 1} << 30) / size_of(dtype);
  }
  const int64_t most = std::max<int64_t>(1, held / std::max<int64_t>(1, vocabulary));
  const int64_t chunks = (rows + most - 1) / most, even = chunks ? (rows + chunks - 1) / chunks : 1;
  return device == Device::cuda ? (even + 127) / 128 * 128 : even;
}

// On a GPU, products are slow if rows do not begin on 16-byte boundaries, as with 50,257 logits in bf16. So the vocabulary is padded with
// unused tokens. Their weights and logits are 0; the softmax does not sum over them, and their gradient is dropped.
inline int64_t padded_vocabulary(Device device, Dtype dtype, int64_t v) {
  if (device == Device::cpu || v * size_of(dtype) % 16 == 0) return v;
  const int64_t unit = v < 4096 ? 8 : 64;
  return (v + unit - 1) / unit * unit;
}
HOST Tensor padded(const Tensor& t, int64_t rows) {
  if (!t || t.shape()[0] == rows) return t.detached();
  Shape shape = t.shape();
  shape.set(0, rows);
  const Tensor wide = zeros(shape, t.dtype(), t.device());
  copy(wide.rows(0, t.shape()[0]), t);
  return wide;
}

// Turns logits into the losses of their rows and, in place, the gradients of the logits.
template <class T> void cross_entropy(const Problem& p, const Tensor& l_rv, int64_t first) {
  const int64_t rows = l_rv.shape()[0], pitch = l_rv.shape()[1];
  const Device device = l_rv.device();
  const int64_t* target_r = p.targets_r.data<int64_t>() + first;
  const double* counted = p.counted.data<double>();
  double* nll_r = p.nll_r.data<double>() + first;
  const bool gradient = p.gradients();
  if constexpr (std::is_same_v<T, bf16>)
    if (device != Device::cpu)
      return launch("classifier_loss", device, {rows, CrossEntropyOfPieces::threads(pitch)},
          CrossEntropyOfPieces{
              l_rv.data<T>(), static_cast<int>(pitch), static_cast<int>(p.vocabulary), target_r, counted, nll_r, gradient});
  for_rows(
      "classifier_loss", device, rows, p.vocabulary, CrossEntropy<T>{{l_rv.data<T>(), {rows, pitch}}, target_r, counted, nll_r, gradient});
}

HOST void run_chunk(const Problem& p, int64_t first, int64_t rows) {
  const Tensor x_rd = p.x_rd.rows(first, rows), l_rv = like(p.x_rd, {rows, p.w_vd.shape()[0]});
  const Device device = x_rd.device();
  gemm(product(l_rv, x_rd, Matrix(p.w_vd).transposed(), p.bias_v));
  trace::end("classifier_loss", "logits", device, x_rd.bytes() + p.w_vd.bytes() + l_rv.bytes());
  with_dtype(l_rv, [&]<class T>(T) {
    cross_entropy<T>(p, l_rv, first);
    if (p.dbias_v)
      for_columns(
          "classifier_loss' bias", device, rows, p.vocabulary, BiasGradient<T>{view<const T, 2>(l_rv), p.dbias_v.data<Accumulator<T>>()});
  });
  trace::end("classifier_loss", "softmax", device, 2 * l_rv.bytes());
  if (p.dx_rd) {
    gemm(product(p.dx_rd.rows(first, rows), l_rv, p.w_vd));
    trace::end("classifier_loss", "dx", device, x_rd.bytes() + p.w_vd.bytes() + l_rv.bytes());
  }
  if (!p.dw_vd) return;
  Gemm dw = product(p.dw_vd, Matrix(l_rv).transposed(), x_rd);
  dw.accumulate = first > 0;
  gemm(dw);
  trace::end("classifier_loss", "dw", device, x_rd.bytes() + (first > 0 ? 2 : 1) * p.dw_vd.bytes() + l_rv.bytes());
}

// Allocates memory for the wanted gradients. With multiple chunks, the gradient of w is summed in dtype `sums`.
HOST void make_gradients(Problem& p, const Arg& x_rd, const Arg& w_vd, const Arg& bias_v, Dtype sums, bool chunks) {
  const Tape* const tape = Tape::recording();
  if (!tape) return;
  if (tape->has(x_rd)) p.dx_rd = like(x_rd);
  if (tape->has(w_vd)) p.dw_vd = like(p.w_vd, p.w_vd.shape(), chunks ? sums : tape->gradient_dtype(w_vd));
  if (p.dw_vd && x_rd.shape()[0] == 0) fill(p.dw_vd, 0);
  if (tape->has(bias_v)) p.dbias_v = zeros(bias_v.shape(), sums, x_rd.device());
}

HOST Tensor scaled(const Tensor& t, const Tensor& factor) {
  if (!t || (factor.device() == Device::cpu && *factor.data<double>() == 1)) return t;
  with_dtype(t, [&]<class T>(T) {
    for_each_element("classifier_loss'", t.device(), t.size(), ScaleBy<T>{t.data<T>(), t.data<T>(), factor.data<double>()});
  });
  return t;
}

}  // namespace classifier_kernels

using namespace classifier_kernels;

HOST Tensor classifier_loss(const Arg& x_rd, const Arg& w_vd, const Arg& bias_v, const Tensor& targets_r) {
  const Dims n = DIMS(x_rd, w_vd, optional(bias_v), i64(targets_r));
  check_targets("classifier_loss: target {} at row {} is outside the vocabulary of {}", targets_r, n['v']);
  const Device device = x_rd.device();
  const Dtype dtype = w_vd.dtype(), sums = sums_of(dtype);  // sums over the chunks, rounded only at the end
  const int64_t v = padded_vocabulary(device, dtype, n['v']), chunk = rows_per_chunk(device, dtype, n['r'], v);
  Problem p{n['v'], x_rd.detached(), padded(w_vd, v), padded(bias_v, v), targets_r, Tensor({}, Dtype::f64, device),
      Tensor({n['r']}, Dtype::f64, device), {}, {}, {}};
  make_gradients(p, x_rd, w_vd, bias_v, sums, n['r'] > chunk);
  for_rows("classifier_loss: count", device, 1, n['r'], CountTargets{targets_r.data<int64_t>(), p.counted.data<double>()});
  for (int64_t first = 0; first < n['r']; first += chunk) run_chunk(p, first, std::min(chunk, n['r'] - first));
  if (p.dw_vd) p.dw_vd = convert(p.dw_vd.rows(0, n['v']), Tape::recording()->gradient_dtype(w_vd));
  Tensor loss({}, Dtype::f64, device);
  for_rows("classifier_loss: mean", device, 1, n['r'], MeanLoss{p.nll_r.data<double>(), p.counted.data<double>(), loss.data<double>()});
  return record("classifier_loss", {x_rd, w_vd, bias_v}, loss, keep(p.dx_rd, p.dw_vd, p.dbias_v),
      [](const Tensor& dloss, const Tensor& dx_rd, const Tensor& dw_vd, const Tensor& dbias_v) -> Grads {
        return {scaled(dx_rd, dloss), scaled(dw_vd, dloss), scaled(dbias_v, dloss)};
      });
}

// Bytes in addition to the row programs (ops/rows/cross_entropy_rows.h): CountTargets and MeanLoss read 8 bytes per row, BiasGradient reads
// the logits once, and ScaleBy reads and writes each gradient once.
CUDA_ROWS(CrossEntropy);
CUDA_KERNEL(CrossEntropyOfPieces);
CUDA_COLUMNS(BiasGradient);
CUDA_ELEMENTS(ScaleBy);

}  // namespace ricci
