// Gradients of bf16 models are summed in f32 over the micro-batches of a step.
#include <algorithm>

#include "models/layers/layers.h"
#include "tests/models/training/every_model.h"
#include "tests/models/training/forward_backward.h"
#include "tests/models/training/small_training.h"

using namespace ricci;

namespace {

bool are_all_bf16(const Tensor& t) { return same_bits(convert(convert(t, Dtype::bf16), Dtype::f32), t); }

void check_f32_sums(Model& model, Device device) {
  const int64_t count = device == Device::cuda_emulated ? 2 : 4;
  const std::vector<Batch> micro_batches = small_micro_batches(model.config(), count, device);
  const auto gradients_of = [&](const std::vector<Batch>& some) {
    forward_backward(model, some);
    return taken_gradients(model);
  };
  const std::vector<Parameter*> parameters = model.parameters();
  std::vector<Values> sums(parameters.size()), sizes(parameters.size());  // gradients, their absolute values
  std::vector<int64_t> narrow(parameters.size());                         // gradients that bf16 can hold
  for (const Batch& one : micro_batches) {
    const std::vector<Tensor> gradients = gradients_of({one});
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!gradients[i]) continue;
      const std::string path = parameters[i]->path;
      CAPTURE(path);
      REQUIRE(gradients[i].dtype() == Dtype::f32);
      const Values values = values_of(gradients[i]);
      sums[i].resize(values.size()), sizes[i].resize(values.size());
      for (size_t e = 0; e < values.size(); ++e)
        sums[i][e] += values[e] / static_cast<double>(count), sizes[i][e] += std::abs(values[e]) / static_cast<double>(count);
      narrow[i] += are_all_bf16(gradients[i]);
    }
  }
  const std::vector<Tensor> together = gradients_of(micro_batches);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string path = parameters[i]->path;
    CAPTURE(path);
    REQUIRE(static_cast<bool>(together[i]) == !sums[i].empty());
    if (!together[i]) continue;
    const bool is_zero = std::all_of(sizes[i].begin(), sizes[i].end(), [](double size) { return size == 0; });
    CHECK((is_zero || narrow[i] < count));  // one of few terms, or whose terms cancel, can be a short number
    CHECK(error_of(together[i], sums[i], sizes[i]) < 64 * unit(Dtype::f32));
  }
}

}  // namespace

// A view of a parameter or a recomputed block can be between it and its product.
TEST_CASE("bf16: the gradients of multiple micro-batches are sums in f32, for every parameter of every family") {
  for (const Device device : {Device::cpu, Device::cuda_emulated})
    for (const Variant& v : every_model()) {
      if (!runs_on(device, v)) continue;
      if (device == Device::cuda_emulated && v.config.family != family_of<Decoder> && !test::everything()) continue;
      const std::string device_name = name_of(device);
      CAPTURE(device_name);
      CAPTURE(v.name);
      Model model(v.config, 3);
      model.place_for_training(Dtype::bf16, device);
      check_f32_sums(model, device);
      model.recompute_blocks(true);
      if (device == Device::cpu) check_f32_sums(model, device);
    }
}
