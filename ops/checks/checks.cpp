// The list of checks, and their random inputs, with equal values on every device.
#include "ops/checks/checks.h"

#include <algorithm>

#include "core/random.h"
#include "cuda/device/device.h"

namespace ricci {

const std::vector<OpCheck>& op_checks() {
  static const std::vector<OpCheck> checks = [] {
    std::vector<OpCheck> all;
    for (auto add : {add_element_checks, add_row_checks, add_product_checks, add_mixing_checks}) add(all);
    return all;
  }();
  return checks;
}

const std::vector<const char*>& ops_without_backward() {
  static const std::vector<const char*> names = {"attention_cached", "shift_and_sum_cached"};
  return names;
}

Tensor integers_on(const std::vector<int64_t>& values, Device device) {
  if (values.empty()) return {};
  const Tensor t({static_cast<int64_t>(values.size())}, Dtype::i64);
  std::copy(values.begin(), values.end(), t.data<int64_t>());
  return to(t, device);
}

Tensor with_gaps(const Tensor& targets_r) {
  if (!targets_r || targets_r.dtype() != Dtype::i64) return targets_r;  // the op reports the error
  const Tensor host({targets_r.size()}, Dtype::i64);
  copy(host, targets_r);
  for (int64_t r = 1; r < host.size(); r += 3) host.data<int64_t>()[r] = -1;
  return to(host, targets_r.device());
}

std::vector<Parameter> draw_inputs(const OpCheck& check, Device device) {
  std::vector<Parameter> inputs;
  for (const CheckInput& input : check.inputs) {
    const Philox random{7, inputs.size()};
    const int64_t n = input.shape.size();
    Tensor t(input.shape, input.kind == CheckInput::Kind::integers ? Dtype::i64 : Dtype::f64);
    switch (input.kind) {
      case CheckInput::Kind::normal: fill_normal(t.data<double>(), n, 0.0, 1.0, random); break;
      case CheckInput::Kind::positive: fill_uniform(t.data<double>(), n, 0.5, 1.5, random); break;
      case CheckInput::Kind::eighths:
        for (int64_t i = 0; i < n; ++i) t.data<double>()[i] = static_cast<double>(random.bits(static_cast<uint64_t>(i)) % 32) / 8 - 2;
        break;
      case CheckInput::Kind::integers:
        for (int64_t i = 0; i < n; ++i)
          t.data<int64_t>()[i] = static_cast<int64_t>(random.bits(static_cast<uint64_t>(i)) % static_cast<uint64_t>(input.below));
    }
    inputs.push_back({to(t, device), {}, "input " + std::to_string(inputs.size())});
  }
  return inputs;
}

GradCheck run_check(const OpCheck& check, Device device) { return gradcheck(check.run, draw_inputs(check, device), check.h); }

}  // namespace ricci
