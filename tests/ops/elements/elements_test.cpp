// Arithmetic with broadcasting, and dropout.
#include "core/philox.h"
#include "ops/elements/arithmetic.h"
#include "ops/elements/broadcast.h"
#include "ops/elements/dropout.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

using Binary = Tensor (*)(const Arg&, const Arg&);
struct Case {
  std::string name;
  Binary op;
  double (*value)(double a, double b);
  double (*da)(double a, double b);  // derivatives
  double (*db)(double a, double b);
};
double one(double, double) { return 1; }
const Case cases[] = {
    {"add", add, [](double a, double b) { return a + b; }, one, one},
    {"subtract", subtract, [](double a, double b) { return a - b; }, one, [](double, double) { return -1.0; }},
    {"multiply", multiply, [](double a, double b) { return a * b; }, [](double, double b) { return b; },
        [](double a, double) { return a; }},
    {"divide", divide, [](double a, double b) { return a / b; }, [](double, double b) { return 1 / b; },
        [](double a, double b) { return -a / (b * b); }},
};

// The index in a tensor of shape `x` for element i of `shape`.
size_t source(const Shape& x, const Shape& shape, int64_t i) {
  int64_t at = 0, step = 1;
  for (int d = shape.rank() - 1, k = x.rank() - 1; k >= 0; --d, --k) {
    at += x[k] == 1 ? 0 : i % shape[d] * step;
    step *= x[k];
    i /= shape[d];
  }
  return static_cast<size_t>(at);
}

const std::pair<Shape, Shape> shapes[] = {
    {{}, {}},
    {{1}, {1, 1}},
    {{37}, {37}},
    {{3, 5, 7}, {3, 5, 7}},
    {{3, 5, 7}, {7}},
    {{3, 5, 7}, {}},
    {{}, {3, 5}},
    {{3, 5, 7}, {5, 1}},
    {{3, 5, 7}, {3, 1, 7}},
    {{3, 1, 7}, {1, 5, 1}},
    {{5, 1}, {1, 6}},
    {{1, 1, 4}, {2, 3, 1}},
    {{2, 1, 3, 1, 2, 1}, {1, 3, 1, 2, 1, 3}},
    {{4, 0, 3}, {1, 3}},
    {{3, 1}, {3, 0}},
};

}  // namespace

TEST_CASE("values and gradients with every kind of broadcasting") {
  for (const Case& c : cases) {
    CAPTURE(c.name);
    for (const auto& [each_a_shape, each_b_shape] : shapes) {
      const auto &a_shape = each_a_shape, &b_shape = each_b_shape;
      const Shape shape = broadcast_shape("test", a_shape, b_shape);
      on_every_device_and_dtype([&](Device device, Dtype dtype) {
        const Tensor a = drawn(a_shape, dtype, device, 1), dy = drawn(shape, dtype, device, 3);
        Values away_from_zero = values_of(drawn(b_shape, dtype, device, 2));
        for (double& v : away_from_zero) v += v < 0 ? -0.5 : 0.5;
        const Tensor b = tensor_of(away_from_zero, b_shape, dtype, device);
        const Values av = values_of(a), bv = values_of(b), dyv = values_of(dy);
        Values y, da(av.size()), db(bv.size()), size_a(av.size()), size_b(bv.size());
        for (int64_t i = 0; i < shape.size(); ++i) {
          const size_t at_a = source(a_shape, shape, i), at_b = source(b_shape, shape, i);
          y.push_back(c.value(av[at_a], bv[at_b]));
          const double to_a = dyv[static_cast<size_t>(i)] * c.da(av[at_a], bv[at_b]);
          const double to_b = dyv[static_cast<size_t>(i)] * c.db(av[at_a], bv[at_b]);
          da[at_a] += to_a, size_a[at_a] += std::abs(to_a);
          db[at_b] += to_b, size_b[at_b] += std::abs(to_b);
        }
        const Tensor got = c.op(a, b);
        CHECK(got.shape() == shape);
        CHECK(error_of(got, y) <= 2 * unit(dtype));
        const auto grads = gradients_of([&](const std::vector<Tensor>& in) { return c.op(in[0], in[1]); }, {a, b}, dy);
        const double terms = static_cast<double>(shape.size());
        const double bound = 5 * unit(dtype) + terms * sum_unit(dtype);  // a few roundings per term
        CHECK(grads[0].shape() == a_shape);
        CHECK(grads[1].shape() == b_shape);
        CHECK(error_of(grads[0], da, size_a) <= bound);
        CHECK(error_of(grads[1], db, size_b) <= bound);
      });
    }
  }
}

TEST_CASE("more elements than a chunk, the same bits for any number of threads") {
  for (const auto& [a_shape, b_shape] :
      {std::pair<Shape, Shape>{{211, 307}, {307}}, {{211, 307}, {211, 1}}, {{64777}, {}}, {{40, 1, 40}, {41, 1}}}) {
    const Tensor a = drawn(a_shape, Dtype::f32, Device::cpu, 1), b = drawn(b_shape, Dtype::f32, Device::cpu, 2);
    const Shape shape = broadcast_shape("test", a_shape, b_shape);
    const Values av = values_of(a), bv = values_of(b);
    Values expected;
    for (int64_t i = 0; i < shape.size(); ++i) expected.push_back(av[source(a_shape, shape, i)] * bv[source(b_shape, shape, i)]);
    CHECK(error_of(multiply(a, b), expected) <= unit(Dtype::f32));
    check_threads([a = a, b = b] { return std::vector<Tensor>{multiply(a, b)}; });
  }
}

TEST_CASE("scale and the operators") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    const Tensor x = drawn({3, 11}, dtype, device, 5), dy = drawn({3, 11}, dtype, device, 6);
    Values scaled = values_of(x), slope = values_of(dy);
    for (double& v : scaled) v *= -0.375;
    for (double& v : slope) v *= -0.375;
    CHECK(error_of(x * -0.375, scaled) <= unit(dtype));
    CHECK(error_of(gradients_of([](const std::vector<Tensor>& in) { return -0.375 * in[0]; }, {x}, dy)[0], slope) <= unit(dtype));
    CHECK(same_bits(x / 2.0, x * 0.5));
    CHECK(same_bits(-x, x * -1.0));
    CHECK(same_bits(x + x, x * 2.0));
    CHECK(error_of(x - x, Values(33)) == 0);
    CHECK(same_bits(x * x, multiply(x, x)));
    CHECK(same_bits(x / x, divide(x, x)));
  });
}

TEST_CASE("divide: the gradient of a tiny divisor of 0 is 0") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    const double tiny = dtype == Dtype::f64 ? 1e-310 : 1e-40;
    const Tensor a = tensor_of({0, 0, 1, 0}, {4}, dtype, device), b = tensor_of({tiny, -tiny, tiny, 0}, {4}, dtype, device);
    const Tensor dy = tensor_of({1, -1, 1, 1}, {4}, dtype, device);
    const auto of = [](const std::vector<Tensor>& in) { return divide(in[0], in[1]); };
    const Values db = values_of(gradients_of(of, {a, b}, dy)[1]);
    CHECK((db[0] == 0 && db[1] == 0 && db[2] == -HUGE_VAL && std::isnan(db[3])));
  });
}

TEST_CASE("operators know their caller") {
  const Parameter x{tensor_of({HUGE_VAL}, {1}, Dtype::f32, Device::cpu), {}, "x"};
  const std::string message = message_of([&] {
    Tape tape({.find_nonfinite = true});
    x - x;
  });
  CHECK(message == "subtract (" __FILE__ ":" + std::to_string(__LINE__ - 2) + "): 1 of 1 elements of its result are NaN or infinite");
}

TEST_CASE("messages") {
  const Tensor a({2, 3}), b({4, 3}), wide({3}, Dtype::f64), nothing;
  CHECK(message_of([&] { add(a, b); }) == "add: [2 3] and [4 3] do not broadcast (the extents 2 and 4 are neither equal nor 1)");
  CHECK(message_of([&] { divide(a, wide); }) == "divide: a is f32 on cpu, but b is f64 on cpu");
  CHECK(message_of([&] { multiply(a, Tensor({3}, Dtype::f32, Device::cuda_emulated)); }) ==
        "multiply: a is f32 on cpu, but b is f32 on cuda_emulated");
  CHECK(message_of([&] { subtract(a, nothing); }) == "subtract: b is empty");
  CHECK(message_of([&] { subtract(nothing, a); }) == "subtract: a is empty");
  CHECK(message_of([&] { broadcast(a, {3}); }) == "broadcast: [2 3] cannot be repeated to [3]");
}

// ---- Dropout

namespace {

// 1 where the element stays: the definition.
Values naive_mask(int64_t n, Philox random, double p) {
  Values mask;
  for (int64_t i = 0; i < n; ++i) mask.push_back(random.bits(static_cast<uint64_t>(i)) >= p * 0x1p32 ? 1 : 0);
  return mask;
}

}  // namespace

TEST_CASE("dropout: the mask is the definition's on every device, forward and backward") {
  for (int64_t n : {1, 3, 4, 5, 1027}) {
    on_every_device_and_dtype([&](Device device, Dtype dtype) {
      for (double p : {0.0, 0.1, 0.75}) {
        set_random_state({42, 7});
        const Tensor x = drawn({n}, dtype, device, 1), dy = drawn({n}, dtype, device, 2);
        const Values mask = naive_mask(n, {42, 7}, p);
        Values y = values_of(x), dx = values_of(dy);
        for (size_t i = 0; i < mask.size(); ++i) y[i] *= mask[i] / (1 - p), dx[i] *= mask[i] / (1 - p);
        CHECK(error_of(dropout(x, p), y) <= 2 * unit(dtype));
        CHECK(random_state() == RandomState{42, 8});
        set_random_state({42, 7});
        const Tensor gradient = gradients_of([&](const std::vector<Tensor>& in) { return dropout(in[0], p); }, {x}, dy)[0];
        CHECK(error_of(gradient, dx) <= 2 * unit(dtype));
        CHECK(random_state() == RandomState{42, 8});
      }
    });
  }
}

TEST_CASE("dropout: of a part that does not start at a whole four of elements") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    const Tensor all = drawn({3, 41}, dtype, device, 3), part = all.rows(1, 2);
    const Tensor copied = like(part);
    copy(copied, part);
    set_random_state({1, 0});
    const Tensor y = dropout(part, 0.3);
    set_random_state({1, 0});
    CHECK(same_bits(y, dropout(copied, 0.3)));
  });
}

TEST_CASE("dropout: each call draws again, the state brings a call back, threads change nothing") {
  const Tensor x = drawn({50, 1001}, Dtype::f32, Device::cpu, 4);
  const auto two_calls = [&] {
    set_random_state({9, 0});
    const Tensor first = dropout(x, 0.5);
    return std::vector<Tensor>{first, dropout(x, 0.5)};
  };
  const std::vector<Tensor> both = two_calls();
  CHECK_FALSE(same_bits(both[0], both[1]));
  check_threads(two_calls);
}

TEST_CASE("dropout: no element of a NaN disappears, and messages") {
  on_every_device([](Device device) {
    const Tensor x = tensor_of(Values(40, NAN), {40}, Dtype::f32, device);
    for (double v : values_of(dropout(x, 0.5))) CHECK(std::isnan(v));
  });
  CHECK(dropout(Tensor({0}), 0.5).size() == 0);
  CHECK(message_of([] { dropout(Tensor({2}), 1); }) == "dropout: p is 1, expected 0 or more and less than 1");
  CHECK(message_of([] { dropout(Tensor({2}), -0.5); }) == "dropout: p is -0.5, expected 0 or more and less than 1");
  CHECK(message_of([] { dropout(Tensor({2}), NAN); }) == "dropout: p is nan, expected 0 or more and less than 1");
}
