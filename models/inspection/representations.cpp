#include "models/inspection/representations.h"

#include <map>

#include "models/inspection/layers.h"
#include "models/layers/watch.h"

namespace ricci {
namespace {

struct StackOutputs final : Watch {
  std::map<const void*, Tensor> h_bmd;
  void take_output(const void* stack, const Tensor& output_bmd) override { h_bmd[stack] = output_bmd; }
};

}  // namespace

std::vector<Representation> representations(const Model& model, const Batch& batch) {
  StackOutputs outputs;
  model.hidden(batch);
  std::vector<Representation> all;
  for (const MixingLayer& layer : model.layers())
    if (const auto found = outputs.h_bmd.find(layer.stack); layer.block == 0 && found != outputs.h_bmd.end())
      all.push_back({layer.tokens, found->second});
  return all;
}

}  // namespace ricci
