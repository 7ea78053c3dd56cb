// Three tests of every op. The first compares its backward with finite differences of its forward. The second compares its results and
// gradients on a GPU with those on the CPU, and runs each kernel once, so it also runs on narrower vectors and under sanitizers. The third
// does the same in the emulator's other modes.
#include <doctest/doctest.h>

#include "autograd/tape.h"
#include "cuda/device/device.h"
#include "ops/checks/checks.h"
#include "tests/cuda/emulator/emulator_fixture.h"
#include "tests/ops/values.h"
#include "tests/sanitized.h"
#include "tests/skip.h"

using namespace ricci;

namespace {

// The results of a check, followed by the gradients of its inputs. The gradients of the results are random.
std::vector<Values> results_and_gradients(const OpCheck& check, Device device) {
  std::vector<Parameter> inputs = draw_inputs(check, device);
  Tape tape;
  const std::vector<Tensor> ys = check.run(inputs);
  std::vector<Tensor> dys;
  for (const Tensor& y : ys) dys.push_back(drawn(y.shape(), y.dtype(), device, dys.size()));
  tape.backward(ys, dys);
  std::vector<Values> all;
  for (const Tensor& y : ys) all.push_back(values_of(y));
  for (const Parameter& x : inputs) all.push_back(x.grad ? values_of(x.grad) : Values());
  return all;
}

void check_same(const std::vector<Values>& got, const std::vector<Values>& expected) {
  REQUIRE(got.size() == expected.size());
  for (size_t k = 0; k < expected.size(); ++k) {
    REQUIRE(got[k].size() == expected[k].size());
    double worst = 0, largest = 1;
    for (size_t i = 0; i < got[k].size(); ++i) {
      raise_to(worst, std::abs(got[k][i] - expected[k][i]));
      largest = std::max(largest, std::abs(expected[k][i]));
    }
    CHECK(worst <= 1e-12 * largest);
  }
}

// The emulator's options, and their names.
struct Mode {
  const char* name;
  void (*set)(emu::Options& options);
};
using Order = emu::Options::Order;
const Mode kModes[] = {{"threads in reverse order", [](emu::Options& o) { o.order = Order::reverse; }},
    {"threads in random order", [](emu::Options& o) { o.order = Order::random; }},
    {"isolated blocks", [](emu::Options& o) { o.isolate = true; }}, {"lazy work", [](emu::Options& o) { o.lazy = true; }}};

}  // namespace

// Finite differences on the emulator take minutes and find nothing beyond the first two tests: its results and gradients equal the CPU's to
// 12 digits, and the CPU's are compared with finite differences.
TEST_CASE("every backward is the derivative of its forward" * doctest::skip(test::kSanitized)) {
  on_every_device([](Device device) {
    if (device == Device::cuda_emulated && !test::everything()) return;
    for (const OpCheck& check : op_checks()) {
      INFO("op ", std::string(check.op), ", what ", std::string(check.variant));
      const GradCheck result = run_check(check, device);
      CAPTURE(result.worst_at);
      CHECK(result.worst <= 1e-6);
      CHECK(result.least_norm > 0);
      bool recorded = false;
      for (const std::string& op : result.ops) recorded |= op == check.op;
      CHECK_MESSAGE(recorded, "the op it is named after was not recorded");
    }
  });
}

TEST_CASE("every op has the results and gradients of the CPU on a GPU") {
  on_gpus([](Device device) {
    for (const OpCheck& check : op_checks()) {
      INFO("op ", std::string(check.op), ", what ", std::string(check.variant));
      check_same(results_and_gradients(check, device), results_and_gradients(check, Device::cpu));
    }
  });
}

// Kernels must not depend on the order of their threads, blocks must not see each other's writes, and the CPU must wait before it reads.
TEST_CASE("every backward and its forward compute the same in every mode of the emulator" * doctest::skip(test::kSanitized)) {
  for (const OpCheck& check : op_checks()) {
    INFO("op ", std::string(check.op), ", what ", std::string(check.variant));
    const std::vector<Values> expected = results_and_gradients(check, Device::cpu);
    for (const Mode& mode : kModes) {
      CAPTURE(std::string(mode.name));
      const WithOptions options;
      mode.set(emu::options());
      check_same(results_and_gradients(check, Device::cuda_emulated), expected);
    }
  }
}
