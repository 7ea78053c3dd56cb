#include "ops/optimizers/sgd.h"

#include "cuda/verbs/arithmetic.h"
#include "tests/ops/optimizers/optimizer_cases.h"

using namespace ricci;

namespace {

struct Step : Sgd {
  double learning_rate = 1e-3, gradient_scale = 1;
};

void update(const std::vector<OptimizerTensor>& tensors, const Step& s = {}) {
  const Device device = tensors[0].value.device();
  const StepNumbers now{Tensor({3}, Dtype::f64, device), Tensor({}, Dtype::f64, device)};
  const auto [rate, step_size, correction2] = rates_of(s, s.learning_rate);
  fill(now.rates, {rate, step_size, correction2}), fill(now.gradient_scale, s.gradient_scale);
  sgd_update(tensors, s, now);
}

struct Scalar {
  double x, m = 0;
};

// The velocity v = -lr m of Sutskever et al. 2013, (3) and (4), with the look-ahead point as x:
//   x' = x + v' for heavy ball, and for Nesterov x' = x + mu v' - lr g, where v' = mu v - lr g.
void paper(Scalar& s, double gradient, const Step& o, double weight_decay) {
  const double g = gradient * o.gradient_scale + weight_decay * s.x;
  const double velocity = -o.learning_rate * o.momentum * s.m - o.learning_rate * g;
  s.m = o.momentum == 0 ? 0 : -velocity / o.learning_rate;
  s.x += o.nesterov ? o.momentum * velocity - o.learning_rate * g : velocity;
}

OptimizerTensor drawn_plain(int64_t n, Dtype dtype, Device device, uint64_t stream, double weight_decay) {
  return {.value = drawn({n}, dtype, device, stream), .weight_decay = weight_decay};
}
OptimizerTensor drawn_with_momentum(int64_t n, Dtype dtype, Device device, uint64_t stream, double weight_decay) {
  OptimizerTensor t = drawn_plain(n, dtype, device, stream, weight_decay);
  t.m = zeros({n}, dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32, device);
  return t;
}

}  // namespace

TEST_CASE("sgd: steps are the paper's: plain, momentum, Nesterov; every dtype, with decay and clipping") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (const auto& [momentum, nesterov] : {std::pair{0.0, false}, {0.9, false}, {0.8, true}}) {
      for (int64_t n : {1, 5, 4096, 4097}) {
        OptimizerTensor t = (momentum != 0 ? drawn_with_momentum : drawn_plain)(n, dtype, device, 1, 0.1);
        if (dtype == Dtype::bf16) t.master = convert(t.value, Dtype::f32);
        std::vector<Scalar> expected;
        for (double x : values_of(t.value)) expected.push_back({x});
        const Step step{{momentum, nesterov}, 0.05, 0.5};
        for (uint64_t k = 1; k <= 5; ++k) {
          t.grad = drawn_gradient(t, 10 + k);
          const Values gradient = values_of(t.grad);
          for (size_t i = 0; i < expected.size(); ++i) paper(expected[i], gradient[i], step, t.weight_decay);
          update({t}, step);
        }
        Values x, m;
        for (const Scalar& s : expected) x.push_back(s.x), m.push_back(s.m);
        check_after_five_steps(t, x, momentum != 0 ? m : Values(), {});
      }
    }
  });
}

TEST_CASE("sgd: many tensors of different sizes and dtypes in one call are as many calls") {
  check_together(drawn_with_momentum, [](const auto& list) { update(list, {{.momentum = 0.9}, 0.5}); });
  check_together(drawn_plain, [](const auto& list) { update(list, {{}, 0.5}); });
}

TEST_CASE("sgd: tensors begin and end anywhere") {
  check_anywhere(drawn_with_momentum, [](const auto& list) { update(list, {{.momentum = 0.9}, 0.5}); });
}

TEST_CASE("sgd: the same bits for any number of threads") {
  check_threads(drawn_with_momentum, [](const auto& list) { update(list, {{.momentum = 0.9, .nesterov = true}}); });
}

TEST_CASE("sgd: messages") {
  OptimizerTensor t = drawn_plain(3, Dtype::f32, Device::cpu, 9, 0);
  t.grad = drawn({3}, Dtype::f32, Device::cpu, 10);
  CHECK(message_of([&] { update({t}, {{.momentum = 0.9}}); }) == "sgd: m of tensor 0 is empty");
  CHECK(message_of([&] { update({t}, {{.nesterov = true}}); }) == "sgd: nesterov needs a momentum above 0");
  OptimizerTensor other = t;
  other.grad = drawn({3}, Dtype::f64, Device::cpu, 10);
  CHECK(message_of([&] { update({t, other}); }) == "sgd: grad of tensor 1 is f64 [3] on cpu, expected f32 [3] on cpu");
  other = t;
  other.master = t.value;
  CHECK(message_of([&] { update({other}); }) == "sgd: tensor 0 is f32, which has no master weights");
}
