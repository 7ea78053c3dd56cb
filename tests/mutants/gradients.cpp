// Multiplies one returned gradient at a time by 1.01. A gradient check that still passes would prove nothing: for each (op, input) that a
// check covers, one of the op's checks must fail. gradients.txt is planted in this program, so its tape calls spoil() for every returned
// gradient.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "autograd/tape.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "ops/checks/checks.h"

extern "C" int ricci_mutant;

namespace ricci {
namespace {

using Gradient = std::pair<std::string, size_t>;  // the op, and the index of its input

Gradient spoilt;
std::set<Gradient> returned;

}  // namespace

void spoil(const char* op, size_t input, Tensor& gradient) {
  returned.emplace(op, input);
  if (spoilt != Gradient(op, input)) return;
  const Tensor wrong = like(gradient);
  copy(wrong, gradient);
  multiply_by(wrong, 1.01);
  gradient = wrong;
}

namespace {

int64_t elements_of(const OpCheck* check) {
  int64_t count = 0;
  for (const CheckInput& input : check->inputs) count += input.shape.size();
  return count;
}

// The checks of each op that compute the gradient, the cheapest first.
std::map<Gradient, std::vector<const OpCheck*>> checks_of_gradients() {
  std::map<Gradient, std::vector<const OpCheck*>> found;
  for (const OpCheck& check : op_checks()) {
    returned.clear();
    const std::vector<Parameter> inputs = draw_inputs(check, Device::cpu);
    Tape tape;
    const std::vector<Tensor> ys = check.run(inputs);
    tape.backward(ys, ys);
    for (const Gradient& gradient : returned)
      if (gradient.first == check.op) found[gradient].push_back(&check);
  }
  for (auto& [gradient, checks] : found)
    std::stable_sort(checks.begin(), checks.end(), [](const auto* a, const auto* b) { return elements_of(a) < elements_of(b); });
  return found;
}

bool passes(const OpCheck& check, const Gradient& with) {
  spoilt = with;
  return run_check(check, Device::cpu).worst <= kGradientTolerance;
}

bool is_noticed(const Gradient& gradient, const std::vector<const OpCheck*>& checks) {
  return std::any_of(checks.begin(), checks.end(), [&](const auto* check) { return passes(*check, {}) && !passes(*check, gradient); });
}

int missed_gradients() {
  ricci_mutant = 1;
  const auto all = checks_of_gradients();
  int missed = 0;
  for (const auto& [gradient, checks] : all) {
    if (is_noticed(gradient, checks)) continue;
    ++missed;
    std::printf("a wrong gradient of input %zu of %s passes every check\n", gradient.second, gradient.first.c_str());
  }
  std::printf("%zu spoilt gradients noticed, %d missed\n", all.size() - static_cast<size_t>(missed), missed);
  return all.empty() ? 1 : missed;
}

}  // namespace
}  // namespace ricci

int main() {
  try {
    return ricci::missed_gradients() > 0;
  } catch (const std::exception& error) {
    std::printf("mutation test: %s\n", error.what());
    return 1;
  }
}
