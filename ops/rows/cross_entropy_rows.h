// The row programs of cross_entropy.cu and of ops/products/classifier.cu. The classifier overwrites the logits with their gradient, so
// twice the rows fit into memory.
//   nll_r = log sum_v exp(l_rv) - l_r[target_r]
//   dl_rv = (exp(l_rv) / sum_v exp(l_rv) - [v = target_r]) / counted         rows without target: nll 0, dl 0
#pragma once
#include <algorithm>

#include "core/error.h"
#include "core/memory/dry_run.h"
#include "core/view.h"
#include "cuda/math.h"
#include "cuda/verbs/bf16_pieces.h"
#include "cuda/verbs/rows.h"

namespace ricci {
namespace cross_entropy_kernels {

constexpr int64_t kNoTarget = -1;
HD bool in_vocabulary(int64_t target, int64_t vocabulary) { return target >= 0 && target < vocabulary; }

// The two logits are subtracted first: added to a large logit, the logarithm would be rounded away.
template <class A> HD double nll_of(A largest, A sum, A l_target) { return double(math::log(sum)) + (double(largest) - double(l_target)); }

// Checks targets on the CPU only: on other devices the op would have to wait for them. `message` has fields for the target, its row and v.
inline void check_targets(const char* message, const Tensor& targets_r, int64_t vocabulary) {
  if (targets_r.device() != Device::cpu || is_dry_run()) return;
  const int64_t* target_r = targets_r.data<int64_t>();
  for (int64_t r = 0; r < targets_r.size(); ++r)
    if (target_r[r] != kNoTarget && !in_vocabulary(target_r[r], vocabulary)) fail(message, {target_r[r], r, vocabulary});
}

// The number of rows with a target, at least 1 (a divisor).
struct CountTargets {
  const int64_t* target_r;
  double* counted;
  template <class Row> HD void operator()(int64_t, Row row) const {
    const double n = row.sum([&](int64_t r) { return target_r[r] == kNoTarget ? 0.0 : 1.0; });
    row.once([&] { *counted = n > 0 ? n : 1; });
  }
};

// loss = sum_r nll_r / counted
struct MeanLoss {
  const double *nll_r, *counted;
  double* loss;
  template <class Row> HD void operator()(int64_t, Row row) const {
    const double sum = row.sum([&](int64_t r) { return nll_r[r]; });
    row.once([&] { *loss = sum / *counted; });
  }
};

// Turns a row of logits into its loss and, in place, into the gradient of the logits. A target outside the vocabulary makes the loss NaN.
template <class T> struct CrossEntropy {
  using A = Accumulator<T>;
  View<T, 2> l_rv;
  const int64_t* target_r;
  const double* counted;
  double* nll_r;
  bool gradient;

  template <class Row> HD void operator()(int64_t r, Row row) const {
    const int64_t target = target_r[r];
    if (gradient) row.once([&] { clear_padding(r, row.n); });
    if (target == kNoTarget) {  // all threads of the row have the same target
      row.once([&] { nll_r[r] = 0; });
      if (gradient) row.each([&](int64_t v) { l_rv(r, v) = T(A(0)); });
      return;
    }
    const A largest = row.max([&](int64_t v) { return A(l_rv(r, v)); });
    const A sum = row.sum([&](int64_t v) { return math::exp(A(l_rv(r, v)) - largest); });
    row.once([&] { nll_r[r] = in_vocabulary(target, row.n) ? nll_of(largest, sum, A(l_rv(r, target))) : __builtin_nan(""); });
    if (!gradient) return;
    const A share = A(1 / *counted), factor = share / sum;
    row.each([&](int64_t v) {
      const A p = math::exp(A(l_rv(r, v)) - largest) * factor;
      l_rv(r, v) = T(v == target ? p - share : p);
    });
  }
  HD void clear_padding(int64_t r, int64_t v) const {
    for (; v < l_rv.extent[1]; ++v) l_rv(r, v) = T(A(0));
  }
};

// CrossEntropy for bf16 on the GPU, 16 bytes at a time. In one pass each thread finds the maximum of its logits and the sum of their
// exponentials relative to this maximum, and the block combines the results. A second pass, from the L2 cache, writes the gradient. Column
// indices have 32 bits. Only packs at the end of the vocabulary test for padding. No pack tests for the target; a second write corrects the
// target's gradient.
//   bytes   4 V per row of V logits
//   floor   65,536 rows of 50,257 on an H200: 13 GB at 4.8 TB/s 2.7 ms
struct CrossEntropyOfPieces {
  static constexpr int kThreads = 1024;
  static constexpr float kLog2E = 1.44269504088896340736f, kLowest = -__builtin_huge_valf();
  bf16* l_rv;  // rows begin on 16-byte boundaries
  int pitch, vocabulary;
  const int64_t* target_r;
  const double* counted;
  double* nll_r;
  bool gradient;

  struct Seen {
    float largest, sum;
  };

  static int threads(int64_t pitch) { return static_cast<int>(std::min<int64_t>(kThreads, (pitch / kPiece + 31) / 32 * 32)); }

  __device__ void operator()() const {
    const int64_t r = blockIdx.x, target = target_r[r];
    bf16* const l_v = l_rv + r * pitch;
    if (target == kNoTarget) return leave_out(r, l_v);  // all threads of the block have the same target
    const bool known = in_vocabulary(target, vocabulary);
    // Only the thread that owns the target's pack accesses the target's logit, so no barrier is needed.
    const bool owner = threadIdx.x == (known ? static_cast<unsigned>(target) / kPiece % blockDim.x : 0);
    const float l_target = owner && known ? float(l_v[target]) : 0;
    const Seen row = over_block(seen_by_thread(l_v));
    if (owner) nll_r[r] = known ? nll_of(row.largest, row.sum, l_target) : __builtin_nan("");
    if (!gradient) return;
    const float share = 1 / static_cast<float>(*counted), factor = share / row.sum, shift = shift_of(row.largest);
    write_gradient(l_v, shift, factor);
    if (owner && known) l_v[target] = bf16(power(l_target, shift) * factor - share);
  }

  __device__ void leave_out(int64_t r, bf16* l_v) const {
    if (threadIdx.x == 0) nll_r[r] = 0;
    for (int p = static_cast<int>(threadIdx.x); gradient && p < pitch / kPiece; p += static_cast<int>(blockDim.x))
      ptx::store16(l_v + p * kPiece, {});
  }

  // Calls f(piece) for the thread's packs that end within the vocabulary, then rest(piece) for the others.
  template <class F, class Rest> __device__ void each_piece(F f, Rest rest) const {
    const int step = static_cast<int>(blockDim.x), whole = vocabulary / kPiece, all = pitch / kPiece;
    int p = static_cast<int>(threadIdx.x);
    for (; p < whole; p += step) f(p);
    for (; p < all; p += step) rest(p);
  }

  __device__ Seen seen_by_thread(const bf16* l_v) const {
    Seen seen{kLowest, 0};
    each_piece([&](int p) { see<false>(l_v, p, seen); }, [&](int p) { see<true>(l_v, p, seen); });
    return seen;
  }
  template <bool kAtEnd> __device__ void see(const bf16* l_v, int p, Seen& seen) const {
    float l[kPiece];
    load<kAtEnd>(l_v, p, l);
    float largest = seen.largest;
    for (int i = 0; i < kPiece; ++i) largest = __builtin_fmaxf(largest, l[i]);
    const float shift = shift_of(largest);
    if (largest > seen.largest) seen = {largest, seen.sum * power(seen.largest, shift)};
    for (int i = 0; i < kPiece; ++i) seen.sum += power(l[i], shift);
  }
  __device__ static Seen over_block(const Seen& seen) {
    const float largest = block_reduce(seen.largest, Max{}, kLowest);
    return {largest, block_reduce(seen.sum * power(seen.largest, shift_of(largest)), Sum{}, 0.0f)};
  }

  __device__ void write_gradient(bf16* l_v, float shift, float factor) const {
    each_piece([&](int p) { weigh<false>(l_v, p, shift, factor); }, [&](int p) { weigh<true>(l_v, p, shift, factor); });
  }
  template <bool kAtEnd> __device__ void weigh(bf16* l_v, int p, float shift, float factor) const {
    float l[kPiece];
    load<kAtEnd>(l_v, p, l);
    for (int i = 0; i < kPiece; ++i) l[i] = power(l[i], shift) * factor;
    store_piece(l_v + p * kPiece, l);
  }

  // e^(l - largest) for shift = shift_of(largest). If all logits so far are -infinity, 0 replaces largest.
  __device__ static float power(float l, float shift) { return ptx::exp2_approx(math::fma(l, kLog2E, shift)); }
  __device__ static float shift_of(float largest) { return largest > kLowest ? -kLog2E * largest : 0.0f; }
  // A logit of the padding is -infinity: its exponential is 0.
  template <bool kAtEnd> __device__ void load(const bf16* l_v, int p, float (&l)[kPiece]) const {
    load_piece(l_v + p * kPiece, l);
    if constexpr (kAtEnd)
      for (int i = 0; i < kPiece; ++i) l[i] = p * kPiece + i < vocabulary ? l[i] : kLowest;
  }
};

}  // namespace cross_entropy_kernels
}  // namespace ricci
