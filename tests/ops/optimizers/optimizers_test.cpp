// AdamW and SGD against their papers, checks for every optimizer's update, and the norm for gradient clipping.
#include <functional>

#include "cuda/verbs/arithmetic.h"
#include "ops/elements/arithmetic.h"
#include "ops/optimizers/adamw.h"
#include "ops/optimizers/muon.h"
#include "ops/optimizers/sgd.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

template <class Options> struct Step : Options {
  double learning_rate = 1e-3, gradient_scale = 1;
  int64_t step = 1;
};
using AdamStep = Step<AdamW>;
using SgdStep = Step<Sgd>;

template <class Options> StepNumbers numbers_of(const Step<Options>& s, Device device) {
  const StepNumbers now{Tensor({3}, Dtype::f64, device), Tensor({}, Dtype::f64, device)};
  const Rates rates = rates_of(s, s.learning_rate, s.step);
  fill(now.rates, {rates.learning_rate, rates.step_size, rates.bias_correction2_sqrt}), fill(now.gradient_scale, s.gradient_scale);
  return now;
}

using Tensors = std::vector<OptimizerTensor>;
template <class Options> void update(const Tensors& tensors, const Step<Options>& s) {
  update_parameters(tensors, s, numbers_of(s, tensors[0].value.device()));
}

struct Scalar {
  double x, m = 0, v = 0;
};

// As in the paper, with alpha = learning rate and lambda = learning rate * weight decay; or Adam, decay in the gradient.
void paper(Scalar& s, double gradient, const AdamStep& o, double weight_decay) {
  const double t = static_cast<double>(o.step), g = gradient * o.gradient_scale + (o.decoupled ? 0 : weight_decay * s.x);
  s.m = o.beta1 * s.m + (1 - o.beta1) * g;
  s.v = o.beta2 * s.v + (1 - o.beta2) * g * g;
  const double m_hat = s.m / (1 - std::pow(o.beta1, t)), v_hat = s.v / (1 - std::pow(o.beta2, t));
  s.x = s.x - o.learning_rate * m_hat / (std::sqrt(v_hat) + o.eps) - (o.decoupled ? o.learning_rate * weight_decay * s.x : 0);
}

// The velocity v = -lr m of Sutskever et al. 2013, (3) and (4), with the look-ahead point as x:
//   x' = x + v' for heavy ball, and for Nesterov x' = x + mu v' - lr g, where v' = mu v - lr g.
void paper(Scalar& s, double gradient, const SgdStep& o, double weight_decay) {
  const double g = gradient * o.gradient_scale + weight_decay * s.x;
  const double velocity = -o.learning_rate * o.momentum * s.m - o.learning_rate * g;
  s.m = o.momentum == 0 ? 0 : -velocity / o.learning_rate;
  s.x += o.nesterov ? o.momentum * velocity - o.learning_rate * g : velocity;
}

// A random value of n elements with the state that the optimizer needs, without a gradient.
OptimizerTensor plain(int64_t n, Dtype dtype, Device device, uint64_t stream, double weight_decay) {
  return {.value = drawn({n}, dtype, device, stream), .weight_decay = weight_decay};
}
OptimizerTensor with_momentum(int64_t n, Dtype dtype, Device device, uint64_t stream, double weight_decay) {
  OptimizerTensor t = plain(n, dtype, device, stream, weight_decay);
  t.m = zeros({n}, dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32, device);
  return t;
}
OptimizerTensor with_moments(int64_t n, Dtype dtype, Device device, uint64_t stream, double weight_decay) {
  OptimizerTensor t = with_momentum(n, dtype, device, stream, weight_decay);
  t.v = zeros(t.m.shape(), t.m.dtype(), device);
  return t;
}

// Every optimizer and state. The rate is large enough for bf16 values to change.
struct Kind {
  const char* name;
  OptimizerTensor (*draw)(int64_t n, Dtype dtype, Device device, uint64_t stream, double weight_decay);
  void (*update)(const Tensors&);
};
const Kind kKinds[] = {{"adamw", with_moments,
                           [](const Tensors& t) {
                             update(t, AdamStep{{}, 0.5});
                           }},
    {"sgd with momentum", with_momentum,
        [](const Tensors& t) {
          update(t, SgdStep{{.momentum = 0.9, .nesterov = true}, 0.5});
        }},
    {"sgd", plain, [](const Tensors& t) {
       update(t, SgdStep{{.momentum = 0}, 0.5});
     }}};

void check_same_state(const OptimizerTensor& a, const OptimizerTensor& b) {
  CHECK(same_bits(a.value, b.value));
  for (const auto& [x, y] : {std::pair{a.m, b.m}, {a.v, b.v}}) CHECK((x ? same_bits(x, y) : !y));
}

// Five steps against the definition, of at most eight roundings each. With master weights the gradient is f32; without, a bf16 value is
// rounded at every step.
template <class Step> void check_five_steps(OptimizerTensor t, Step step, bool has_master) {
  const Dtype dtype = t.value.dtype();
  if (has_master) t.master = convert(t.value, Dtype::f32);
  std::vector<Scalar> expected;
  for (double x : values_of(t.value)) expected.push_back({x});
  for (step.step = 1; step.step <= 5; ++step.step) {
    t.grad = drawn(t.value.shape(), t.master ? Dtype::f32 : dtype, t.value.device(), static_cast<uint64_t>(10 + step.step));
    const Values gradient = values_of(t.grad);
    for (size_t i = 0; i < expected.size(); ++i) paper(expected[i], gradient[i], step, t.weight_decay);
    update({t}, step);
  }
  Values x, m, v;
  for (const Scalar& s : expected) x.push_back(s.x), m.push_back(s.m), v.push_back(s.v);
  const double bound = 5 * 8 * sum_unit(dtype), rounded = dtype == Dtype::bf16 ? (has_master ? 1 : 5.05) * unit(dtype) : 0;
  if (t.m) CHECK(error_of(t.m, m) <= bound + (has_master ? 0 : rounded));
  if (t.v) CHECK(error_of(t.v, v) <= bound + (has_master ? 0 : rounded));
  if (has_master) CHECK(error_of(t.master, x) <= bound);
  CHECK(error_of(t.value, x) <= bound + rounded);
}

}  // namespace

TEST_CASE("optimizers: steps are the paper's, for every dtype, with decay and clipping, with and without master weights") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (const bool has_master : {false, true}) {
      if (has_master && dtype != Dtype::bf16) continue;
      for (const auto& [n, decoupled] : {std::pair{1, true}, {5, false}, {4097, true}})
        check_five_steps(with_moments(n, dtype, device, 1, 0.1),
            AdamStep{{.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-6, .decoupled = decoupled}, 0.01, 0.5}, has_master);
      for (const auto& [momentum, nesterov] : {std::pair{0.0, false}, {0.9, false}, {0.8, true}})
        for (int64_t n : {5, 4097})
          check_five_steps(
              (momentum != 0 ? with_momentum : plain)(n, dtype, device, 1, 0.1), SgdStep{{momentum, nesterov}, 0.05, 0.5}, has_master);
    }
  });
}

TEST_CASE("optimizers: 130 tensors of different sizes and dtypes in one call are as many calls, and without a gradient nothing changes") {
  for (const Kind& kind : kKinds)
    on_every_device([&](Device device) {
      CAPTURE(std::string(kind.name));
      Tensors together, apart;
      for (uint64_t k = 0; k < 130; ++k) {
        const int64_t n = k == 7 ? 0 : k == 60 ? 9001 : static_cast<int64_t>(k % 13 + 1);
        const Dtype dtype = k % 5 == 4 ? Dtype::bf16 : k % 7 == 6 ? Dtype::f64 : Dtype::f32;
        for (auto* list : {&together, &apart}) {
          list->push_back(kind.draw(n, dtype, device, 100 + k, k % 2 ? 0.1 : 0));
          if (k % 11 != 3) list->back().grad = drawn({n}, dtype, device, 300 + k);
        }
      }
      kind.update(together);
      for (const OptimizerTensor& t : apart) kind.update({t});
      for (size_t k = 0; k < together.size(); ++k) {
        const Tensor& value = together[k].value;
        check_same_state(together[k], apart[k]);
        const bool changed = value.size() > 0 && together[k].grad;
        CHECK(same_bits(value, drawn(value.shape(), value.dtype(), device, 100 + k)) == !changed);
      }
    });
}

TEST_CASE("optimizers: tensors that begin and end anywhere are updated as those that begin on 16 bytes are, and nothing around them") {
  for (const Kind& kind : {kKinds[0], kKinds[1]})
    on_every_device_and_dtype([&](Device device, Dtype dtype) {
      CAPTURE(std::string(kind.name));
      for (const auto& [first, n] : {std::pair<int64_t, int64_t>{1, 24}, {4, 24}, {8, 24}, {1, 4101}, {4, 4101}}) {
        OptimizerTensor t = kind.draw(n, dtype, device, 400, 0.1);
        t.grad = drawn({n}, dtype, device, 401);
        const OptimizerTensor around = kind.draw(first + n + 1, dtype, device, 402, 0.1);
        const auto inside = [&, first = first, n = n](const Tensor& of) { return of ? of.rows(first, n) : Tensor(); };
        const OptimizerTensor part{.value = inside(around.value),
            .grad = inside(drawn({first + n + 1}, dtype, device, 403)),
            .m = inside(around.m),
            .v = inside(around.v),
            .weight_decay = 0.1};
        copy(part.value, t.value), copy(part.grad, t.grad);
        const Values before = values_of(around.value);
        kind.update({t});
        kind.update({part});
        check_same_state(part, t);
        const Values after = values_of(around.value);
        for (size_t i = 0; i < static_cast<size_t>(first); ++i) CHECK(after[i] == before[i]);
        CHECK(after.back() == before.back());
      }
    });
}

TEST_CASE("optimizers: the same bits for any number of threads") {
  for (const Kind& kind : {kKinds[0], kKinds[1]})
    check_threads([&] {
      OptimizerTensor t = kind.draw(100003, Dtype::f32, Device::cpu, 5, 0.1);
      t.grad = drawn({100003}, Dtype::f32, Device::cpu, 6);
      kind.update({t});
      return std::vector<Tensor>{t.value};
    });
}

TEST_CASE("adamw: with a scale that is not finite nothing changes") {
  on_every_device([](Device device) {
    for (double scale : {double{NAN}, double{HUGE_VAL}}) {
      OptimizerTensor t = with_moments(5000, Dtype::f32, device, 5, 0.1);
      const OptimizerTensor before = with_moments(5000, Dtype::f32, device, 5, 0.1);
      t.grad = drawn({5000}, Dtype::f32, device, 6);
      update({t}, AdamStep{{}, 0.1, scale});
      check_same_state(t, before);
      update({t}, AdamStep{{}, 0.1});
      CHECK(!same_bits(t.m, before.m));
    }
  });
}

TEST_CASE("adamw: a tape that kept the value notices, and names the caller") {
  const Parameter p{drawn({3}, Dtype::f32, Device::cpu, 7), drawn({3}, Dtype::f32, Device::cpu, 8), "p"};
  const Tensor m = zeros({3}, Dtype::f32, Device::cpu), v = zeros({3}, Dtype::f32, Device::cpu);
  Tape tape;
  const Tensor y = p * p;
  update_parameters({{p.value, p.grad, m, v, {}, 0}}, AdamW{}, numbers_of(AdamStep{}, Device::cpu));
  const std::string message = message_of([&] { tape.backward({y}, {y}); });
  CHECK(message.find("was changed at " __FILE__ ":" + std::to_string(__LINE__ - 2)) != message.npos);
}

TEST_CASE("adamw and sgd: messages") {
  OptimizerTensor t = with_moments(3, Dtype::f32, Device::cpu, 9, 0);
  t.grad = drawn({3}, Dtype::f32, Device::cpu, 10);
  const auto said = [&](const std::function<void(OptimizerTensor&)>& change) {  // about the second of two tensors
    OptimizerTensor other = t;
    change(other);
    return message_of([&] { update({t, other}, AdamStep{}); });
  };
  CHECK(said([](auto& other) { other.grad = drawn({4}, Dtype::f32, Device::cpu, 10); }) ==
        "adamw: grad of tensor 1 is f32 [4] on cpu, expected f32 [3] on cpu");
  CHECK(said([](auto& other) { other.m = {}; }) == "adamw: m of tensor 1 is empty");
  CHECK(said([](auto& other) { other.v = drawn({3}, Dtype::f64, Device::cpu, 10); }) ==
        "adamw: v of tensor 1 is f64 [3] on cpu, expected f32 [3] on cpu");
  CHECK(said([](auto& other) { other.master = other.m; }) == "adamw: tensor 1 has master weights and is f32, expected bf16");
  CHECK(said([](auto& other) {
    other = with_moments(3, Dtype::f32, Device::cuda_emulated, 9, 0);
    other.grad = other.value;
  }) == "adamw: tensor 1 is on cuda_emulated and tensor 0 is on cpu, expected one device");
  AdamStep first;
  first.step = 0;
  CHECK(message_of([&] { update({t}, first); }) == "adamw: the step is 0, expected 1 or more");
  StepNumbers now = numbers_of(AdamStep{}, Device::cpu);
  now.rates = Tensor({2}, Dtype::f64);
  CHECK(message_of([&] { update_parameters({t}, AdamW{}, now); }) == "adamw: the step's rates are f64 [2] on cpu, expected f64 [3] on cpu");
  now = numbers_of(AdamStep{}, Device::cpu), now.gradient_scale = {};
  CHECK(message_of([&] { update_parameters({t}, AdamW{}, now); }) == "adamw: the scale of the gradients is missing");
  t.m = {};
  CHECK(message_of([&] { update({t}, SgdStep{{.momentum = 0.9}}); }) == "sgd: m of tensor 0 is empty");
  CHECK(message_of([&] { update({t}, SgdStep{{.momentum = 0, .nesterov = true}}); }) ==
        "sgd: momentum is 0, expected more than 0 with nesterov");
}

TEST_CASE("muon: messages") {
  const Tensor value = drawn({4, 2}, Dtype::f32, Device::cpu, 1), narrow = convert(value, Dtype::bf16);
  const auto said = [](const OptimizerTensor& t) { return message_of([&] { update({t}, Step<Muon>{}); }); };
  CHECK(said({.value = value, .grad = value, .m = like(value), .row_blocks = {4}}) == "no error");
  CHECK(said({.value = value, .grad = value, .row_blocks = {4}}) == "muon: m of tensor 0 is empty");
  CHECK(said({.value = value, .grad = value, .m = like(value), .row_blocks = {2, 1}}) ==
        "muon: row_blocks cover 6 elements of tensor [4 2], expected all");
  CHECK(
      said({.value = narrow, .grad = narrow, .m = like(value), .row_blocks = {4}}) == "tensor [4 2]: its elements are bf16, expected f32");
  CHECK(said({.value = value, .grad = value, .m = like(value)}) == "adamw: v of tensor 0 is empty");
}

// ---- The norm of gradients

namespace {

double norm_of(const std::vector<Tensor>& tensors) { return item(gradient_norm(tensors)); }

std::vector<Tensor> drawn_list(Device device) {
  std::vector<Tensor> tensors;
  uint64_t stream = 0;
  for (Shape shape : {Shape{}, Shape{3}, Shape{0}, Shape{16384}, Shape{3, 5, 7}, Shape{16385}, Shape{7, 5001}})
    for (Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f64}) tensors.push_back(drawn(shape, dtype, device, stream++));
  tensors.insert(tensors.begin() + 4, Tensor());
  return tensors;
}

}  // namespace

TEST_CASE("gradient norm: of all elements together, mixed dtypes; more tensors than one launch takes") {
  on_every_device([](Device device) {
    const std::vector<Tensor> tensors = drawn_list(device);
    long double sum = 0;
    for (const Tensor& t : tensors)
      if (t)
        for (double v : values_of(t)) sum += static_cast<long double>(v) * v;
    const double expected = static_cast<double>(std::sqrt(sum));
    CHECK(std::abs(norm_of(tensors) - expected) <= 16384 * 0x1p-53 * expected);
    CHECK(norm_of(std::vector<Tensor>(400, tensor_of({3, 4}, {2}, Dtype::f32, device))) == 100);
  });
  check_threads([] { return std::vector<Tensor>{gradient_norm(drawn_list(Device::cpu))}; });
}

TEST_CASE("gradient norm: small and large numbers, NaN, nothing, messages") {
  on_every_device([](Device device) {
    for (double size : {1e30, 1e-30}) {  // squares beyond f32
      const double norm = norm_of({tensor_of({3 * size, 4 * size}, {2}, Dtype::f32, device)});
      CHECK(std::abs(norm - 5 * size) <= 2 * unit(Dtype::f32) * 5 * size);
    }
    CHECK(std::isnan(norm_of({tensor_of({1, NAN}, {2}, Dtype::f32, device)})));
    CHECK(norm_of({tensor_of({1, HUGE_VAL}, {2}, Dtype::f32, device)}) == HUGE_VAL);
  });
  CHECK(norm_of({}) == 0);
  CHECK(norm_of({Tensor(), Tensor({0})}) == 0);
  CHECK(message_of([] {
    norm_of({Tensor({2}), Tensor({2}, Dtype::f32, Device::cuda_emulated)});
  }) == "gradient_norm: the tensors are on cpu and cuda_emulated, expected one device");
  CHECK(message_of([] { norm_of({Tensor({2}, Dtype::i64)}); }) == "expected a floating-point tensor, got i64 [2]");
}

TEST_CASE("clip factor: clip / norm above clip, else 1; NaN where norm or loss is not finite") {
  on_every_device([](Device device) {
    const auto scalar = [&](double x) { return tensor_of({x}, {}, Dtype::f64, device); };
    const auto factor = [&](double norm, double clip, double loss) { return item(clip_factor(scalar(norm), clip, scalar(loss))); };
    CHECK(factor(3, 1, 5) == 1.0 / 3);
    CHECK(factor(1, 1, 5) == 1);
    CHECK(factor(0.5, 1, 5) == 1);
    CHECK(factor(1e9, 0, 5) == 1);
    CHECK(factor(0, 1, 0) == 1);
    for (double bad : {double{NAN}, HUGE_VAL, -HUGE_VAL}) {
      CHECK(std::isnan(factor(3, 1, bad)));
      CHECK(std::isnan(factor(bad, 1, 5)));
    }
  });
  CHECK(message_of([] { clip_factor(Tensor({}, Dtype::f64), 1, Tensor({}, Dtype::f64, Device::cuda_emulated)); }) ==
        "clip_factor: norm is f64 on cpu, but loss is f64 on cuda_emulated");
  CHECK(message_of([] { clip_factor(Tensor({1}, Dtype::f64), 1, Tensor({2}, Dtype::f64)); }) ==
        "clip_factor: the norm or the loss is f64 [2], expected an f64 scalar");
  CHECK(message_of([] { clip_factor(Tensor(Shape{}), 1, Tensor(Shape{})); }) ==
        "clip_factor: the norm or the loss is f32 [], expected an f64 scalar");
}
