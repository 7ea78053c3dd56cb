#include "autograd/tape.h"

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <string>

#include "autograd/record.h"
#include "core/error.h"
#include "core/memory/memory.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "ops/elements/activations.h"
#include "ops/elements/arithmetic.h"
#include "ops/rows/reduce.h"

using namespace ricci;

namespace {

Tensor vector_of(std::initializer_list<double> values) {
  Tensor t({static_cast<int64_t>(values.size())}, Dtype::f64);
  int64_t i = 0;
  for (double v : values) t.data<double>()[i++] = v;
  return t;
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) {
  CAPTURE(text);
  return text.find(part) != text.npos;
}

Tensor nearest_integer(const Arg& x) { return record("nearest_integer", {x}, like(x), keep(), no_backward); }
Tensor wrong_count(const Arg& x) {
  return record("wrong_count", {x}, like(x), keep(), [](const Tensor& dy) -> Grads { return {dy, dy}; });
}
Tensor wrong_dtype(const Arg& x) {
  return record("wrong_dtype", {x}, like(x), keep(), [](const Tensor& dy) -> Grads { return {convert(dy, Dtype::f32)}; });
}
Tensor forgotten(const Arg& x) {
  return record("forgotten", {x}, like(x), keep(), [](const Tensor&) -> Grads { return {Tensor()}; });
}

// Its backward asks about the gradient of its second input, whatever that is.
Tensor asks_for_dtype(const Arg& x, const Arg& y) {
  return record("asks_for_dtype", {x, y}, like(x), keep(), [](const Tensor& dy) -> Grads { return {dy, convert(dy, gradient_dtype(1))}; });
}
Tensor takes_gradient(const Arg& x, const Arg& y) {
  return record("takes_gradient", {x, y}, like(x), keep(), [](const Tensor& dy) -> Grads { return {dy, take_gradient(1)}; });
}

}  // namespace

TEST_CASE("a backward that asks about the gradient of a constant is told that there is none") {
  const Parameter p{vector_of({1, 2}), {}, "p"};
  using Op = Tensor (*)(const Arg&, const Arg&);
  for (auto [name, f] : {std::pair<std::string, Op>{"asks_for_dtype", asks_for_dtype}, {"takes_gradient", takes_gradient}}) {
    const std::string message = message_of([f = f, &p] {
      Tape tape;
      tape.backward(sum(f(p, vector_of({3, 4}))));
    });
    CHECK(contains(message, "backward of " + name + " ("));
    CHECK(contains(message, "): it asks about the gradient of input 1, which is a constant"));
  }
}

TEST_CASE("a frozen parameter is a constant: nothing is recorded for it alone, and no gradient reaches it") {
  Parameter p{vector_of({1, 2, 3}), {}, "p"}, q{vector_of({4, 5, 6}), {}, "q"};
  q.frozen = true;
  Tape tape;
  const Tensor constant = multiply(q, q);
  CHECK(tape.op_names().empty());
  tape.backward(sum(multiply(p, constant)));
  CHECK(!q.grad);
  for (int64_t i = 0; i < 3; ++i) CHECK(p.grad.data<double>()[i] == static_cast<double>((i + 4) * (i + 4)));
}

TEST_CASE("without a tape nothing is recorded, and gradients add up over uses and tapes") {
  const Parameter p{vector_of({1, 2, 3}), {}, "p"};
  const Tensor free = multiply(p, p);
  CHECK(free.data<double>()[2] == 9);
  for (int round = 1; round <= 2; ++round) {
    Tape tape;
    tape.backward(sum(multiply(p, p)));
    CHECK(p.grad.data<double>()[1] == 4 * round);
  }
}

TEST_CASE("a tape inside a tape, and NoTape") {
  const Parameter p{vector_of({2}), {}, "p"};
  Tape outer;
  const Tensor y = multiply(p, p);
  {
    Tape inner;
    inner.backward(sum(multiply(p, p)));
    CHECK(p.grad.data<double>()[0] == 4);
  }
  {
    const NoTape off;
    CHECK(Tape::recording() == nullptr);
    CHECK_FALSE(outer.has(multiply(p, p)));
  }
  CHECK(Tape::recording() == &outer);
  outer.backward(sum(y));
  CHECK(p.grad.data<double>()[0] == 8);
}

TEST_CASE("a second backward is an error") {
  const Parameter p{vector_of({1, 2}), {}, "p"};
  Tape tape;
  const Tensor loss = sum(p);
  tape.backward(loss);
  CHECK(message_of([&] { tape.backward(loss); }) == "backward: already called on this tape; what it kept is freed");
}

TEST_CASE("backward wants a scalar of its own tape") {
  const Parameter p{vector_of({1, 2}), {}, "p"};
  Tape tape;
  CHECK(message_of([&] { tape.backward(add(p, p)); }) == "backward: the loss must be a scalar, got [2]");
  CHECK(message_of([&] { tape.backward(vector_of({1}).reshaped({})); }) == "backward: the loss [] was not recorded on this tape");
}

TEST_CASE("backward wants a gradient of each output, which fits it") {
  const Parameter p{vector_of({1, 2}), {}, "p"};
  Tape tape;
  const Tensor y = add(p, p), z = multiply(p, p), dy = vector_of({1, 1});
  auto message = [&](const std::vector<Tensor>& ys, const std::vector<Tensor>& dys) { return message_of([&] { tape.backward(ys, dys); }); };
  CHECK(message({y, z}, {dy}) == "backward: 2 outputs, but 1 gradients of them");
  CHECK(message({y}, {dy, dy}) == "backward: 1 outputs, but 2 gradients of them");
  CHECK(message({y, z}, {dy, Tensor()}) == "backward: the gradient of the loss [2] is empty");
  CHECK(message({y, z}, {dy, vector_of({1})}) == "backward: the gradient f64 [1] on cpu does not fit the loss f64 [2] on cpu");
  CHECK(message({y, z}, {dy, convert(dy, Dtype::f32)}) == "backward: the gradient f32 [2] on cpu does not fit the loss f64 [2] on cpu");
  CHECK(message({y, z}, {dy, to(dy, Device::cuda_emulated)}) ==
        "backward: the gradient f64 [2] on cuda_emulated does not fit the loss f64 [2] on cpu");
  CHECK_FALSE(p.grad);
  CHECK(message({y, z, y}, {dy, dy, dy}) == "no error");
  CHECK(p.grad.data<double>()[1] == 2 + 4 + 2);
}

TEST_CASE("an op without a backward says so, and where it was called") {
  const Parameter p{vector_of({1, 2}), {}, "p"};
  Tape tape;
  const Tensor loss = sum(nearest_integer(p));
  const std::string message = message_of([&] { tape.backward(loss); });
  CHECK(contains(message, "backward of nearest_integer (" __FILE__ ":"));
  CHECK(contains(message, "this op has no backward"));
}

TEST_CASE("what a backward returns is checked") {
  const Parameter p{vector_of({1, 2}), {}, "p"};
  auto backward_through = [&](Tensor (*op)(const Arg&)) {
    return message_of([&] {
      Tape tape;
      tape.backward(sum(op(p)));
    });
  };
  CHECK(contains(backward_through(wrong_count), "2 gradients for 1 inputs"));
  CHECK(contains(backward_through(wrong_dtype), "the gradient of input 0 is f32 on cpu, the input f64 on cpu"));
  CHECK(contains(backward_through(forgotten), "no gradient for input 0"));
}

TEST_CASE("a parameter changed between forward and backward is noticed, both places named") {
  const Parameter p{vector_of({1, 2}), {}, "p"};
  Tape tape;
  const Tensor loss = sum(p * p);
  p.value.written("optimizer.cpp", 42);
  const std::string message = message_of([&] { tape.backward(loss); });
  CHECK(contains(message, "backward of multiply (" __FILE__ ":"));
  CHECK(contains(message, "a tensor [2] it kept was changed at optimizer.cpp:42 after the forward"));
}

TEST_CASE("broadcast gradients are summed back") {
  const Parameter a{vector_of({1, 2, 3, 4, 5, 6}).reshaped({2, 3}), {}, "a"}, b{vector_of({10, 20, 30}), {}, "b"};
  Tape tape;
  tape.backward(sum(multiply(a, b)));
  CHECK(b.grad.shape() == Shape({3}));
  CHECK(b.grad.data<double>()[0] == 5);
  CHECK(b.grad.data<double>()[2] == 9);
  CHECK(a.grad.data<double>()[4] == 20);
}

TEST_CASE("a gradient shared by two inputs is not overwritten when it is added to") {
  const Parameter a{vector_of({1}), {}, "a"}, b{vector_of({1}), {}, "b"};
  Tape tape;
  const Tensor s = add(a, b);
  tape.backward(sum(add(s, scale(a, 3))));
  CHECK(a.grad.data<double>()[0] == 4);
  CHECK(b.grad.data<double>()[0] == 1);
}

TEST_CASE("NaN and infinity are traced to the op and its caller") {
  const Parameter p{vector_of({1, std::numeric_limits<double>::infinity()}), {}, "p"};
  const std::string message = message_of([&] {
    Tape tape({.find_nonfinite = true});
    scale(p, 2);
  });
  CHECK(contains(message, "scale (" __FILE__ ":"));
  CHECK(contains(message, "1 of 2 elements of its result are NaN or infinite"));
}

TEST_CASE("print shows a line per op with parameter paths and bytes kept") {
  const Parameter p{vector_of({1, 2, 3}), {}, "blocks.0.fc.weight"};
  Tape tape;
  gelu(p);
  CHECK(tape.kept_bytes() == 24);
  std::FILE* file = std::tmpfile();
  tape.print(file);
  std::rewind(file);
  char line[200] = {};
  CHECK(std::fgets(line, sizeof line, file));
  std::fclose(file);
  CHECK(contains(line, "gelu"));
  CHECK(contains(line, "<- blocks.0.fc.weight"));
  CHECK(contains(line, "keeps 24 bytes"));
}

TEST_CASE("watched tensors have gradients, zero when nothing reached them") {
  Tape tape;
  const Tensor x = tape.watch(vector_of({3})), unused = tape.watch(vector_of({5, 6}));
  tape.backward(sum(multiply(x, x)));
  CHECK(tape.gradient_of(x).data<double>()[0] == 6);
  CHECK(tape.gradient_of(unused).data<double>()[1] == 0);
}

TEST_CASE("memory that a tape kept is free after its end") {
  const Parameter p{vector_of({1, 2, 3}), {}, "p"};
  const int64_t before = memory_use(Device::cpu).current;
  {
    Tape tape;
    gelu(gelu(gelu(p)));
    CHECK(memory_use(Device::cpu).current > before);
  }
  CHECK(memory_use(Device::cpu).current == before);
}
