// The tape: recording, backward and its checks; every helper that changes a kept tensor in place is noticed.
#include "autograd/tape.h"

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "autograd/record.h"
#include "autograd/recording.h"
#include "core/memory/memory.h"
#include "ops/elements/activations.h"
#include "ops/elements/arithmetic.h"
#include "ops/embedding/embedding.h"
#include "ops/rows/reduce.h"
#include "ops/shapes/shape_ops.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

Tensor vector_of(const Values& values) { return tensor_of(values, {static_cast<int64_t>(values.size())}, Dtype::f64, Device::cpu); }

bool contains(const std::string& text, const std::string& part) {
  CAPTURE(text);
  return text.find(part) != text.npos;
}

// The message of the backward of an op named "op" with a parameter [2] and a constant as inputs. `backward` is its backward.
template <class Fn> std::string message_of_backward(Fn backward) {
  const Parameter p{vector_of({1, 2}), {}, "p"};
  return message_of([&] {
    Tape tape;
    tape.backward(sum(record("op", {p, vector_of({3, 4})}, vector_of({5, 6}), keep(), backward)));
  });
}

}  // namespace

TEST_CASE("a wrong backward is an error that names the op and its caller") {
  const auto check = [](const std::string& message, const std::string& expected) {
    CHECK(contains(message, "backward of op (" __FILE__ ":"));
    CHECK(contains(message, expected));
  };
  check(message_of_backward(no_backward), "this op has no backward function");
  check(message_of_backward([](const Tensor& dy) -> Grads { return {dy}; }), "returned 1 gradients, expected 2, one per input");
  check(message_of_backward([](const Tensor&) -> Grads { return {Tensor(), Tensor()}; }), "no gradient for input 0");
  check(message_of_backward([](const Tensor& dy) -> Grads {
    return {convert(dy, Dtype::f32), Tensor()};
  }),
      "the gradient of input 0 is f32 on cpu, expected f64 on cpu");
  const std::string constant = "asked for the gradient of input 1, but that input is a constant";
  check(message_of_backward([](const Tensor& dy) -> Grads { return {dy, convert(dy, gradient_dtype(1))}; }), constant);
  check(message_of_backward([](const Tensor& dy) -> Grads { return {dy, take_gradient(1)}; }), constant);
}

TEST_CASE("a frozen parameter is a constant: an op of frozen parameters is not recorded, and they get no gradient") {
  Parameter p{vector_of({1, 2, 3}), {}, "p"}, q{vector_of({4, 5, 6}), {}, "q"};
  q.frozen = true;
  Tape tape;
  const Tensor constant = multiply(q, q);
  CHECK(tape.nodes().empty());
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

TEST_CASE("backward needs a scalar of its own tape, and runs once") {
  const Parameter p{vector_of({1, 2}), {}, "p"};
  Tape tape;
  CHECK(message_of([&] { tape.backward(add(p, p)); }) == "backward: the loss must be a scalar, got [2]");
  CHECK(message_of([&] { tape.backward(vector_of({1}).reshaped({})); }) == "backward: the loss [] was not recorded on this tape");
  const Tensor loss = sum(p);
  tape.backward(loss);
  CHECK(message_of([&] { tape.backward(loss); }) == "backward: already called on this tape; the tape has freed its kept tensors");
}

TEST_CASE("backward needs a fitting gradient of each output") {
  const Parameter p{vector_of({1, 2}), {}, "p"};
  Tape tape;
  const Tensor y = add(p, p), z = multiply(p, p), dy = vector_of({1, 1});
  auto message = [&](const std::vector<Tensor>& ys, const std::vector<Tensor>& dys) { return message_of([&] { tape.backward(ys, dys); }); };
  CHECK(message({y, z}, {dy}) == "backward: expected 2 gradients, one per output, got 1");
  CHECK(message({y}, {dy, dy}) == "backward: expected 1 gradients, one per output, got 2");
  CHECK(message({y, z}, {dy, Tensor()}) == "backward: the gradient of the loss [2] is empty");
  CHECK(message({y, z}, {dy, vector_of({1})}) == "backward: the gradient f64 [1] on cpu does not fit the loss f64 [2] on cpu");
  CHECK(message({y, z}, {dy, convert(dy, Dtype::f32)}) == "backward: the gradient f32 [2] on cpu does not fit the loss f64 [2] on cpu");
  CHECK(message({y, z}, {dy, to(dy, Device::cuda_emulated)}) ==
        "backward: the gradient f64 [2] on cuda_emulated does not fit the loss f64 [2] on cpu");
  CHECK_FALSE(p.grad);
  CHECK(message({y, z, y}, {dy, dy, dy}) == "no error");
  CHECK(p.grad.data<double>()[1] == 2 + 4 + 2);
}

TEST_CASE("a gradient shared by two inputs is not overwritten when it is added to") {
  const Parameter a{vector_of({1}), {}, "a"}, b{vector_of({1}), {}, "b"};
  Tape tape;
  const Tensor s = add(a, b);
  tape.backward(sum(add(s, scale(a, 3))));
  CHECK(a.grad.data<double>()[0] == 4);
  CHECK(b.grad.data<double>()[0] == 1);
}

TEST_CASE("print shows a line per op with parameter paths and bytes kept, without those of parameters") {
  const Parameter p{vector_of({1, 2, 3}), {}, "blocks.0.fc.weight"};
  Tape tape;
  multiply(gelu(p), p);
  CHECK(kept_bytes(tape) == 24 + 48);
  std::FILE* file = std::tmpfile();
  tape.print(file);
  std::rewind(file);
  for (const char* op : {"gelu", "multiply"}) {
    char line[200] = {};
    CHECK(std::fgets(line, sizeof line, file));
    for (const char* part : {op, "blocks.0.fc.weight", "keeps 24 bytes"}) CHECK(contains(line, part));
  }
  std::fclose(file);
}

TEST_CASE("print after backward is an error: the ops are freed") {
  const Parameter p{vector_of({1, 2, 3}), {}, "p"};
  Tape tape;
  tape.backward(sum(gelu(p)));
  CHECK(message_of([&] { tape.print(stdout); }) == "print: backward has freed the ops of this tape; call print before backward");
}

TEST_CASE("a parameter without a path next to one with a path is an error of backward") {
  const Parameter named{vector_of({1, 2}), {}, "fc.weight"}, unnamed{vector_of({3, 4}), {}};
  const auto error = [&](const Tensor& y, Tape& tape) { return message_of([&] { tape.backward(sum(y)); }); };
  {
    Tape tape;
    const std::string message = error(multiply(named, unnamed), tape);
    CHECK(message.starts_with("backward of multiply ("));
    CHECK(message.ends_with("tape_test.cpp:" + std::to_string(__LINE__ - 2) +
                            "): parameter [2] has no path, so no optimizer updates it; name the parameter in its module's visit line"));
    CHECK(!named.grad);
  }
  {
    Tape tape;
    CHECK(error(multiply(unnamed, unnamed), tape) == "no error");  // a program without modules
    CHECK(unnamed.grad);
  }
}

TEST_CASE("watched tensors have gradients, zero if the loss does not depend on them, and a tape frees what it kept") {
  const int64_t before = memory_use(Device::cpu).current;
  {
    Tape tape;
    const Tensor x = tape.watch(vector_of({3})), unused = tape.watch(vector_of({5, 6}));
    gelu(x);
    CHECK(kept_bytes(tape) > 0);
    tape.backward(sum(x * x));
    CHECK(values_of(tape.gradient_of(x)) == Values{6});
    CHECK(values_of(tape.gradient_of(unused)) == Values{0, 0});
  }
  CHECK(memory_use(Device::cpu).current == before);
}

// ---- Writes

namespace {

struct Writer {
  const char* name;
  int line;  // the line of the write
  std::function<void(const Tensor& y)> write;
};

// None of them changes a value.
std::vector<Writer> writers(Device device) {
  const Tensor ones = tensor_of({1, 1, 1}, {3}, Dtype::f64, device), zero = zeros({3}, Dtype::f64, device), host = to(ones, Device::cpu),
               elsewhere = to(ones, device == Device::cpu ? Device::cuda_emulated : Device::cpu);
  // One line each: __LINE__ must be the line of the write.
  // clang-format off
  return {{"fill", __LINE__, [](const Tensor& y) { fill(y, 1); }},
      {"fill few", __LINE__, [](const Tensor& y) { fill(y, {1, 1, 1}); }},
      {"add_to", __LINE__, [=](const Tensor& y) { add_to(y, zero); }},
      {"multiply_by", __LINE__, [](const Tensor& y) { multiply_by(y, 1); }},
      {"copy", __LINE__, [=](const Tensor& y) { copy(y, ones); }},
      {"copy from another device", __LINE__, [=](const Tensor& y) { copy(y, elsewhere); }},
      {"through a view", __LINE__, [](const Tensor& y) { fill(y.reshaped({3, 1}).rows(1, 1), 1); }}};
  // clang-format on
}

}  // namespace

TEST_CASE("a kept tensor that a helper changes in place is noticed, both places named") {
  on_every_device([](Device device) {
    for (const Writer& writer : writers(device)) {
      CAPTURE(std::string(writer.name));
      const Tensor y = tensor_of({1, 1, 1}, {3}, Dtype::f64, device);
      Tape tape;
      const Tensor x = tape.watch(y);
      const int line = __LINE__ + 1;
      const Tensor loss = sum(x * x);
      writer.write(y);
      CHECK(message_of([&] { tape.backward(loss); }) == "backward of multiply (" __FILE__ ":" + std::to_string(line) +
                                                            "): the kept tensor [3] was changed at " __FILE__ ":" +
                                                            std::to_string(writer.line) + " after the forward pass");
    }
  });
}

TEST_CASE("a write before the forward, a write to a tensor that is not kept, and a write that fails are allowed") {
  on_every_device([](Device device) {
    for (const Writer& writer : writers(device)) {
      CAPTURE(std::string(writer.name));
      const Tensor y = tensor_of({1, 1, 1}, {3}, Dtype::f64, device), other = like(y);
      writer.write(y);
      Tape tape;
      const Tensor x = tape.watch(y);
      const Tensor sum_of_both = x + x;  // add keeps neither
      writer.write(y);
      const Tensor loss = sum(x * sum_of_both);
      writer.write(other);
      CHECK_THROWS_AS(add_to(y, Tensor({2}, Dtype::f64, device)), Error);
      CHECK_THROWS_AS(fill(y, {1, 2}), Error);
      CHECK_THROWS_AS(copy(y, Tensor({2}, Dtype::f64, device)), Error);
      tape.backward(loss);
      CHECK(values_of(tape.gradient_of(x)) == Values{4, 4, 4});
    }
  });
}

TEST_CASE("helpers refuse empty tensors") {
  const Tensor x({1}), none;
  CHECK(message_of([&] { copy(none, x); }) == "copy: dst is empty");
  CHECK(message_of([&] { copy(x, none); }) == "copy: src is empty");
  CHECK(message_of([&] { add_to(none, x); }) == "add_to: y is empty");
  CHECK(message_of([&] { add_to(x, none); }) == "add_to: x is empty");
  CHECK(message_of([&] { item(none); }) == "item: the tensor is empty");
  CHECK(message_of([&] { fill(none, 1); }) == "expected a floating-point tensor, got an empty tensor");
}

// ---- Tapes inside each other, in any order of their ends; views of recorded tensors

namespace {

// The message of an op about an input of a different tape.
std::string lost(const std::string& op, int line, const std::string& input) {
  return op + " (" + __FILE__ + ":" + std::to_string(line) + "): input " + input +
         " is recorded on another tape that still waits for its backward pass, so the gradient of the input would be lost here; use "
         "detached() to discard it";
}

}  // namespace

TEST_CASE("a view of a recorded tensor would lose its gradient: the error says what to do instead") {
  const Tensor values = tensor_of({1, 2, 3, 4, 5, 6}, {2, 3}, Dtype::f64, Device::cpu);
  Tensor y;
  {
    Tape tape;
    const Tensor x = tape.watch(values);
    y = x * 2.0;
    for (const Tensor* t : {&x, static_cast<const Tensor*>(&y)}) {
      CHECK(message_of([&] {
        t->reshaped({3, 2});
      }) == "reshaped: [2 3] is recorded on a tape; use reshape() to pass its gradient on, or detached() to discard it");
      CHECK(message_of([&] { t->rows(1, 1); }) ==
            "rows: [2 3] is recorded on a tape; use slice() to pass its gradient on, or detached() to discard it");
      CHECK(t->detached().reshaped({3, 2}).shape() == Shape({3, 2}));
    }
    CHECK(item(y, 4) == 10);  // reading a value is not a view
    tape.backward(sum(slice(reshape(y, {3, 2}), 0, 1, 1)));
    CHECK(values_of(tape.gradient_of(x)) == Values{0, 0, 2, 2, 0, 0});
  }
  CHECK(message_of([&] { y.rows(1, 1); }) != "no error");  // the tensor does not know that its tape is gone
  CHECK(values_of(y.detached().rows(1, 1)) == Values{8, 10, 12});
  CHECK(values_of(values.rows(1, 1)) == Values{4, 5, 6});
}

TEST_CASE("a tensor of an outer tape is an error in an op while the inner tape records") {
  const Parameter p{vector_of({2, 3}), {}, "p"}, q{vector_of({5, 7}), {}, "q"};
  Tape outer;
  const Tensor y = p * p;
  {
    Tape inner;
    CHECK(message_of([&] { multiply(q, y); }) == lost("multiply", __LINE__, "1 [2]"));
    CHECK(message_of([&] { gelu(y); }) == lost("gelu", __LINE__, "0 [2]"));
    CHECK(message_of([&] { concatenate({q, q, y}, 0); }) == lost("concatenate", __LINE__, "2 [2]"));
    inner.backward(sum(q * y.detached()));
    CHECK(values_of(q.grad) == Values{4, 9});
    CHECK_FALSE(p.grad);
  }
  {
    Tape inner;
    const Tensor leaf = inner.watch(y);  // on purpose
    inner.backward(sum(leaf * leaf));
    CHECK(values_of(inner.gradient_of(leaf)) == Values{8, 18});
  }
  {
    const NoTape unrecorded;
    CHECK(values_of(y * 2.0) == Values{8, 18});
  }
  outer.backward(sum(y));
  CHECK(values_of(p.grad) == Values{4, 6});
}

TEST_CASE("integers of an outer tape have no gradient to lose") {
  const Parameter table{tensor_of({1, 2, 3, 4}, {2, 2}, Dtype::f64, Device::cpu), {}, "table"};
  Tape outer;
  const Tensor ids = outer.watch(ids_of({1, 0, 1}, {1, 3}, Device::cpu));
  Tape inner;
  inner.backward(sum(embedding(ids, table, Tensor())));
  CHECK(values_of(table.grad) == Values{1, 1, 2, 2});
}

TEST_CASE("tensors of tapes that have ended or have run their backward are constants") {
  const Parameter p{vector_of({2}), {}, "p"};
  Tensor of_gone;
  {
    const Tape gone;
    of_gone = p * p;
  }
  Tape used;
  const Tensor of_used = p * p;
  used.backward(sum(of_used));
  {
    Tape failed;
    const Tensor of_failed = p * p, loss = record("no_backward_here", {of_failed}, Tensor(Shape{}, Dtype::f64), keep(), no_backward);
    CHECK(message_of([&] { failed.backward(loss); }) != "no error");
    Tape after;
    after.backward(sum(p * of_failed));
  }
  p.grad = {};
  Tape tape;
  tape.backward(sum(p * of_gone * of_used));
  CHECK(item(p.grad) == 16);
}

TEST_CASE("a tensor of another thread's tape is an error, its parameters are not") {
  const Parameter p{vector_of({2}), {}, "p"};
  Tape tape;
  const Tensor y = p * p;
  std::string message;
  double grad = 0;
  std::thread([&] {
    const Parameter own{p.value, {}, "own"};
    Tape other;
    const Tensor z = own * own;
    message = message_of([&] { add(z, y); });
    other.backward(sum(z));
    grad = item(own.grad);
  }).join();
  CHECK(message.find("add (") == 0);
  CHECK(message.find("input 1 [1] is recorded on another tape") != message.npos);
  CHECK(grad == 4);
}

TEST_CASE("tapes and NoTapes can end in any order: the innermost that is left decides") {
  auto first = std::make_unique<Tape>();
  auto second = std::make_unique<Tape>();
  std::optional<NoTape> off(std::in_place);
  auto third = std::make_unique<Tape>();
  CHECK(Tape::recording() == third.get());
  second.reset();
  CHECK(Tape::recording() == third.get());
  third.reset();
  CHECK(Tape::recording() == nullptr);  // off
  auto fourth = std::make_unique<Tape>();
  off.reset();
  CHECK(Tape::recording() == fourth.get());
  first.reset();
  const Parameter p{vector_of({3}), {}, "p"};
  fourth->backward(sum(p * p));
  CHECK(item(p.grad) == 6);
  fourth.reset();
  CHECK(Tape::recording() == nullptr);
  off.emplace();
  CHECK(Tape::recording() == nullptr);
  Tape last;
  CHECK(Tape::recording() == &last);
}

TEST_CASE("an outer tape that ends first leaves the inner one whole") {
  const Parameter p{vector_of({3}), {}, "p"};
  auto outer = std::make_unique<Tape>();
  const Tensor of_outer = p * p;
  Tape inner;
  const Tensor of_inner = p * p;
  outer.reset();
  inner.backward(sum(of_inner * of_outer));  // now a constant
  CHECK(item(p.grad) == 54);
}
