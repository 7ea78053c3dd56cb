#include "ops/sgd.h"

#include "tests/ops/optimizer_cases.h"

using namespace ricci;

namespace {

struct Scalar {
  double x, m = 0;
};

// The velocity v = -lr m of Sutskever et al. 2013, (3) and (4), with the look-ahead point as x:
//   x' = x + v' for heavy ball, and for Nesterov x' = x + mu v' - lr g, where v' = mu v - lr g.
void paper(Scalar& s, double gradient, const SgdStep& o, double weight_decay) {
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
        const SgdStep step{.learning_rate = 0.05, .momentum = momentum, .nesterov = nesterov, .gradient_scale = 0.5};
        for (uint64_t k = 1; k <= 5; ++k) {
          t.grad = drawn({n}, dtype, device, 10 + k);
          const Values gradient = values_of(t.grad);
          for (size_t i = 0; i < expected.size(); ++i) paper(expected[i], gradient[i], step, t.weight_decay);
          sgd_update({t}, step);
        }
        Values x, m;
        for (const Scalar& s : expected) x.push_back(s.x), m.push_back(s.m);
        check_after_five_steps(t, x, momentum != 0 ? m : Values(), {});
      }
    }
  });
}

TEST_CASE("sgd: many tensors of different sizes and dtypes in one call are as many calls") {
  check_together(drawn_with_momentum, [](const auto& list) { sgd_update(list, {.learning_rate = 0.5, .momentum = 0.9}); });
  check_together(drawn_plain, [](const auto& list) { sgd_update(list, {.learning_rate = 0.5}); });
}

TEST_CASE("sgd: the same bits for any number of threads") {
  check_threads(drawn_with_momentum, [](const auto& list) { sgd_update(list, {.momentum = 0.9, .nesterov = true}); });
}

TEST_CASE("sgd: messages") {
  OptimizerTensor t = drawn_plain(3, Dtype::f32, Device::cpu, 9, 0);
  t.grad = drawn({3}, Dtype::f32, Device::cpu, 10);
  CHECK(message_of([&] { sgd_update({t}, {.momentum = 0.9}); }) == "sgd: m of tensor 0 is empty");
  CHECK(message_of([&] { sgd_update({t}, {.nesterov = true}); }) == "sgd: nesterov needs a momentum above 0");
  OptimizerTensor other = t;
  other.grad = drawn({3}, Dtype::f64, Device::cpu, 10);
  CHECK(message_of([&] { sgd_update({t, other}, {}); }) == "sgd: grad of tensor 1 is f64 [3] on cpu, expected f32 [3] on cpu");
  other = t;
  other.master = t.value;
  CHECK(message_of([&] { sgd_update({other}, {}); }) == "sgd: tensor 0 is f32, which has no master weights");
}
