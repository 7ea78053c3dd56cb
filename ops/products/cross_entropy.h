// Cross-entropy of logits, and their gradient in place of them: one row at a time, for ops/products/classifier.cu.
//   nll_r = log sum_v exp(l_rv) - l_r[target_r]
//   dl_rv = (exp(l_rv) / sum_v exp(l_rv) - [v = target_r]) / counted         rows without target: nll 0, dl 0
#pragma once
#include <algorithm>

#include "core/view.h"
#include "cuda/math.h"
#include "cuda/verbs/bf16_pieces.h"
#include "cuda/verbs/rows.h"

namespace ricci {
namespace classifier_kernels {

constexpr int64_t kNoTarget = -1;
HD bool in_vocabulary(int64_t target, int64_t vocabulary) { return target >= 0 && target < vocabulary; }

// One row of logits becomes its loss and, in place, the gradient of the logits. A target outside the vocabulary makes the loss NaN.
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
    if (target == kNoTarget) {  // the whole row agrees on this
      row.once([&] { nll_r[r] = 0; });
      if (gradient) row.each([&](int64_t v) { l_rv(r, v) = T(A(0)); });
      return;
    }
    const A most = row.max([&](int64_t v) { return A(l_rv(r, v)); });
    const A sum = row.sum([&](int64_t v) { return math::exp(A(l_rv(r, v)) - most); });
    row.once([&] {
      nll_r[r] = in_vocabulary(target, row.n) ? double(math::log(sum)) + double(most) - double(A(l_rv(r, target))) : __builtin_nan("");
    });
    if (!gradient) return;
    const A share = A(1 / *counted), factor = share / sum;
    row.each([&](int64_t v) {
      const A p = math::exp(A(l_rv(r, v)) - most) * factor;
      l_rv(r, v) = T(v == target ? p - share : p);
    });
  }
  HD void clear_padding(int64_t r, int64_t v) const {
    for (; v < l_rv.extent[1]; ++v) l_rv(r, v) = T(A(0));
  }
};

// The same for bf16 on the GPU, 16 bytes at a time. In one pass each thread finds the maximum of its logits and the sum of their
// exponentials relative to it; the block combines them. A second pass writes the gradient, and finds the row in the L2 cache.
//   bytes 4 V per row of V logits: 65,536 rows of 50,257 on an H200: 13 GB at 4.8 TB/s 2.7 ms, which is also the floor
struct CrossEntropyOfPieces {
  static constexpr int kThreads = 1024;
  static constexpr float kLog2E = 1.44269504088896340736f, kLowest = -__builtin_huge_valf();
  bf16* l_rv;  // rows on 16 bytes
  int64_t pitch, vocabulary;
  const int64_t* target_r;
  const double* counted;
  double* nll_r;
  bool gradient;

  struct Seen {
    float most, sum;
  };

  static int threads(int64_t pitch) { return static_cast<int>(std::min<int64_t>(kThreads, (pitch / kPiece + 31) / 32 * 32)); }

  __device__ void operator()() const {
    const int64_t r = blockIdx.x, target = target_r[r];
    bf16* const l_v = l_rv + r * pitch;
    const Seen row = target == kNoTarget ? Seen{} : over_block(seen_by_thread(l_v));  // the whole block agrees on the target
    if (threadIdx.x == 0) nll_r[r] = target == kNoTarget ? 0 : loss(row, l_v, target);
    __syncthreads();  // the target's logit has been read
    if (gradient) write_gradient(row, l_v, target);
  }

  __device__ double loss(const Seen& row, const bf16* l_v, int64_t target) const {
    return in_vocabulary(target, vocabulary) ? double(math::log(row.sum)) + double(row.most) - double(float(l_v[target]))
                                             : __builtin_nan("");
  }

  __device__ Seen seen_by_thread(const bf16* l_v) const {
    Seen seen{kLowest, 0};
    for (int64_t v = int64_t{threadIdx.x} * kPiece; v < vocabulary; v += blockDim.x * kPiece) {
      float l[kPiece];
      load(l_v, v, l);
      float most = seen.most;
      for (int i = 0; i < kPiece; ++i) most = __builtin_fmaxf(most, l[i]);
      if (most > seen.most) seen = {most, seen.sum * power(seen.most, most)};
      for (int i = 0; i < kPiece; ++i) seen.sum += power(l[i], seen.most);
    }
    return seen;
  }
  __device__ static Seen over_block(const Seen& seen) {
    const float most = block_reduce(seen.most, Max{}, kLowest);
    return {most, block_reduce(seen.sum * power(seen.most, most), Sum{}, 0.0f)};
  }

  __device__ void write_gradient(const Seen& row, bf16* l_v, int64_t target) const {
    const float share = static_cast<float>(1 / *counted), factor = share / row.sum;
    for (int64_t v = int64_t{threadIdx.x} * kPiece; v < pitch; v += blockDim.x * kPiece) {
      float l[kPiece];
      load(l_v, v, l);
      for (int i = 0; i < kPiece; ++i) {
        const float p = power(l[i], row.most) * factor;
        const float gradient = v + i == target ? p - share : p;
        l[i] = target == kNoTarget || v + i >= vocabulary ? 0 : gradient;
      }
      store_piece(l_v + v, l);
    }
  }

  // e^(l - most). Where all logits so far are -infinity, or there were none, most is -infinity, and 0 stands in for it.
  __device__ static float power(float l, float most) {
    return ptx::exp2_approx(math::fma(l, kLog2E, most > kLowest ? -kLog2E * most : 0.0f));
  }
  // A logit of the padding reads as -infinity.
  __device__ void load(const bf16* l_v, int64_t first, float (&l)[kPiece]) const {
    load_piece(l_v + first, l);
    if (first + kPiece <= vocabulary) return;
    for (int i = 0; i < kPiece; ++i) l[i] = first + i < vocabulary ? l[i] : kLowest;
  }
};

}  // namespace classifier_kernels
}  // namespace ricci
