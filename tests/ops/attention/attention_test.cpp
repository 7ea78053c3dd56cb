// attention, its backward and cached decoding are held to the definition on every device.
#include <cmath>
#include <vector>

#include "autograd/gradcheck.h"
#include "core/cpu/parallel.h"
#include "core/memory/memory.h"
#include "ops/attention/kernels.h"
#include "tests/ops/attention/attention_cases.h"

using namespace ricci;

namespace {

void check_case(const Case& of, Device device) {
  CAPTURE(of.text());
  const ForwardAndBackward expected = run(naive_attention, of.qkv(), of.dy(), of.options());
  const ForwardAndBackward got = run(attention, to(of.qkv(), device), to(of.dy(), device), of.options(device));
  CHECK(distance(got.y, expected.y) < 1e-12);
  CHECK(distance(got.dqkv, expected.dqkv) < 1e-12);
}

struct Threads {
  explicit Threads(int n) : before(thread_count()) { set_thread_count(n); }
  ~Threads() { set_thread_count(before); }
  int before;
};

}  // namespace

TEST_CASE("attention and its backward equal the definition on the CPU") {
  for (int64_t c : {1, 2, 7, 63, 64, 65, 130, 257})
    for (bool causal : {true, false})
      for (int64_t window : {0, 1, 5, 64, 100}) check_case({1, c, 2, 16, causal, window}, Device::cpu);
  for (int64_t width : {1, 2, 3, 15, 17, 31, 32, 33, 48, 64, 65, 80, 100, 128, 256, 300})
    for (bool causal : {true, false}) check_case({2, 67, 1 + width % 3, width, causal, 0}, Device::cpu);
  for (int64_t c : {1, 2, 3, 7, 66, 133})
    for (int64_t window : {0, 5}) check_case({2, c, 3, 8, c % 2 == 1, window, 0.3}, Device::cpu);
  for (int64_t c : {1, 7, 64, 65, 130, 257})
    for (bool causal : {true, false})
      for (int64_t window : {0, 5, 100}) check_case({5, c, 2, 9, causal, window, 0, {c, 0, 1, c / 2, c - 1}}, Device::cpu);
}

TEST_CASE("attention and its backward equal the definition on every device") {
  on_every_device([](Device device) {
    for (const Case& of : std::vector<Case>{{1, 1, 1, 1, true, 0},
                                            {2, 2, 3, 5, true, 0},
                                            {1, 7, 2, 16, false, 0},
                                            {1, 63, 1, 32, true, 0},
                                            {2, 64, 2, 8, true, 0},
                                            {1, 65, 2, 33, true, 0},
                                            {1, 65, 1, 64, false, 0},
                                            {1, 130, 1, 20, true, 40},
                                            {1, 130, 2, 20, false, 40},
                                            {1, 130, 1, 4, true, 1},
                                            {1, 150, 1, 4, false, 70},
                                            {1, 70, 1, 72, true, 0},
                                            {1, 40, 1, 130, true, 0},
                                            {1, 257, 1, 16, true, 0},
                                            {1, 20, 1, 300, false, 0},
                                            {2, 67, 2, 6, true, 0, 0.3},
                                            {1, 30, 2, 40, false, 9, 0.5},
                                            {4, 7, 2, 5, true, 0, 0, {7, 3, 0, 1}},
                                            {3, 130, 1, 33, true, 40, 0, {64, 129, 2}},
                                            {2, 130, 2, 20, false, 0, 0, {65, 63}},
                                            {2, 66, 1, 130, false, 9, 0, {66, 5}},
                                            {2, 67, 2, 6, true, 0, 0.3, {66, 1}}})
      check_case(of, device);
  });
}

TEST_CASE("the gradient of attention agrees with finite differences") {
  const AttentionOptions windowed{2, false, 3};
  const GradCheck result = gradcheck([&](const std::vector<Parameter>& x) { return std::vector<Tensor>{attention(x[0], windowed)}; },
                                     {Parameter{draw({1, 9, 18}, 5), {}, "qkv"}});
  CAPTURE(result.worst_at);
  CHECK(result.worst < 1e-7);
  CHECK(result.least_norm > 0);
}

TEST_CASE("a query that sees no key gives zero and passes no gradient") {
  on_every_device([](Device device) {
    // Only keys 3 or 4 positions earlier are visible: queries 0, 1, 2 see none, and nobody sees the last three keys.
    const int64_t c = 70, width = 6;
    const attention_kernels::Problem problem{1, c, 1, width, {5, -2}, 1 / std::sqrt(6.0)};
    const Tensor qkv = draw({1, c, 3 * width}, 3), dy = draw({1, c, width}, 4);
    const auto out = attention_kernels::forward(problem, to(qkv, device));
    const Values dqkv = values_of(attention_kernels::backward(problem, to(dy, device), to(qkv, device), out));
    const Values y = values_of(out.y_bcd), given = values_of(qkv);
    auto gradient = [&](int64_t t, int64_t block, int64_t x) { return dqkv[static_cast<size_t>((t * 3 + block) * width + x)]; };
    for (int64_t t = 0; t < 3; ++t)
      for (int64_t x = 0; x < width; ++x) {
        CHECK(y[static_cast<size_t>(t * width + x)] == 0);
        CHECK(gradient(t, 0, x) == 0);
        CHECK(gradient(c - 1 - t, 1, x) == 0);
        CHECK(gradient(c - 1 - t, 2, x) == 0);
        CHECK(gradient(4, 0, x) != 0);
      }
    // Query 3 sees key 0 alone.
    for (int64_t x = 0; x < width; ++x)
      CHECK(std::abs(y[static_cast<size_t>(3 * width + x)] - given[static_cast<size_t>(2 * width + x)]) < 1e-15);
    for (double value : dqkv) CHECK(std::isfinite(value));
  });
}

TEST_CASE("a sequence without keys gives zero, and what padding holds is not read") {
  on_every_device_and_dtype([](Device device, Dtype dtype) { check_padding({3, 70, 2, 5, false, 30, 0, {0, 3, 66}}, dtype, device); });
}

namespace {

// With q = k = 0 every visible key weighs the same, and with v_s the s-th unit vector y_ts is the weight of key s.
Values uniform_weights(int64_t c, Device device, const AttentionOptions& options) {
  Values qkv(static_cast<size_t>(3 * c * c), 0.0);
  for (int64_t s = 0; s < c; ++s) qkv[static_cast<size_t>((s * 3 + 2) * c + s)] = 1;
  return values_of(attention(tensor_of(qkv, {1, c, 3 * c}, Dtype::f64, device), options));
}

}  // namespace

TEST_CASE("which keys a query sees") {
  on_every_device([](Device device) {
    constexpr int64_t c = 70;
    for (bool causal : {true, false})
      for (int64_t window : {0, 1, 3, 65}) {
        const Values weights = uniform_weights(c, device, {1, causal, window});
        for (int64_t t = 0; t < c; ++t)
          for (int64_t s = 0; s < c; ++s) {
            const bool expected = (!causal || t - s >= 0) && (window == 0 || t - s < window);
            if ((weights[static_cast<size_t>(t * c + s)] > 0) != expected)
              FAIL("causal ", causal, ", window ", window, ": query ", t, ", key ", s);
          }
      }
  });
}

TEST_CASE("dropout of weights") {
  on_every_device([](Device device) {
    constexpr int64_t c = 70;
    constexpr double p = 0.25;
    set_random_state({9, 4});
    const Values weights = uniform_weights(c, device, {1, false, 0, p}), others = uniform_weights(c, device, {1, false, 0, p});
    set_random_state({9, 4});
    CHECK(uniform_weights(c, device, {1, false, 0, p}) == weights);
    CHECK(random_state() == RandomState{9, 5});
    int64_t dropped = 0, same = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] != 0) CHECK(std::abs(weights[i] * c * (1 - p) - 1) < 1e-14);
      dropped += weights[i] == 0, same += (weights[i] == 0) == (others[i] == 0);
    }
    const double n = c * c, agree = p * p + (1 - p) * (1 - p);  // both counts are within four standard deviations
    CHECK(std::abs(dropped - n * p) < 4 * std::sqrt(n * p * (1 - p)));
    CHECK(std::abs(same - n * agree) < 4 * std::sqrt(n * agree * (1 - agree)));
  });
}

TEST_CASE("the result does not depend on the number of threads") {
  for (const Case& of :
       std::vector<Case>{{1, 300, 1, 24, true, 0}, {1, 200, 3, 32, false, 0}, {3, 130, 1, 64, true, 77}, {4, 65, 2, 16, true, 0, 0.2}, {1, 300, 1, 24, true, 0, 0, {100}}}) {
    CAPTURE(of.b);
    CAPTURE(of.c);
    CAPTURE(of.heads);
    const Tensor qkv = convert(of.qkv(), Dtype::f32), dy = convert(of.dy(), Dtype::f32);
    const auto one = [&] {
      const Threads threads(1);
      return run(attention, qkv, dy, of.options());
    }();
    for (int n : {2, 3, 5}) {
      const Threads threads(n);
      const ForwardAndBackward several = run(attention, qkv, dy, of.options());
      CHECK(same_bits(one.y, several.y));
      CHECK(same_bits(one.dqkv, several.dqkv));
    }
  }
}

TEST_CASE("nothing as large as c x c is held") {
  const int64_t c = 1500, d = 16;
  const Parameter x{convert(draw({1, c, 3 * d}, 1), Dtype::f32), {}, "qkv"};
  const Tensor dy = convert(draw({1, c, d}, 2), Dtype::f32);
  const int64_t before = memory_use(Device::cpu).current;
  reset_peak(Device::cpu);
  Tape tape;
  const Tensor y = attention(x, {1});
  CHECK(tape.kept_bytes() == x.value.bytes() + y.bytes() + c * 4);
  tape.backward(y, dy);
  CHECK(memory_use(Device::cpu).peak - before < c * c * 4 / 4);
}

TEST_CASE("an empty batch gives an empty result") {
  on_every_device([](Device device) {
    for (const Shape& shape : {Shape{0, 5, 12}, Shape{2, 0, 12}}) {
      const ForwardAndBackward got =
          run(attention, zeros(shape, Dtype::f32, device), zeros({shape[0], shape[1], 4}, Dtype::f32, device), {2});
      CHECK(got.y.size() == 0);
      CHECK(got.dqkv.shape() == shape);
    }
  });
}

TEST_CASE("attention says what is wrong with its arguments") {
  const Tensor qkv = draw({2, 3, 24}, 1);
  CHECK(message_of([&] { attention(draw({3, 24}, 1), {2}); }) == "attention: qkv_bcx[3 24] does not have the indices 'bcx'");
  CHECK(message_of([&] { attention(qkv, {5}); }) == "attention: index x of qkv_bcx[2 3 24] is not a multiple of 3 x 5 heads");
  CHECK(message_of([&] { attention(qkv, {0}); }) == "attention: heads is 0, expected at least 1");
  CHECK(message_of([&] { attention(qkv, {2, true, -1}); }) == "attention: window is -1, expected 0 (none) or more");
  CHECK(message_of([&] { attention(qkv, {2, true, 0, 1.0}); }) == "attention: dropout is 1, expected 0 or more and less than 1");
  auto with = [&](const Tensor& lengths_b) {
    return message_of([&] { attention(qkv, {.heads = 2, .lengths_b = lengths_b}); });
  };
  CHECK(with(ids_of({3, 3, 3}, {3}, Device::cpu)) == "attention: lengths_b[3] is i64 on cpu, expected i64 [2] on cpu");
  CHECK(with(drawn({2}, Dtype::f32, Device::cpu, 1)) == "attention: lengths_b[2] is f32 on cpu, expected i64 [2] on cpu");
  CHECK(with(ids_of({3, 3}, {2}, Device::cuda_emulated)) == "attention: lengths_b[2] is i64 on cuda_emulated, expected i64 [2] on cpu");
  CHECK(with(ids_of({0, 4}, {2}, Device::cpu)) == "attention: length 4 at [1] of lengths_b is outside 0 .. 3");
  CHECK(with(ids_of({-1, 4}, {2}, Device::cpu)) == "attention: length -1 at [0] of lengths_b is outside 0 .. 3");
  CHECK(message_of([&] { naive_attention(qkv, {5}); }) == "naive_attention: index x of qkv_bcx[2 3 24] is not a multiple of 3 x 5 heads");
}
