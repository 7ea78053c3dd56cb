#include "ops/checks/checks_list.h"
#include "ops/pooling/window_mean.h"

namespace ricci {
static Tensor of_sequences(const std::vector<int64_t>& lengths, Device device) {
  return lengths.empty() ? Tensor() : integers_on(lengths, device);
}

void add_pooling_checks(std::vector<OpCheck>& all) {
  const auto window = [&](const char* what, Shape x, MeanWindow of, std::vector<int64_t> lengths = {}) {
    all.push_back({"window_mean_difference", what, {normal(x)},
        [=](CheckInputs in) -> CheckOutputs { return {window_mean_difference(in[0], of, of_sequences(lengths, in[0].value.device()))}; }});
  };
  window("causal, odd sizes", {2, 7, 5}, {3, true});
  window("both sides", {2, 7, 5}, {3, false});
  window("wider than the sequence", {1, 4, 3}, {9, false});
  window("an even one", {2, 6, 3}, {4, true});
  window("two positions", {3, 2, 2}, {5, true});
  window("padding, both sides", {4, 6, 3}, {3, false}, {6, 3, 0, 1});
  window("padding, causal", {3, 6, 3}, {4, true}, {6, 2, 0});
  const auto mean = [&](const char* what, Shape x, std::vector<int64_t> lengths) {
    all.push_back({"mean_over_positions", what, {normal(x)},
        [=](CheckInputs in) -> CheckOutputs { return {mean_over_positions(in[0], of_sequences(lengths, in[0].value.device()))}; }});
  };
  mean("whole sequences", {2, 7, 5}, {});
  mean("padding", {4, 5, 3}, {5, 2, 0, 1});
}

}  // namespace ricci
