// The update kernels of optimizers. An optimizer defines a rule for one element, a struct built from its options, the rates of the step and
// the tensor:
//   template <class T> struct Rule {
//     const Options& options;
//     const Rates& rates;
//     const OptimizerItem<T>& t;
//     HD auto operator()(auto piece, auto x, auto g) const;      the new x for the gradient g; piece.load(t.m) and piece.store(t.m, m)
//   };                                                           read and write a moment
// On a GPU x and g are packs of 16 bytes, for fast loads (cuda/verbs/pieces.h).
#pragma once
#include "core/view.h"
#include "cuda/math.h"
#include "cuda/verbs/chunks.h"
#include "cuda/verbs/pieces.h"
#include "ops/optimizers/optimizers.h"

namespace ricci {

// An OptimizerTensor as an argument of kernels. An empty tensor is null.
template <class T> struct OptimizerItem {
  using A = Accumulator<T>;
  T* value;
  A *master, *m, *v;
  const T* grad;       // null with a master
  const A* wide_grad;  // the f32 gradient, used with a master
  int64_t n;
  double weight_decay, lr_factor;
};

template <class T, class Rule, class Options> struct OptimizerUpdate {
  using A = Accumulator<T>;
  using Item = OptimizerItem<T>;
  static constexpr int64_t kBlockChunk = 4096, kLoopChunk = 32768;
  Options options;
  const Rates* rates;
  const double* gradient_scale;

  template <class Row> HD void operator()(const Item& t, int64_t begin, Row row) const {
    if (!math::isfinite(*gradient_scale)) return;
    const A scale = static_cast<A>(*gradient_scale);
    const Rule rule{options, *rates, t};
    t.master ? update<true>(t, rule, scale, begin, row) : update<false>(t, rule, scale, begin, row);
  }

 private:
  template <bool kMaster, class Row> HD static void update(const Item& t, const Rule& rule, A scale, int64_t begin, Row row) {
    row.each_piece(
        [&](auto in_chunk) {
          const auto piece = in_chunk.from(begin);
          if constexpr (kMaster) {
            const auto x = rule(piece, piece.load(t.master), piece.load(t.wide_grad) * scale);
            piece.store(t.master, x);
            piece.store(t.value, x);
          } else {
            piece.store(t.value, rule(piece, piece.load(t.value), piece.load(t.grad) * scale));
          }
        },
        t.value, t.master, t.m, t.v, t.grad, t.wide_grad);
  }
};

// Updates the tensors of element type T that have a gradient.
template <class T, class Rule, class Options>
void update_dtype(const char* op, const std::vector<OptimizerTensor>& tensors, const Options& options, const StepNumbers& now) {
  using A = Accumulator<T>;
  std::vector<OptimizerItem<T>> items;
  for (const OptimizerTensor& t : tensors)
    if (t.grad && t.value.dtype() == dtype_of<T>)
      items.push_back({t.value.data<T>(), pointer<A>(t.master), pointer<A>(t.m), pointer<A>(t.v), t.master ? nullptr : t.grad.data<T>(),
          t.master ? t.grad.data<A>() : nullptr, t.value.size(), t.weight_decay, t.lr_factor});
  if (items.empty()) return;
  const OptimizerUpdate<T, Rule, Options> update{
      options, reinterpret_cast<const Rates*>(now.rates.data<double>()), now.gradient_scale.data<double>()};
  for_each_chunk(op, tensors[0].value.device(), items, update);
}

template <template <class> class Rule, class Options>
void update_tensors(const char* op, const std::vector<OptimizerTensor>& tensors, const Options& options, const StepNumbers& now) {
  update_dtype<float, Rule<float>>(op, tensors, options, now);
  update_dtype<double, Rule<double>>(op, tensors, options, now);
  update_dtype<bf16, Rule<bf16>>(op, tensors, options, now);
}

#define CUDA_UPDATE(Rule, Options)                                          \
  CUDA_KERNEL(ChunkKernel<OptimizerUpdate<float, Rule<float>, Options>>);   \
  CUDA_KERNEL(ChunkKernel<OptimizerUpdate<double, Rule<double>, Options>>); \
  CUDA_KERNEL(ChunkKernel<OptimizerUpdate<bf16, Rule<bf16>, Options>>)

}  // namespace ricci
