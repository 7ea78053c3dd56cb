// The gradient checks of every op, in one list: the tests and ricci-check run them on every device. A new op adds its
// line in one of the checks_*.cpp; an op that is recorded somewhere and missing here fails the source scan.
#pragma once
#include <functional>
#include <vector>

#include "autograd/arg.h"
#include "autograd/gradcheck.h"

namespace ricci {

// How an input is drawn.
struct CheckInput {
  enum class Kind { normal, positive, eighths, integers } kind = Kind::normal;
  Shape shape;
  int64_t below = 0;  // integers: drawn from [0, below)
};
inline CheckInput normal(Shape shape) { return {CheckInput::Kind::normal, shape, 0}; }
inline CheckInput positive(Shape shape) { return {CheckInput::Kind::positive, shape, 0}; }  // in [0.5, 1.5)
inline CheckInput eighths(Shape shape) {
  return {CheckInput::Kind::eighths, shape, 0};
}  // multiples of 1/8 in [-2, 2): exact in every dtype
inline CheckInput integers(Shape shape, int64_t below) { return {CheckInput::Kind::integers, shape, below}; }

struct OpCheck {
  const char* op;    // the name given to record()
  const char* what;  // what is special about this case
  std::vector<CheckInput> inputs;
  CheckedFunction run;
  double h = 1e-5;  // how far elements are moved
};

// gradcheck of one case on one device.
GradCheck run_check(const OpCheck& check, Device device);

const std::vector<OpCheck>& op_checks();

std::vector<Parameter> draw_inputs(const OpCheck& check, Device device);

// Names that are recorded but have no gradient on purpose; backward through them throws.
const std::vector<const char*>& ops_without_backward();

}  // namespace ricci
