#include "autograd/recompute.h"

#include "core/philox.h"
#include "ops/elements/activations.h"
#include "ops/elements/arithmetic.h"
#include "ops/elements/dropout.h"
#include "ops/embedding/embedding.h"
#include "ops/rows/reduce.h"
#include "ops/shapes/shape_ops.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

// A layer with parameters and dropout, of every kind of dependence: w is used twice, b is broadcast.
struct Layer {
  Parameter w, b;
  Layer(Device device, uint64_t stream)
      : w{drawn({4, 9}, Dtype::f32, device, stream), {}, "w"}, b{drawn({9}, Dtype::f32, device, stream + 1), {}, "b"} {}
  Tensor operator()(const Tensor& x) const { return dropout(gelu(dropout(x * w, 0.3) + b), 0.5) * w; }
};

struct Outcome {
  std::vector<Tensor> tensors;  // y, and the gradients of x and the parameters
  RandomState after;
  int64_t kept_bytes;
};

// Two layers one after the other, each recomputed or not.
Outcome two_layers(Device device, bool again) {
  const Layer first(device, 1), second(device, 3);
  set_random_state({77, 5});
  Tape tape;
  const Tensor x = tape.watch(drawn({4, 9}, Dtype::f32, device, 9));
  Tensor y = x;
  for (const Layer* layer : {&first, &second})
    y = again ? recompute([layer](const std::vector<Tensor>& in) { return (*layer)(in[0]); }, {y}) : (*layer)(y);
  const int64_t kept = kept_bytes(tape);
  const Tensor kept_value = y.detached();
  tape.backward({y}, {drawn({4, 9}, Dtype::f32, device, 10)});
  return {{kept_value, tape.gradient_of(x), first.w.grad, first.b.grad, second.w.grad, second.b.grad}, random_state(), kept};
}

Parameter scalar_parameter(double value) { return {tensor_of({value}, {1}, Dtype::f64, Device::cpu), {}, "p"}; }

}  // namespace

TEST_CASE("recomputation changes no bit, dropout included, and keeps less") {
  on_every_device([](Device device) {
    const Outcome plain = two_layers(device, false), again = two_layers(device, true);
    for (size_t i = 0; i < plain.tensors.size(); ++i) CHECK(same_bits(plain.tensors[i], again.tensors[i]));
    CHECK(plain.after == again.after);  // the forward and the replay leave the same random state
    CHECK(again.kept_bytes == 2 * 4 * 9 * 4);
    CHECK(plain.kept_bytes > 2 * again.kept_bytes);
  });
}

TEST_CASE("parameters inside get their gradients when no input is on the tape") {
  const Tensor ids = ids_of({2, 0, 2}, {1, 3}, Device::cpu), dy = drawn({1, 3, 4}, Dtype::f32, Device::cpu, 1);
  const Parameter table{drawn({3, 4}, Dtype::f32, Device::cpu, 2), {}, "tok"}, same{table.value, {}, "same"};
  Tape tape;
  const Tensor y = recompute([&](const std::vector<Tensor>& in) { return embedding(in[0], table, Tensor()); }, {ids});
  const Tensor z = recompute([&](const std::vector<Tensor>&) { return embedding(ids, same, Tensor()); }, {});
  tape.backward({y, z}, {dy, dy});
  CHECK(table.grad);
  CHECK(same_bits(table.grad, same.grad));
  CHECK(values_of(table.grad)[0] == values_of(dy)[4]);
}

TEST_CASE("f runs once forward and once backward") {
  int calls = 0;
  const Parameter p = scalar_parameter(3);
  const Tensor constant = tensor_of({5}, {1}, Dtype::f64, Device::cpu);
  Tape tape;
  const Tensor y = recompute(
      [&](const std::vector<Tensor>& in) {
        ++calls;
        return in[0] * in[1];
      },
      {p, constant});
  CHECK(calls == 1);
  tape.backward(sum(y));
  CHECK(calls == 2);
  CHECK(values_of(p.grad)[0] == 5);
}

TEST_CASE("without a tape it is a call") {
  const Tensor x = tensor_of({2}, {1}, Dtype::f64, Device::cpu);
  CHECK(values_of(recompute([](const std::vector<Tensor>& in) { return in[0] * in[0]; }, {x}))[0] == 4);
}

TEST_CASE("two results, one of them unused, and one empty") {
  const Parameter p = scalar_parameter(3);
  auto both = [](const std::vector<Tensor>& in) { return std::array<Tensor, 2>{in[0] * in[0], in[0] * 10.0}; };
  auto gradient = [&](const std::function<Tensor()>& loss) {
    p.grad = {};
    Tape tape;
    tape.backward(loss());
    return values_of(p.grad)[0];
  };
  CHECK(gradient([&] {
    const auto [square, tenfold] = recompute(both, {p});
    return sum(square + tenfold);
  }) == 16);
  CHECK(gradient([&] { return sum(recompute(both, {p})[1]); }) == 10);
  CHECK(gradient([&] {
    return sum(recompute([](const std::vector<Tensor>& in) { return std::array<Tensor, 2>{in[0] * 2.0, Tensor()}; }, {p})[0]);
  }) == 2);
}

TEST_CASE("recomputation inside recomputation") {
  auto gradient = [](bool again) {
    const Parameter p{drawn({20}, Dtype::f64, Device::cpu, 1), {}, "p"}, x{drawn({20}, Dtype::f64, Device::cpu, 2), {}, "x"};
    set_random_state({1, 0});
    auto inner = [&](const std::vector<Tensor>& in) { return dropout(in[0] * p, 0.1); };
    auto outer = [&](const std::vector<Tensor>& in) {
      const Tensor h = dropout(in[0] * in[0], 0.2);
      return gelu(again ? recompute(inner, {h}) : inner({h})) * p;
    };
    Tape tape;
    tape.backward(sum(again ? recompute(outer, {x}) : outer({Arg(x)})));
    return std::pair(p.grad, x.grad);
  };
  const auto [dp, dx] = gradient(true);
  CHECK(same_bits(dp, gradient(false).first));
  CHECK(same_bits(dx, gradient(false).second));
  CHECK(error_of(dp, Values(20)) > 0);
  CHECK(error_of(dx, Values(20)) > 0);
}

TEST_CASE("an error inside leaves the random state and the tape as they were") {
  const Parameter p = scalar_parameter(3);
  int calls = 0;
  Tape tape;
  const Tensor loss = sum(recompute(
      [&](const std::vector<Tensor>& in) {
        if (++calls == 2) fail("the replay fails");
        return dropout(in[0], 0.5);
      },
      {p}));
  set_random_state({8, 8});
  CHECK(message_of([&] { tape.backward(loss); }) == "the replay fails");
  CHECK(random_state() == RandomState{8, 8});
  CHECK(Tape::recording() == &tape);
}

TEST_CASE("f must not capture a recorded tensor") {
  for (bool find : {false, true}) {
    const Parameter p = scalar_parameter(3);
    Tape tape({.find_nonfinite = find});
    const Tensor captured = p * p, constant = captured.detached();
    const int line = __LINE__ + 1;
    auto product = [](const std::vector<Tensor>& in, const Tensor& other) { return in[0] * other; };
    const std::string message =
        message_of([&] { tape.backward(sum(recompute([&](const std::vector<Tensor>& in) { return product(in, captured); }, {p}))); });
    CHECK(message == "multiply (" __FILE__ ":" + std::to_string(line) +
                         "): input 1 [1] is recorded on another tape that still waits "
                         "for its backward pass, so the gradient of the input would be lost here; use detached() to discard it");
    Tape again({.find_nonfinite = find});
    again.backward(sum(recompute([&](const std::vector<Tensor>& in) { return product(in, constant); }, {p})));
    CHECK(values_of(p.grad)[0] == 9);
  }
}

TEST_CASE("a changed input is noticed, and a result of another shape") {
  const Parameter p{drawn({4}, Dtype::f32, Device::cpu, 1), {}, "p"};
  {
    Tape tape;
    const Tensor y = sum(recompute([](const std::vector<Tensor>& in) { return gelu(in[0]); }, {p}));
    p.value.written("optimizer.cpp", 7);
    const std::string message = message_of([&] { tape.backward(y); });
    CHECK(message.find("backward of recompute (" __FILE__ ":") == 0);
    CHECK(message.find("changed at optimizer.cpp:7") != message.npos);
  }
  int64_t count = 4;
  Tape tape;
  const Tensor y = sum(recompute([&](const std::vector<Tensor>& in) { return gelu(slice(in[0], 0, 0, count)); }, {p}));
  count = 3;
  CHECK(message_of([&] { tape.backward(y); }) == "backward: the gradient f32 [4] on cpu does not fit the loss f32 [3] on cpu");
}

TEST_CASE("NaN and infinity inside are traced to their op, forward and backward, also if nested") {
  const Parameter p{tensor_of({1e-200}, {1}, Dtype::f64, Device::cpu), {}, "p"};
  using Inputs = const std::vector<Tensor>&;
  // 1e-200 1e300 1e300 is infinite. 1e-200 1e150 1e150 1e150 is finite, but not its derivative.
  auto forward = [](Inputs in) { return scale(scale(scale(in[0], 1e300), 1e300), 0); };
  auto backward = [](Inputs in) { return scale(scale(scale(in[0], 1e150), 1e150), 1e150); };
  auto nested = [&](Inputs in) { return recompute(backward, {in[0]}); };
  auto message = [&](const std::function<Tensor(Inputs)>& f, bool find) {
    return message_of([&] {
      Tape tape({.find_nonfinite = find});
      tape.backward(sum(recompute(f, {p})));
    });
  };
  auto from_here = [](const std::string& text, const char* op) { return text.find(op) != text.npos && text.find(__FILE__) != text.npos; };
  CHECK(from_here(message(forward, true), "scale ("));
  CHECK(message(forward, true).find("of its result") != std::string::npos);
  CHECK(message(forward, false) == "no error");
  for (const std::function<Tensor(Inputs)>& f : {std::function<Tensor(Inputs)>(backward), std::function<Tensor(Inputs)>(nested)}) {
    CHECK(from_here(message(f, true), "scale ("));
    CHECK(message(f, true).find("of a gradient it returned") != std::string::npos);
    CHECK(message(f, false) == "no error");
  }
}
