// Every helper that changes a tensor in place is noticed by a tape that kept it: backward names both places.
#include <vector>

#include "ops/elements/arithmetic.h"
#include "ops/optimizers/sgd.h"
#include "ops/rows/reduce.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

struct Writer {
  const char* name;
  int line;  // where it writes
  std::function<void(const Tensor& y)> write;
};

void step_of_sgd(const Tensor& y) {
  const Tensor rates({3}, Dtype::f64, y.device()), scale({}, Dtype::f64, y.device());
  fill(rates, {0.1, 0.1, 1}), fill(scale, 1);
  sgd_update({{.value = y, .grad = like(y)}}, {}, {rates, scale}, "optimizer.cpp", 42);
}

// None of them changes a value.
std::vector<Writer> writers(Device device) {
  const Tensor ones = tensor_of({1, 1, 1}, {3}, Dtype::f64, device), zero = zeros({3}, Dtype::f64, device), host = to(ones, Device::cpu),
               elsewhere = to(ones, device == Device::cpu ? Device::cuda_emulated : Device::cpu);
  // A line each, so that __LINE__ is where it writes:
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
                                                            "): a tensor [3] it kept was changed at " __FILE__ ":" +
                                                            std::to_string(writer.line) + " after the forward");
    }
  });
}

TEST_CASE("optimizers name their caller") {
  const Parameter p{tensor_of({1, 1, 1}, {3}, Dtype::f64, Device::cpu), {}, "p"};
  Tape tape;
  const Tensor loss = sum(p * p);
  step_of_sgd(p.value);
  CHECK(message_of([&] { tape.backward(loss); }).find("changed at optimizer.cpp:42 after the forward") != std::string::npos);
}

TEST_CASE("a write before the forward, to what is not kept, or that fails, disturbs nothing") {
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
  for (const auto& use : {std::function<void()>([&] { fill(none, 1); }), std::function<void()>([&] { multiply_by(none, 1); })})
    CHECK(message_of(use) == "expected a floating-point tensor, got an empty one");
}
