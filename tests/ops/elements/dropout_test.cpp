#include "ops/elements/dropout.h"

#include "autograd/random.h"
#include "core/philox.h"
#include "tests/ops/values.h"

using namespace ricci;

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
  CHECK(message_of([] { dropout(Tensor({2}), 1); }) == "dropout: the probability must be in [0, 1), got 1");
  CHECK(message_of([] { dropout(Tensor({2}), -0.5); }) == "dropout: the probability must be in [0, 1), got -0.5");
  CHECK(message_of([] { dropout(Tensor({2}), NAN); }) == "dropout: the probability must be in [0, 1), got nan");
}

TEST_CASE("the random state is one per thread, and streams are counted") {
  set_random_state({5, 10});
  CHECK(take_stream().stream == 10);
  CHECK(take_stream().stream == 11);
  CHECK(random_state() == RandomState{5, 12});
}
