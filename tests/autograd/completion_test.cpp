#include "autograd/completion.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "autograd/recompute.h"
#include "ops/elements/arithmetic.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

// Notes the parameters it is told of and their gradients at that time.
struct Notes : GradientListener {
  std::vector<std::string> paths;
  std::vector<Values> gradients;
  void completed(const Parameter& p) override {
    paths.push_back(p.path);
    gradients.push_back(p.grad ? values_of(p.grad) : Values{});
  }
  std::string order() const {
    std::string all;
    for (const std::string& path : paths) all += path;
    return all;
  }
};

Parameter parameter(const std::string& path, double value) { return {tensor_of({value}, {1}, Dtype::f64, Device::cpu), {}, path}; }

const Tensor kOne = tensor_of({1}, {1}, Dtype::f64, Device::cpu);

}  // namespace

TEST_CASE("completion: a parameter is complete when backward has left the first op that uses it") {
  const Parameter a = parameter("a", 2), b = parameter("b", 3), c = parameter("c", 5);
  Notes notes;
  Tape tape;
  tape.backward({Arg(a) * b * c * a}, {kOne}, &notes);  // a is used first and last
  CHECK(notes.order().substr(0, 1) == "c");
  CHECK(notes.paths.size() == 3);
  CHECK(notes.gradients[0] == Values{12});
  CHECK(values_of(a.grad) == Values{60});
  for (size_t i = 1; i < 3; ++i) CHECK(notes.gradients[i] == (notes.paths[i] == "a" ? Values{60} : Values{20}));
}

TEST_CASE("completion: parameters that no gradient reaches are complete too, frozen ones are not told") {
  const Parameter a = parameter("a", 2), b = parameter("b", 3);
  Parameter frozen = parameter("frozen", 5);
  frozen.frozen = true;
  Notes notes;
  Tape tape;
  const Tensor unused = Arg(b) * frozen;
  tape.backward({Arg(a) * frozen}, {kOne}, &notes);
  CHECK(notes.order() == "ab");
  CHECK(notes.gradients[1].empty());
  CHECK_FALSE(b.grad);
}

TEST_CASE("completion: recomputation stands for the parameters that its function reads, also inside another and when NaN are looked for") {
  for (const bool find_nonfinite : {false, true}) {
    const Parameter a = parameter("a", 2), b = parameter("b", 3), c = parameter("c", 5);
    Notes notes;
    Tape tape({.find_nonfinite = find_nonfinite});
    const auto times_b = [&](const std::vector<Tensor>& x) { return x[0] * b; };
    const auto inner = [&](const std::vector<Tensor>& x) { return recompute(times_b, {x[0]}) * a; };
    const Tensor x = recompute(inner, {Arg(a) * kOne});
    tape.backward({x * b * c}, {kOne}, &notes);
    CHECK(notes.order() == "cba");
    CHECK(notes.gradients == std::vector<Values>{{36}, {120}, {180}});
    CHECK(values_of(a.grad) == Values{180});
  }
}

TEST_CASE("completion: backward without a listener inside one that has one tells nothing") {
  const Parameter a = parameter("a", 2), b = parameter("b", 3);
  Notes notes;
  Tape tape;
  const Tensor x = recompute([&](const std::vector<Tensor>& in) { return in[0] * b * b; }, {a});
  tape.backward({x}, {kOne}, &notes);
  std::sort(notes.paths.begin(), notes.paths.end());
  CHECK(notes.order() == "ab");
}

TEST_CASE("completion: a gradient for a parameter that was complete is an error") {
  const Parameter a = parameter("a", 2), b = parameter("b.weight", 3);
  bool again = false;
  const auto f = [&](const std::vector<Tensor>& x) -> Tensor { return std::exchange(again, true) ? x[0] * b : x[0] * x[0]; };
  const auto walk = [&](GradientListener* listener) {
    again = false;
    Tape tape;
    const Tensor x = recompute(f, {a});
    tape.backward({x * b}, {kOne}, listener);
  };
  walk(nullptr);  // nobody was told
  Notes notes;
  const std::string message = message_of([&] { walk(&notes); });
  CHECK_MESSAGE(message.starts_with("backward of mul"), message);
  CHECK_MESSAGE(message.ends_with(": a gradient for b.weight after it was sent"), message);
}
