// In bf16 the gradients of all parameters are summed in f32 from the first micro-batch to the last, whatever stands between a parameter
// and the product that reads it: a view of it, a block that is computed again.
#include <cstring>

#include "tests/models/training/every_model.h"

using namespace ricci;

namespace {

constexpr int64_t kMicroBatches = 8;

// The gradient of each parameter; empty where nothing reached it. They are cleared.
std::vector<Tensor> gradients_of(Model& model, const std::vector<MicroBatch>& micro_batches, Device device) {
  TrainStep(model, device, 1).forward_backward(micro_batches, 0);
  std::vector<Tensor> all;
  for (Parameter* p : model.parameters()) all.push_back(std::exchange(p->grad, {}));
  return all;
}

bool are_all_bf16(const Tensor& t) { return same_bits(convert(convert(t, Dtype::bf16), Dtype::f32), t); }

void check_model(Model& model, Device device) {
  const std::vector<MicroBatch> micro_batches = small_micro_batches(model.config(), kMicroBatches, device);
  const std::vector<Parameter*> parameters = model.parameters();
  std::vector<Values> sums(parameters.size()), sizes(parameters.size());  // gradients, their absolute values
  std::vector<int64_t> narrow(parameters.size());                         // gradients that bf16 holds
  for (const MicroBatch& one : micro_batches) {
    const std::vector<Tensor> gradients = gradients_of(model, {one}, device);
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!gradients[i]) continue;
      const std::string path = parameters[i]->path;
      CAPTURE(path);
      REQUIRE(gradients[i].dtype() == Dtype::f32);
      const Values values = values_of(gradients[i]);
      sums[i].resize(values.size()), sizes[i].resize(values.size());
      for (size_t e = 0; e < values.size(); ++e)
        sums[i][e] += values[e] / kMicroBatches, sizes[i][e] += std::abs(values[e]) / kMicroBatches;
      narrow[i] += are_all_bf16(gradients[i]);
    }
  }
  const std::vector<Tensor> together = gradients_of(model, micro_batches, device);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string path = parameters[i]->path;
    CAPTURE(path);
    REQUIRE(static_cast<bool>(together[i]) == !sums[i].empty());
    if (!together[i]) continue;
    const bool is_zero = std::all_of(sizes[i].begin(), sizes[i].end(), [](double size) { return size == 0; });
    CHECK((is_zero || narrow[i] < kMicroBatches));  // one of few terms, or whose terms cancel, may be a short number
    CHECK(error_of(together[i], sums[i], sizes[i]) < 64 * unit(Dtype::f32));
  }
}

}  // namespace

TEST_CASE("bf16: the gradients of eight micro-batches are sums in f32, for every parameter of every family") {
  for (const Device device : {Device::cpu, Device::cuda_emulated})
    for (const Variant& v : every_model()) {
      if (!runs_on(device, v)) continue;
      const std::string device_name = name_of(device);
      CAPTURE(device_name);
      CAPTURE(v.name);
      Model model(v.config, 3);
      model.place_for_training(Dtype::bf16, device);
      check_model(model, device);
      model.recompute_blocks(true);
      if (device == Device::cpu) check_model(model, device);
    }
}
