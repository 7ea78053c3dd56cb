// Spoils one returned gradient at a time by one per cent. A gradient check that still passes would prove nothing: each
// (op, input) that some check covers must be noticed by one of that op's checks.
#include "autograd/mutation.h"

#include <cstdio>
#include <exception>
#include <set>
#include <string>
#include <utility>

#include "ops/checks/checks.h"

using namespace ricci;

namespace {

constexpr double kTolerance = 1e-6;

double error_of(const OpCheck& check) { return run_check(check, Device::cpu).worst; }

// Every (op, input) that a check of that op gives a gradient.
std::set<std::pair<std::string, size_t>> gradients_of_ops() {
  std::set<std::pair<std::string, size_t>> found;
  for (const OpCheck& check : op_checks())
    for (size_t input = 0; input < 8; ++input) {
      mutation = {check.op, input};
      error_of(check);
      if (mutation.happened) found.emplace(check.op, input);
    }
  return found;
}

bool is_noticed(const std::string& op, size_t input) {
  for (const OpCheck& check : op_checks()) {
    if (op != check.op) continue;
    mutation = {check.op, input};
    if (error_of(check) > kTolerance && mutation.happened) return true;
  }
  return false;
}

}  // namespace

int main() {
  try {
    int missed = 0, noticed = 0;
    for (const auto& [op, input] : gradients_of_ops()) {
      if (is_noticed(op, input)) {
        ++noticed;
      } else {
        ++missed;
        std::printf("a wrong gradient of input %zu of %s passes every check\n", input, op.c_str());
      }
    }
    std::printf("%d spoilt gradients noticed, %d missed\n", noticed, missed);
    return missed == 0 && noticed > 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::printf("mutation test: %s\n", error.what());
    return 1;
  }
}
