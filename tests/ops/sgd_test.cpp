#include "ops/sgd.h"

#include "cuda/parallel.h"
#include "tests/ops/values.h"

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

OptimizerTensor drawn_state(int64_t n, Dtype dtype, Device device, uint64_t stream, bool momentum, double weight_decay) {
  OptimizerTensor t{.value = drawn({n}, dtype, device, stream), .weight_decay = weight_decay};
  if (momentum) t.m = zeros({n}, dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32, device);
  return t;
}

}  // namespace

TEST_CASE("sgd: steps are the paper's: plain, momentum, Nesterov; every dtype, with decay and clipping") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (const auto& [momentum, nesterov] : {std::pair{0.0, false}, {0.9, false}, {0.8, true}}) {
      for (int64_t n : {1, 5, 4096, 4097}) {
        OptimizerTensor t = drawn_state(n, dtype, device, 1, momentum != 0, 0.1);
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
        const double bound = 5 * 8 * sum_unit(dtype);  // five steps of eight roundings
        if (momentum != 0) CHECK(error_of(t.m, m) <= bound);
        CHECK(error_of(dtype == Dtype::bf16 ? t.master : t.value, x) <= bound);
        CHECK(error_of(t.value, x) <= bound + (dtype == Dtype::bf16 ? unit(dtype) : 0));
      }
    }
  });
}

TEST_CASE("sgd: many tensors of different sizes and dtypes in one call are as many calls") {
  on_every_device([](Device device) {
    std::vector<OptimizerTensor> together, apart;
    for (uint64_t k = 0; k < 130; ++k) {
      const int64_t n = k == 7 ? 0 : k == 60 ? 9001 : static_cast<int64_t>(k % 13 + 1);
      const Dtype dtype = k % 5 == 4 ? Dtype::bf16 : k % 7 == 6 ? Dtype::f64 : Dtype::f32;
      for (auto* list : {&together, &apart}) {
        list->push_back(drawn_state(n, dtype, device, 100 + k, true, k % 2 ? 0.1 : 0));
        if (k % 11 != 3) list->back().grad = drawn({n}, dtype, device, 300 + k);
      }
    }
    const SgdStep step{.learning_rate = 0.5, .momentum = 0.9};
    sgd_update(together, step);
    for (const OptimizerTensor& t : apart) sgd_update({t}, step);
    for (size_t k = 0; k < together.size(); ++k) {
      const Tensor& value = together[k].value;
      CHECK(same_bits(value, apart[k].value));
      CHECK(same_bits(together[k].m, apart[k].m));
      CHECK(same_bits(value, drawn(value.shape(), value.dtype(), device, 100 + k)) == !(value.size() > 0 && together[k].grad));
    }
  });
}

TEST_CASE("sgd: the same bits for any number of threads") {
  const int before = thread_count();
  std::vector<Tensor> values;
  for (int threads : {1, 3}) {
    set_thread_count(threads);
    OptimizerTensor t = drawn_state(100003, Dtype::f32, Device::cpu, 5, true, 0.1);
    t.grad = drawn({100003}, Dtype::f32, Device::cpu, 6);
    sgd_update({t}, {.momentum = 0.9, .nesterov = true});
    values.push_back(t.value);
  }
  set_thread_count(before);
  CHECK(same_bits(values[0], values[1]));
}

TEST_CASE("sgd: messages") {
  OptimizerTensor t = drawn_state(3, Dtype::f32, Device::cpu, 9, false, 0);
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
