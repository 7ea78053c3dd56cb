#include "models/evaluation/evaluation.h"

#include <algorithm>

#include "autograd/tape.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "models/layers/drop.h"
#include "ops/rows/cross_entropy.h"

namespace ricci {
namespace {

// Calls nats_of(batch) for the mean nats of each batch; returns the mean over all targets that the loss counts, and their number.
template <class NatsOf>
Evaluation mean_of(const Model& model, int64_t count, const BatchOf& batch, const AfterBatch& after_batch, const NatsOf& nats_of) {
  const NoTape unrecorded;
  const Training off(false);
  Evaluation total;
  double nats = 0;
  for (int64_t i = 0; i < count; ++i) {
    const MicroBatch one = batch(i);
    const int64_t counted = model.counted(one.inputs, one.scored);
    nats += nats_of(one) * static_cast<double>(counted);
    total.tokens += counted;
    total.targets += one.scored;
    if (after_batch) after_batch(i + 1);
  }
  if (total.tokens == 0) fail("evaluation: the loss counts none of {} targets", {total.targets});
  total.nats_per_token = nats / static_cast<double>(total.tokens);
  return total;
}

}  // namespace

Evaluation evaluate(const Model& model, int64_t count, const BatchOf& batch, const AfterBatch& after_batch) {
  return mean_of(model, count, batch, after_batch, [&](const MicroBatch& one) { return item(model.text_loss(one.inputs)); });
}

Evaluation evaluate_predictions(const Model& model, int64_t count, const BatchOf& batch, const AfterBatch& after_batch) {
  Predictions predictions;
  Evaluation result = mean_of(model, count, batch, after_batch, [&](const MicroBatch& one) {
    predictions.add(model.logits(one.inputs), one.inputs.targets);
    return item(model.text_loss(one.inputs));
  });
  result.predictions = predictions;
  return result;
}

Evaluation evaluate_classes(const Model& model, int64_t count, const BatchOf& batch, const AfterBatch& after_batch) {
  Confusion confusion(model.config().of<Classifier>().classes);
  Evaluation result = mean_of(model, count, batch, after_batch, [&](const MicroBatch& one) {
    const Tensor logits_bk = model.logits(one.inputs);
    confusion.add(logits_bk, one.inputs.targets);
    return item(cross_entropy(logits_bk, one.inputs.targets));
  });
  result.confusion = confusion;
  return result;
}

}  // namespace ricci
