// Dropout of the weights: how many, which ones, and that each call draws others. That the backward drops the same ones is
// part of the comparison with the definition.
#include <cmath>

#include "tests/ops/attention/cases.h"

using namespace ricci;

namespace {

constexpr int64_t kPositions = 70;

// With q = k = 0 every key weighs the same, and with v_j the j-th unit vector y_tj is the weight of key j.
Values uniform_weights(Device device, double p) {
  Values qkv(static_cast<size_t>(3 * kPositions * kPositions), 0.0);
  for (int64_t j = 0; j < kPositions; ++j) qkv[static_cast<size_t>((j * 3 + 2) * kPositions + j)] = 1;
  const auto [q, k, v] = thirds(tensor_of(qkv, {1, kPositions, 3 * kPositions}, Dtype::f64, device));
  return values_of(attention(q, k, v, Visibility::not_causal(), {.heads = 1, .dropout = p}));
}

}  // namespace

TEST_CASE("dropout of weights") {
  on_every_device([](Device device) {
    constexpr double p = 0.25;
    set_random_state({9, 4});
    const Values weights = uniform_weights(device, p), others = uniform_weights(device, p);
    set_random_state({9, 4});
    CHECK(uniform_weights(device, p) == weights);
    CHECK(random_state() == RandomState{9, 5});
    int64_t dropped = 0, same = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] != 0) CHECK(std::abs(weights[i] * kPositions * (1 - p) - 1) < 1e-14);
      dropped += weights[i] == 0, same += (weights[i] == 0) == (others[i] == 0);
    }
    const double n = kPositions * kPositions, agree = p * p + (1 - p) * (1 - p);  // both counts are within four standard deviations
    CHECK(std::abs(dropped - n * p) < 4 * std::sqrt(n * p * (1 - p)));
    CHECK(std::abs(same - n * agree) < 4 * std::sqrt(n * agree * (1 - agree)));
  });
}
