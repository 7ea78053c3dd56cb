// The update kernels of optimizers: all tensors in few launches, one pass over memory. What an optimizer adds is its rule for
// one element, from the tensor, the step's rates and its own options:
//   template <class T> struct Rule {
//     Rule(const Options& options, const double* rates, const OptimizerItem<T>& t);
//     template <class At, class Number> HD Number operator()(At at, Number x, Number g) const;
//   };                                                the new x, for the gradient g; brings the moments up to date (cuda/verbs/lanes.h)
#pragma once
#include "cuda/math.h"
#include "cuda/verbs/chunks.h"
#include "ops/optimizers/optimizer_tensor.h"

namespace ricci {

// An OptimizerTensor as kernels take it; null where there is none.
template <class T> struct OptimizerItem {
  using A = Accumulator<T>;
  T* value;
  A *master, *m, *v;
  const T* grad;       // null beside a master,
  const A* wide_grad;  // whose gradient is f32
  int64_t n;
  double weight_decay;
};

template <class T> OptimizerItem<T> item_of(const OptimizerTensor& t) {
  using A = Accumulator<T>;
  const auto state = [](const Tensor& s) { return s ? s.data<A>() : nullptr; };
  return {t.value.data<T>(), state(t.master), state(t.m), state(t.v), t.master ? nullptr : t.grad.data<T>(),
      t.master ? t.grad.data<A>() : nullptr, t.value.size(), t.weight_decay};
}

template <class T, class Rule, class Options> struct OptimizerUpdate {
  using A = Accumulator<T>;
  using Item = OptimizerItem<T>;
  static constexpr int64_t kBlockChunk = 4096, kLoopChunk = 32768;
  Options options;
  const double *rates, *gradient_scale;

  template <class Row> HD void operator()(const Item& t, int64_t begin, Row row) const {
    if (!math::isfinite(*gradient_scale)) return;
    const A scale = static_cast<A>(*gradient_scale);
    const Rule rule(options, rates, t);
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
  std::vector<OptimizerItem<T>> items;
  for (const OptimizerTensor& t : tensors)
    if (t.grad && t.value.dtype() == dtype_of<T>) items.push_back(item_of<T>(t));
  if (items.empty()) return;
  const OptimizerUpdate<T, Rule, Options> update{options, now.rates.data<double>(), now.gradient_scale.data<double>()};
  for_each_chunk(op, tensors[0].value.device(), items, update);
}

// The same for every element type.
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
