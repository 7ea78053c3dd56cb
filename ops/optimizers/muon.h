#pragma once
#include <vector>

#include "core/choice.h"
#include "ops/optimizers/adamw.h"

namespace ricci {

// The scaling of a matrix's learning rate: see update_parameters.
enum class AdjustLr : uint8_t { original, match_rms_adamw };
constexpr auto choices(AdjustLr) { return std::array{"original", "match_rms_adamw"}; }

struct Muon {
  using Config = Muon;
  static constexpr const char *kName = "muon", *kFirstMoment = "m";
  static constexpr bool kByMatrices = true;
  double momentum = 0.95;
  bool nesterov = true;
  int64_t ns_steps = 5;
  AdjustLr adjust_lr = AdjustLr::original;
  AdamW adamw{};  // updates all other tensors
  Moments moments() const { return adamw.moments(); }
};

// The keys of these options in a run file.
template <class Fields> void visit_fields(Muon& c, const Fields& field) {
  field("momentum", c.momentum, "decay rate of the mean gradient of a matrix").below_one();
  field("nesterov", c.nesterov, "Nesterov's momentum");
  field("ns_steps", c.ns_steps, "Newton-Schulz steps, each of three matrix products").in(1, 99);
  field("adjust_lr", c.adjust_lr,
      "factor of a matrix's lr: sqrt(max(1, rows / columns)), or 0.2 sqrt(max(rows, columns)) for an lr tuned for adamw");
  visit_fields(c.adamw, field);
}

// Returns AdamW's rates for a step.
inline Rates rates_of(const Muon& options, double learning_rate, int64_t step) { return rates_of(options.adamw, learning_rate, step); }

// One step of Muon (Jordan et al. 2024) as torch.optim.Muon does it, for each matrix W of a tensor with row_blocks:
//   m += (1 - momentum) (grad - m),    u = m  or, with nesterov,  m + (1 - momentum) (grad - m)
//   X = u with singular values near 1
//   W = W (1 - learning_rate weight_decay) - learning_rate adjusted X,    adjusted: sqrt(max(1, rows / columns)) (original), or
//                                                                         0.2 sqrt(max(rows, columns)) (match_rms_adamw)
// AdamW updates the other tensors. grad is multiplied by now.gradient_scale. The values are marked as written at the caller's line. A
// tensor with an empty grad is not changed. Errors: as for check_tensors; a bf16 matrix has no master weights, or row_blocks do not cover
// all rows.
void update_parameters(const std::vector<OptimizerTensor>& tensors, const Muon& options, const StepNumbers& now,
    const char* file = __builtin_FILE(), int line = __builtin_LINE());

}  // namespace ricci
