// Checks that hold for the update of every optimizer: the tests of adamw and sgd share them.
#pragma once
#include <functional>
#include <vector>

#include "core/cpu/parallel.h"
#include "ops/optimizers/optimizer_tensor.h"
#include "tests/ops/values.h"

namespace ricci {

// A drawn value of n elements with the state that the optimizer needs, without a gradient.
using DrawState = std::function<OptimizerTensor(int64_t n, Dtype dtype, Device device, uint64_t stream, double weight_decay)>;
using Update = std::function<void(const std::vector<OptimizerTensor>&)>;

inline bool same_state(const Tensor& a, const Tensor& b) { return a ? same_bits(a, b) : !b; }

// A drawn gradient as an update takes it: f32 beside a master.
inline Tensor drawn_gradient(const OptimizerTensor& t, uint64_t stream) {
  return drawn(t.value.shape(), t.master ? Dtype::f32 : t.value.dtype(), t.value.device(), stream);
}

// Tensors that begin, and end, anywhere are updated as those that begin on 16 bytes are, and nothing around them.
inline void check_anywhere(const DrawState& draw, const Update& update) {
  on_every_device_and_dtype([&](Device device, Dtype dtype) {
    for (int64_t first : {1, 4, 8})
      for (int64_t n : {24, 4101}) {
        OptimizerTensor t = draw(n, dtype, device, 400, 0.1);
        t.grad = drawn({n}, dtype, device, 401);
        const OptimizerTensor around = draw(first + n + 1, dtype, device, 402, 0.1);
        const auto inside = [&](const Tensor& of) { return of ? of.rows(first, n) : Tensor(); };
        const OptimizerTensor part{.value = inside(around.value),
            .grad = inside(drawn({first + n + 1}, dtype, device, 403)),
            .m = inside(around.m),
            .v = inside(around.v),
            .weight_decay = 0.1};
        copy(part.value, t.value);
        copy(part.grad, t.grad);
        const Values before = values_of(around.value);
        update({t});
        update({part});
        CHECK(same_bits(part.value, t.value));
        CHECK(same_state(part.m, t.m));
        CHECK(same_state(part.v, t.v));
        const Values after = values_of(around.value);
        for (int64_t i = 0; i < first; ++i) CHECK(after[static_cast<size_t>(i)] == before[static_cast<size_t>(i)]);
        CHECK(after.back() == before.back());
      }
  });
}

// 130 tensors of different sizes and dtypes, some without a gradient, one empty: in one call and in a call each.
inline void check_together(const DrawState& draw, const Update& update) {
  on_every_device([&](Device device) {
    std::vector<OptimizerTensor> together, apart;
    for (uint64_t k = 0; k < 130; ++k) {
      const int64_t n = k == 7 ? 0 : k == 60 ? 9001 : static_cast<int64_t>(k % 13 + 1);
      const Dtype dtype = k % 5 == 4 ? Dtype::bf16 : k % 7 == 6 ? Dtype::f64 : Dtype::f32;
      for (auto* list : {&together, &apart}) {
        list->push_back(draw(n, dtype, device, 100 + k, k % 2 ? 0.1 : 0));
        if (k % 11 != 3) list->back().grad = drawn({n}, dtype, device, 300 + k);
      }
    }
    update(together);
    for (const OptimizerTensor& t : apart) update({t});
    for (size_t k = 0; k < together.size(); ++k) {
      const Tensor& value = together[k].value;
      CHECK(same_bits(value, apart[k].value));
      CHECK(same_state(together[k].m, apart[k].m));
      CHECK(same_state(together[k].v, apart[k].v));
      const bool changed = value.size() > 0 && together[k].grad;
      CHECK(same_bits(value, drawn(value.shape(), value.dtype(), device, 100 + k)) == !changed);
    }
  });
}

inline void check_threads(const DrawState& draw, const Update& update) {
  const int before = thread_count();
  std::vector<Tensor> values;
  for (int threads : {1, 3}) {
    set_thread_count(threads);
    OptimizerTensor t = draw(100003, Dtype::f32, Device::cpu, 5, 0.1);
    t.grad = drawn({100003}, Dtype::f32, Device::cpu, 6);
    update({t});
    values.push_back(t.value);
  }
  set_thread_count(before);
  CHECK(same_bits(values[0], values[1]));
}

// Against the definition, after five steps of at most eight roundings each. `expected` are value, m and v; empty: no such state.
inline void check_after_five_steps(const OptimizerTensor& t, const Values& x, const Values& m, const Values& v) {
  const Dtype dtype = t.value.dtype();
  const double bound = 5 * 8 * sum_unit(dtype);
  if (!m.empty()) CHECK(error_of(t.m, m) <= bound);
  if (!v.empty()) CHECK(error_of(t.v, v) <= bound);
  CHECK(error_of(dtype == Dtype::bf16 ? t.master : t.value, x) <= bound);
  CHECK(error_of(t.value, x) <= bound + (dtype == Dtype::bf16 ? unit(dtype) : 0));
}

}  // namespace ricci
