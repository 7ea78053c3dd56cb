// Spoils one returned gradient at a time by one per cent. A gradient check that still passes would prove nothing: each
// (op, input) that some check covers must be noticed by one of that op's checks.
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "autograd/mutation.h"
#include "ops/checks.h"

using namespace ricci;

namespace {

constexpr double kTolerance = 1e-6;

double error_of(const OpCheck& check) { return run_check(check, Device::cpu).worst; }

// How many inputs of an op were given a gradient during its checks.
std::map<std::string, size_t> gradients_of_ops() {
  std::map<std::string, size_t> most;
  for (const OpCheck& check : op_checks()) {
    for (size_t input = 0; input < 8; ++input) {
      set_mutation(check.op, input);
      error_of(check);
      if (mutation_happened() && most[check.op] < input + 1) most[check.op] = input + 1;
    }
  }
  return most;
}

}  // namespace

int main() {
  try {
    int missed = 0, noticed = 0;
    for (const auto& [op, inputs] : gradients_of_ops()) {
      for (size_t input = 0; input < inputs; ++input) {
        bool seen = false;
        for (const OpCheck& check : op_checks()) {
          if (op != check.op || seen) continue;
          set_mutation(check.op, input);
          seen = error_of(check) > kTolerance;
          if (!mutation_happened()) seen = false;
        }
        seen ? ++noticed : ++missed;
        if (!seen) std::printf("a wrong gradient of input %zu of %s passes every check\n", input, op.c_str());
      }
    }
    std::printf("%d spoilt gradients noticed, %d missed\n", noticed, missed);
    return missed == 0 && noticed > 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::printf("mutation test: %s\n", error.what());
    return 1;
  }
}
