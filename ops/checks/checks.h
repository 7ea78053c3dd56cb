// The gradient checks of every op, in one list: the tests and `ricci check` run them on every device. Add a line for a new op in one of the
// files of this folder. A test fails if a recorded op is missing.
#pragma once
#include <type_traits>
#include <vector>

#include "autograd/arg.h"
#include "autograd/gradcheck.h"

namespace ricci {

// One input of a check, and how its values are sampled.
struct CheckInput {
  enum class Kind { normal, positive, eighths, integers } kind = Kind::normal;
  Shape shape;
  int64_t below = 0;  // integers: sampled from [0, below)
};
inline CheckInput normal(Shape shape) { return {CheckInput::Kind::normal, shape, 0}; }
inline CheckInput positive(Shape shape) { return {CheckInput::Kind::positive, shape, 0}; }  // in [0.5, 1.5)
inline CheckInput eighths(Shape shape) { return {CheckInput::Kind::eighths, shape, 0}; }    // k/8 in [-2, 2): exact in every dtype
inline CheckInput integers(Shape shape, int64_t below) { return {CheckInput::Kind::integers, shape, below}; }

using CheckInputs = const std::vector<Parameter>&;

// The checked function: an op, or a lambda of the inputs that returns one or more tensors.
struct CheckedCall : CheckedFunction {
  template <class F>
  CheckedCall(F f)
      : CheckedFunction([f](CheckInputs x) -> std::vector<Tensor> {
          if constexpr (std::is_invocable_v<F, const Arg&>) {
            return {f(x[0])};
          } else if constexpr (std::is_invocable_v<F, const Arg&, const Arg&>) {
            return {f(x[0], x[1])};
          } else if constexpr (std::is_invocable_v<F, const Arg&, const Arg&, const Arg&>) {
            return {f(x[0], x[1], x[2])};
          } else if constexpr (std::is_convertible_v<std::invoke_result_t<F, CheckInputs>, Tensor>) {
            return {f(x)};
          } else {
            const auto ys = f(x);
            return {ys.begin(), ys.end()};
          }
        }) {}
};

struct OpCheck {
  const char* op;       // the name given to record()
  const char* variant;  // for example "odd sizes" or "no bias"
  std::vector<CheckInput> inputs;
  CheckedCall run;
  double h = 1e-5;  // the step of the finite differences
};

GradCheck run_check(const OpCheck& check, Device device);

const std::vector<OpCheck>& op_checks();

std::vector<Parameter> draw_inputs(const OpCheck& check, Device device);

// Names of ops that are deliberately recorded without a gradient; a backward pass through them throws.
const std::vector<const char*>& ops_without_backward();

// ---- The parts of the list, one in each file
void add_element_checks(std::vector<OpCheck>& all);  // formulas over single elements, shapes
void add_row_checks(std::vector<OpCheck>& all);      // softmax, cross-entropy, layer norm, sums; means over positions, coarser scales
void add_product_checks(std::vector<OpCheck>& all);  // contract, linear, feed-forward, classifier, embedding, recomputation
void add_mixing_checks(std::vector<OpCheck>& all);   // attention, metric scores, shift-and-sum

// Returns an i64 tensor [n], or an empty tensor if `values` is empty.
Tensor integers_on(const std::vector<int64_t>& values, Device device);
// Returns the targets with every third one replaced by "no target".
Tensor with_gaps(const Tensor& targets_r);

}  // namespace ricci
