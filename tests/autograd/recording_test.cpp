// The tape that records, and the tensors that it takes: tapes inside each other, in any order of their ends; views of recorded tensors.
#include "autograd/recording.h"

#include <memory>
#include <optional>
#include <thread>

#include "autograd/record.h"
#include "ops/elements/activations.h"
#include "ops/elements/arithmetic.h"
#include "ops/embedding/embedding.h"
#include "ops/rows/reduce.h"
#include "ops/shapes/shape_ops.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

Parameter parameter(const Values& values) {
  return {tensor_of(values, {static_cast<int64_t>(values.size())}, Dtype::f64, Device::cpu), {}, "p"};
}

// The message of an op about an input of another tape. `what` is "gelu (file:line): input 0 [2]".
std::string lost(const std::string& op, int line, const std::string& input) {
  return op + " (" + __FILE__ + ":" + std::to_string(line) + "): input " + input +
         " is recorded on another tape, whose backward has not ended: its gradient would be lost here; detached() gives it up";
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
      }) == "reshaped: [2 3] is recorded on a tape: reshape() passes its gradient on, detached() gives it up");
      CHECK(message_of([&] { t->rows(1, 1); }) ==
            "rows: [2 3] is recorded on a tape: slice() passes its gradient on, detached() gives it up");
      CHECK(t->detached().reshaped({3, 2}).shape() == Shape({3, 2}));
    }
    CHECK(item(y, 4) == 10);  // reading a value is no view
    tape.backward(sum(slice(reshape(y, {3, 2}), 0, 1, 1)));
    CHECK(values_of(tape.gradient_of(x)) == Values{0, 0, 2, 2, 0, 0});
  }
  CHECK(message_of([&] { y.rows(1, 1); }) != "no error");  // the tensor does not know that its tape is gone
  CHECK(values_of(y.detached().rows(1, 1)) == Values{8, 10, 12});
  CHECK(values_of(values.rows(1, 1)) == Values{4, 5, 6});
}

TEST_CASE("a tensor of an outer tape is an error in an op while the inner tape records") {
  const Parameter p = parameter({2, 3}), q = parameter({5, 7});
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

TEST_CASE("tensors of tapes that are gone, or whose backward has run, are constants") {
  const Parameter p = parameter({2});
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
  const Parameter p = parameter({2});
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

TEST_CASE("tapes and NoTapes may end in any order: the youngest that is left decides") {
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
  const Parameter p = parameter({3});
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
  const Parameter p = parameter({3});
  auto outer = std::make_unique<Tape>();
  const Tensor of_outer = p * p;
  Tape inner;
  const Tensor of_inner = p * p;
  outer.reset();
  inner.backward(sum(of_inner * of_outer));  // now a constant
  CHECK(item(p.grad) == 54);
}
