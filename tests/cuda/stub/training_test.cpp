// A step of training on a GPU, which notes what went wrong in its memory and goes on.
#include <cmath>

#include "models/config.h"
#include "models/training/train_step.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

MicroBatch batch_of(const std::vector<int64_t>& ids) {
  const Shape shape{2, static_cast<int64_t>(ids.size()) / 2};
  const Tensor targets_bc = to(tensor_of(std::vector<int64_t>(ids.size(), 1), shape), Device::cuda);
  return {{to(tensor_of(ids, shape), Device::cuda), targets_bc}, shape.size()};
}

}  // namespace

TEST_CASE("a token id outside the vocabulary is named, and not an op that its NaN reached") {
  ModelConfig config;
  config.vocab = 11, config.ctx = 4, config.d = 12, config.settings<Sdp>().heads = 3, config.layers = 1;
  apply_preset(config);
  resolve(config);
  Model model(config, 1);
  model.place_for_training(Dtype::f32, Device::cuda);
  const TrainStep train_step(model, Device::cuda, 1);
  CHECK(std::isfinite(train_step.forward_backward({batch_of({1, 2, 3, 4, 5, 6, 7, 8})}, 0)));
  for (Parameter* p : model.parameters()) p->grad = {};
  const std::vector<MicroBatch> spoilt = {batch_of({1, 2, 3, 4, 5, 6, 70, 8})};
  const double loss = train_step.forward_backward(spoilt, 1);
  CHECK(std::isnan(loss));
  CHECK(message_of([&] { train_step.explain_nonfinite(spoilt, 1, loss); }) ==
        "step 2: the loss is nan: embedding: id 70 at [1 2] is outside the vocabulary of 11");
}
