#include "ops/optimizers/adamw.h"

#include "cuda/verbs/arithmetic.h"
#include "ops/elements/arithmetic.h"
#include "tests/ops/optimizers/optimizer_cases.h"

using namespace ricci;

namespace {

struct Step : AdamW {
  double learning_rate = 1e-3, gradient_scale = 1;
  int64_t step = 1;
};

Step number(int64_t step) {
  Step s;
  s.step = step;
  return s;
}

StepNumbers numbers_of(const Step& s, Device device) {
  const StepNumbers now{Tensor({3}, Dtype::f64, device), Tensor({}, Dtype::f64, device)};
  const auto [rate, step_size, correction2] = rates_of(s, s.learning_rate, s.step);
  fill(now.rates, {rate, step_size, correction2}), fill(now.gradient_scale, s.gradient_scale);
  return now;
}

void update(const std::vector<OptimizerTensor>& tensors, const Step& s = {}) {
  adamw_update(tensors, s, numbers_of(s, tensors[0].value.device()));
}

struct Scalar {
  double x, m = 0, v = 0;
};

// As in the paper, with alpha = learning rate and lambda = learning rate * weight decay; or Adam, decay in the gradient.
void paper(Scalar& s, double gradient, const Step& o, double weight_decay) {
  const double t = static_cast<double>(o.step), g = gradient * o.gradient_scale + (o.decoupled ? 0 : weight_decay * s.x);
  s.m = o.beta1 * s.m + (1 - o.beta1) * g;
  s.v = o.beta2 * s.v + (1 - o.beta2) * g * g;
  const double m_hat = s.m / (1 - std::pow(o.beta1, t)), v_hat = s.v / (1 - std::pow(o.beta2, t));
  s.x = s.x - o.learning_rate * m_hat / (std::sqrt(v_hat) + o.eps) - (o.decoupled ? o.learning_rate * weight_decay * s.x : 0);
}

// PyTorch's sequence of operations (torch.optim.AdamW, one tensor), each rounded to T.
template <class T> void torch(T& x, T& m, T& v, T g, const Step& o, double weight_decay) {
  const double t = static_cast<double>(o.step), step_size = o.learning_rate / (1 - std::pow(o.beta1, t));
  x *= static_cast<T>(1 - o.learning_rate * weight_decay);
  m += static_cast<T>(1 - o.beta1) * (g - m);
  v = v * static_cast<T>(o.beta2);
  v += static_cast<T>(1 - o.beta2) * g * g;
  const T denominator = std::sqrt(v) / static_cast<T>(std::sqrt(1 - std::pow(o.beta2, t))) + static_cast<T>(o.eps);
  x += static_cast<T>(-step_size) * m / denominator;
}

OptimizerTensor drawn_state(int64_t n, Dtype dtype, Device device, uint64_t stream, double weight_decay) {
  const Dtype state = dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32;
  return {drawn({n}, dtype, device, stream), {}, zeros({n}, state, device), zeros({n}, state, device), {}, weight_decay};
}

}  // namespace

TEST_CASE("adamw and adam: steps are the paper's, for every dtype, with decay and clipping") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (const auto& [n, decoupled] : {std::pair{1, true}, {5, false}, {4096, false}, {4097, true}}) {
      OptimizerTensor t = drawn_state(n, dtype, device, 1, 0.1);
      if (dtype == Dtype::bf16) t.master = convert(t.value, Dtype::f32);
      std::vector<Scalar> expected;
      for (double x : values_of(t.value)) expected.push_back({x});
      Step step{{.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-6, .decoupled = decoupled}, 0.01, 0.5};
      for (step.step = 1; step.step <= 5; ++step.step) {
        t.grad = drawn_gradient(t, 10 + static_cast<uint64_t>(step.step));
        const Values gradient = values_of(t.grad);
        for (size_t i = 0; i < expected.size(); ++i) paper(expected[i], gradient[i], step, t.weight_decay);
        update({t}, step);
      }
      Values x, m, v;
      for (const Scalar& s : expected) x.push_back(s.x), m.push_back(s.m), v.push_back(s.v);
      check_after_five_steps(t, x, m, v);
    }
  });
}

TEST_CASE("adamw: PyTorch's sequence of operations, element by element") {
  OptimizerTensor t = drawn_state(100, Dtype::f32, Device::cuda_emulated, 2, 0.01);
  Tensor x = to(t.value, Device::cpu), m = to(t.m, Device::cpu), v = to(t.v, Device::cpu);
  Step step{{}, 3e-4};
  for (step.step = 1; step.step <= 3; ++step.step) {
    t.grad = drawn({100}, Dtype::f32, Device::cuda_emulated, 20 + static_cast<uint64_t>(step.step));
    const Tensor g = to(t.grad, Device::cpu);
    update({t}, step);
    for (int64_t i = 0; i < 100; ++i)
      torch(x.data<float>()[i], m.data<float>()[i], v.data<float>()[i], g.data<float>()[i], step, t.weight_decay);
    const Tensor got = to(t.value, Device::cpu);
    for (int64_t i = 0; i < 100; ++i) {  // the last bit may differ where one of the two fuses a product and a sum
      const float expected = x.data<float>()[i];
      CHECK(std::abs(got.data<float>()[i] - expected) <=
            std::abs(std::nextafter(expected, 10 * expected) - expected) * static_cast<float>(step.step));
    }
  }
}

TEST_CASE("adamw: a bf16 value without master weights is rounded at every step") {
  on_every_device([](Device device) {
    OptimizerTensor t = drawn_state(77, Dtype::bf16, device, 3, 0);
    const Values before = values_of(t.value);
    t.grad = drawn({77}, Dtype::bf16, device, 4);
    const Values gradient = values_of(t.grad);
    const Step step{{}, 0.1};
    update({t}, step);
    Values expected;
    for (size_t i = 0; i < before.size(); ++i) {
      Scalar s{before[i]};
      paper(s, gradient[i], step, 0);
      expected.push_back(s.x);
    }
    CHECK(error_of(t.value, expected) <= 1.01 * unit(Dtype::bf16));
  });
}

TEST_CASE("adamw: many tensors of different sizes and dtypes in one call are as many calls") {
  // The rate is large enough for bf16 values to change.
  check_together(drawn_state, [](const auto& list) { update(list, {{}, 0.5}); });
}

TEST_CASE("adamw: tensors begin and end anywhere") {
  check_anywhere(drawn_state, [](const auto& list) { update(list, {{}, 0.5}); });
}

TEST_CASE("adamw: with a scale that is not finite nothing changes") {
  on_every_device([](Device device) {
    for (double scale : {double{NAN}, double{HUGE_VAL}}) {
      OptimizerTensor t = drawn_state(5000, Dtype::f32, device, 5, 0.1);
      t.grad = drawn({5000}, Dtype::f32, device, 6);
      const Tensor zero = zeros({5000}, Dtype::f32, Device::cpu);
      update({t}, {{}, 0.1, scale});
      CHECK(same_bits(to(t.value, Device::cpu), drawn({5000}, Dtype::f32, Device::cpu, 5)));
      CHECK(same_bits(to(t.m, Device::cpu), zero));
      CHECK(same_bits(to(t.v, Device::cpu), zero));
      update({t}, {{}, 0.1});
      CHECK(!same_bits(to(t.m, Device::cpu), zero));
    }
  });
}

TEST_CASE("adamw: the same bits for any number of threads") {
  check_threads(drawn_state, [](const auto& list) { update(list, number(3)); });
}

TEST_CASE("adamw: a tape that kept the value notices, and names the caller") {
  const Parameter p{drawn({3}, Dtype::f32, Device::cpu, 7), drawn({3}, Dtype::f32, Device::cpu, 8), "p"};
  const Tensor m = zeros({3}, Dtype::f32, Device::cpu), v = zeros({3}, Dtype::f32, Device::cpu);
  Tape tape;
  const Tensor y = p * p;
  adamw_update({{p.value, p.grad, m, v, {}, 0}}, {}, numbers_of({}, Device::cpu));
  const std::string message = message_of([&] { tape.backward({y}, {y}); });
  CHECK(message.find("was changed at " __FILE__ ":" + std::to_string(__LINE__ - 2)) != message.npos);
}

TEST_CASE("adamw: messages") {
  OptimizerTensor t = drawn_state(3, Dtype::f32, Device::cpu, 9, 0);
  t.grad = drawn({3}, Dtype::f32, Device::cpu, 10);
  CHECK(message_of([&] { update({t}, number(0)); }) == "adamw: steps count from 1, got 0");
  OptimizerTensor other = t;
  other.grad = drawn({4}, Dtype::f32, Device::cpu, 10);
  CHECK(message_of([&] { update({t, other}); }) == "adamw: grad of tensor 1 is f32 [4] on cpu, expected f32 [3] on cpu");
  other = t;
  other.m = {};
  CHECK(message_of([&] { update({other}); }) == "adamw: m of tensor 0 is empty");
  other = t;
  other.v = drawn({3}, Dtype::f64, Device::cpu, 10);
  CHECK(message_of([&] { update({other}); }) == "adamw: v of tensor 0 is f64 [3] on cpu, expected f32 [3] on cpu");
  other = t;
  other.master = t.m;
  CHECK(message_of([&] { update({other}); }) == "adamw: tensor 0 is f32, which has no master weights");
  StepNumbers now = numbers_of({}, Device::cpu);
  now.rates = Tensor({2}, Dtype::f64);
  CHECK(message_of([&] { adamw_update({t}, {}, now); }) == "adamw: the step's rates are f64 [2] on cpu, expected f64 [3] on cpu");
  now = numbers_of({}, Device::cpu), now.gradient_scale = {};
  CHECK(message_of([&] { adamw_update({t}, {}, now); }) == "adamw: the scale of the gradients is missing");
  other = drawn_state(3, Dtype::f32, Device::cuda_emulated, 9, 0);
  other.grad = other.value;
  CHECK(message_of([&] { update({t, other}); }) == "adamw: tensor 1 is on cuda_emulated, tensor 0 on cpu");
}
