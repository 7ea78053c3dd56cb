// Inputs that do not go together, for every op that is recorded on a tape: one that is empty, on another device, of another
// dtype or of another shape. The list of cases is the gradient checks' own, so that a new op is among them.
#include <algorithm>
#include <set>
#include <string>

#include "ops/checks/checks.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

using Inputs = std::vector<Parameter>;

std::set<std::string> op_names() {
  std::set<std::string> names{"transpose"};  // recorded as a permute
  for (const OpCheck& check : op_checks()) names.insert(check.op);
  return names;
}

// The op that a message begins with: "gelu: ..." or "gelu (file:line): ..."; empty: none.
std::string op_of(const std::string& message) {
  const std::string word = message.substr(0, message.find_first_of(": ("));
  return op_names().contains(word) ? word : "";
}

// "gelu 0": an op and the number of one of its inputs.
std::string name_of(const OpCheck& check, size_t input) { return std::string(check.op) + " " + std::to_string(input); }

// The message of the forward or the backward about these inputs; "no error" when they take them.
std::string outcome(const OpCheck& check, const Inputs& inputs) {
  return message_of([&] {
    Tape tape;
    const std::vector<Tensor> ys = check.run(inputs);
    std::vector<Tensor> dys;
    for (const Tensor& y : ys) {
      if (y.dtype() == Dtype::i64) return;  // no gradient
      const Tensor dy = like(y);
      fill(dy, 1);
      dys.push_back(dy);
    }
    tape.backward(ys, dys);
  });
}

// Changes each input of each case in turn. Either an op says by its name what is wrong, or it takes the input; those that do
// are returned. Inputs that `change` leaves alone (false) are left out.
std::set<std::string> taken(const std::function<bool(Inputs&, size_t)>& change) {
  std::set<std::string> all;
  for (const OpCheck& check : op_checks())
    for (size_t i = 0; i < check.inputs.size(); ++i) {
      Inputs inputs = draw_inputs(check, Device::cpu);
      if (!change(inputs, i)) continue;
      const std::string message = outcome(check, inputs);
      CAPTURE(std::string(check.op));
      CAPTURE(std::string(check.what));
      CAPTURE(i);
      CAPTURE(message);
      CHECK((message == "no error" || !op_of(message).empty()));
      if (message == "no error") all.insert(name_of(check, i));
    }
  return all;
}

using Set = std::set<std::string>;

}  // namespace

TEST_CASE("an empty input is an error that names the op, but where the op can do without it") {
  const Set none = taken([](Inputs& inputs, size_t i) { return inputs[i].value = {}, true; });
  CHECK(none == Set{"classifier_loss 2", "embedding 2", "layer_norm 2", "linear 2", "residual_layer_norm 3"});
}

TEST_CASE("inputs on two devices are an error that names the op") {
  const Set apart = taken([](Inputs& inputs, size_t i) {
    if (inputs.size() == 1) return false;
    return inputs[i].value = to(inputs[i].value, Device::cuda_emulated), true;
  });
  CHECK(apart == Set{});
}

TEST_CASE("floating-point inputs of two dtypes are an error that names the op") {
  for (Dtype other : {Dtype::f32, Dtype::bf16}) {
    const Set mixed = taken([&](Inputs& inputs, size_t i) {
      const auto floating = std::count_if(inputs.begin(), inputs.end(), [](const Parameter& p) { return p.value.dtype() == Dtype::f64; });
      if (floating < 2 || inputs[i].value.dtype() != Dtype::f64) return false;
      return inputs[i].value = convert(inputs[i].value, other), true;
    });
    CHECK(mixed == Set{});
  }
}

TEST_CASE("floats for integers and integers for floats are an error that names the op, but of ops that only move elements") {
  const Set floats = taken([](Inputs& inputs, size_t i) {
    if (inputs[i].value.dtype() != Dtype::i64) return false;
    return inputs[i].value = zeros(inputs[i].value.shape(), Dtype::f64, Device::cpu), true;
  });
  CHECK(floats == Set{});
  const Set integers = taken([](Inputs& inputs, size_t i) {
    if (inputs[i].value.dtype() == Dtype::i64) return false;
    return inputs[i].value = zeros(inputs[i].value.shape(), Dtype::i64, Device::cpu), true;
  });
  CHECK(integers == Set{"permute 0", "slice 0"});
}

// An op must also differentiate what it takes; AddressSanitizer sees what it reads beyond an input's end.
TEST_CASE("inputs of other shapes: an op says what is wrong, or takes them, forward and backward") {
  int accepted = 0, refused = 0;
  for (const OpCheck& check : op_checks())
    for (size_t i = 0; i < check.inputs.size(); ++i)
      for (int index = -1; index < check.inputs[i].shape.rank(); ++index)
        for (int64_t by : {-1, 1}) {
          OpCheck other = check;
          Shape& shape = other.inputs[i].shape;
          if (index >= 0) {
            shape.set(index, shape[index] + by);
          } else if (shape.rank() < Shape::kMaxRank) {
            const Shape inner = shape;
            shape = Shape{by + 2};  // one more index, of extent 1 and 3
            for (int d = 0; d < inner.rank(); ++d) shape.push_back(inner[d]);
          }
          const std::string message = outcome(other, draw_inputs(other, Device::cpu));
          CAPTURE(std::string(check.op));
          CAPTURE(std::string(check.what));
          CAPTURE(i);
          CAPTURE(index);
          CAPTURE(by);
          CAPTURE(message);
          CHECK((message == "no error" || !op_of(message).empty()));
          ++(message == "no error" ? accepted : refused);
        }
  CHECK(accepted > 100);
  CHECK(refused > 100);
}
