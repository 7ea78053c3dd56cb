#include "models/inference/evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/tape.h"
#include "core/cpu/parallel.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/math.h"
#include "cuda/verbs/arithmetic.h"
#include "models/layers/layers.h"
#include "ops/rows/cross_entropy.h"
#include "ops/rows/softmax.h"

namespace ricci {
namespace {

// Calls nats_of(batch) for the mean nats of each batch of this rank; returns the mean over all targets that the loss counts, and their
// number. A number has one owner among the ranks, and all are added up in the order of the batches.
template <class NatsOf>
Evaluation mean_of(
    const Model& model, int64_t count, const BatchOf& batch, const AfterBatch& after_batch, Ranks& ranks, const NatsOf& nats_of) {
  const NoTape unrecorded;
  const Training off(false);
  std::vector<double> numbers(static_cast<size_t>(3 * count + 1));  // nats, tokens and targets of each batch; ranks that were stopped
  try {
    for (int64_t i = ranks.rank(); i < count; i += ranks.count()) {
      const MicroBatch one = batch(i);
      double* const of_batch = &numbers[static_cast<size_t>(3 * i)];
      of_batch[1] = static_cast<double>(model.counted(one.inputs, one.scored));
      of_batch[0] = nats_of(one) * of_batch[1];
      of_batch[2] = static_cast<double>(one.scored);
      if (after_batch) after_batch(i + 1);
    }
  } catch (const Stopped&) {
    numbers.back() = 1;
  }
  numbers = ranks.sum_numbers(std::move(numbers));
  if (numbers.back() > 0) throw Stopped();
  Evaluation total;
  double nats = 0;
  for (size_t i = 0; i + 1 < numbers.size(); i += 3) {
    nats += numbers[i];
    total.tokens += static_cast<int64_t>(numbers[i + 1]);
    total.targets += static_cast<int64_t>(numbers[i + 2]);
  }
  if (total.tokens == 0) fail("evaluation: the loss counts none of {} targets", {total.targets});
  total.nats_per_token = nats / static_cast<double>(total.tokens);
  return total;
}

constexpr int64_t kMaxLogits = int64_t{1} << 25;

// The predictions of a batch. The loss never holds all logits, and neither does this: they would be most of an evaluation's memory.
void count_predictions(const Model& model, const Inputs& inputs, Predictions& predictions) {
  const int64_t sequences = inputs.ids_bc.shape()[0], at_once = rows_at_once(model, inputs.ids_bc.shape()[1]);
  for (int64_t first = 0; first < sequences; first += at_once) {
    const int64_t count = std::min(at_once, sequences - first);
    const Tensor lengths_b = inputs.lengths_b ? inputs.lengths_b.rows(first, count) : Tensor();
    predictions.add(model.logits({inputs.ids_bc.rows(first, count), {}, lengths_b}), inputs.targets.rows(first, count));
  }
}

double nats_of(const float* logits, int64_t vocab, int64_t target) {
  const float largest = *std::max_element(logits, logits + vocab);
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t v = 0; v < vocab; ++v) sum += static_cast<double>(math::exp(logits[v] - largest));
  return std::log(sum) + static_cast<double>(largest) - static_cast<double>(logits[target]);
}

}  // namespace

Evaluation evaluate(const Model& model, int64_t count, const BatchOf& batch, const AfterBatch& after_batch, Ranks& ranks) {
  return mean_of(model, count, batch, after_batch, ranks, [&](const MicroBatch& one) { return item(model.text_loss(one.inputs)); });
}

Evaluation evaluate_predictions(const Model& model, int64_t count, const BatchOf& batch, const AfterBatch& after_batch, Ranks& ranks) {
  Predictions predictions;
  Evaluation result = mean_of(model, count, batch, after_batch, ranks, [&](const MicroBatch& one) {
    count_predictions(model, one.inputs, predictions);
    return item(model.text_loss(one.inputs));
  });
  predictions.add_other_ranks(ranks);
  result.predictions = predictions;
  return result;
}

Evaluation evaluate_classes(const Model& model, int64_t count, const BatchOf& batch, const AfterBatch& after_batch, Ranks& ranks) {
  Confusion confusion(model.config().settings<Classifier>().classes);
  Evaluation result = mean_of(model, count, batch, after_batch, ranks, [&](const MicroBatch& one) {
    const Tensor logits_bk = model.logits(one.inputs);
    confusion.add(logits_bk, one.inputs.targets);
    return item(cross_entropy(logits_bk, one.inputs.targets));
  });
  confusion.add_other_ranks(ranks);
  result.confusion = confusion;
  return result;
}

Tensor class_probabilities(const Model& model, const Inputs& inputs) {
  const NoTape unrecorded;
  const Training off(false);
  return softmax(to(convert(model.logits(inputs), Dtype::f64), Device::cpu));
}

std::vector<double> token_nats(const Model& model, const Inputs& inputs) {
  if (!model.config().traits().writes_text())
    fail("token nats: model.family: {}, which gives no probability of the next token", {name_of(model.config().family)});
  check_targets(inputs.targets, inputs.ids_bc);
  const NoTape unrecorded;
  const Training off(false);
  const Tensor logits = to(convert(model.logits({inputs.ids_bc, {}, inputs.lengths_b}), Dtype::f32), Device::cpu),
               targets = to(inputs.targets, Device::cpu);
  const int64_t vocab = logits.shape()[2], rows = targets.size();
  for (int64_t r = 0; r < rows; ++r)
    if (const int64_t target = targets.data<int64_t>()[r]; target < -1 || target >= vocab)
      fail("token nats: target {}, expected -1 .. {}", {target, vocab - 1});
  std::vector<double> nats(static_cast<size_t>(rows), std::numeric_limits<double>::quiet_NaN());
  parallel_for(rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      if (const int64_t target = targets.data<int64_t>()[r]; target >= 0)
        nats[static_cast<size_t>(r)] = nats_of(logits.data<float>() + r * vocab, vocab, target);
  });
  return nats;
}

int64_t first_scored(const Model& model, int64_t context) {
  const Tensor ids_bc = zeros({1, context}, Dtype::i64, Device::cpu);
  return context - model.counted({ids_bc, ids_bc}, context);
}

int64_t rows_at_once(const Model& model, int64_t context) {
  return std::clamp<int64_t>(kMaxLogits / (model.config().vocab * context), 1, 32);
}

}  // namespace ricci
