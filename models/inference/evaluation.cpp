#include "models/inference/evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "autograd/tape.h"
#include "core/cpu/parallel.h"
#include "core/dims.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/math.h"
#include "cuda/verbs/arithmetic.h"
#include "models/layers/layers.h"
#include "ops/rows/cross_entropy.h"
#include "ops/rows/softmax.h"

namespace ricci {
namespace {

double ratio(int64_t part, int64_t whole) { return whole ? static_cast<double>(part) / static_cast<double>(whole) : 0; }

// Calls f(row, target, prediction) for every row of the logits [.. v] that has a target other than -1.
template <class F> void each_prediction(const Tensor& logits, const Tensor& targets, const F& f) {
  const Tensor predicted = to(largest_in_rows(logits), Device::cpu), host = to(targets, Device::cpu);
  for (int64_t r = 0; r < host.size(); ++r)
    if (const int64_t target = host.data<int64_t>()[r]; target != -1) f(r, target, predicted.data<int64_t>()[r]);
}

// The conversion is exact: counts are below 2^53.
int64_t whole(double count) { return static_cast<int64_t>(count); }

// Calls nats_of(batch) for the mean nats of each batch of this rank; returns the mean over all scored targets, and their count. Each value
// comes from one rank, and every rank adds the values in batch order, so the results are bitwise identical for any number of ranks.
template <class NatsOf>
Evaluation mean_of(const Model& model, int64_t count, const BatchOf& batch, const AfterBatch& after_batch, Ranks& ranks, bool (*stop)(),
    const NatsOf& nats_of) {
  const NoTape unrecorded;
  const Training off(false);
  // The nats, tokens and targets of each batch, then the number of stopped ranks.
  std::vector<double> numbers(static_cast<size_t>(3 * count + 1));
  const bool is_finished = finish_unless(stop, [&] {
    for (int64_t i = ranks.rank(); i < count; i += ranks.count()) {
      const Batch one = batch(i);
      double* const of_batch = &numbers[static_cast<size_t>(3 * i)];
      of_batch[1] = static_cast<double>(model.counted(one));
      of_batch[0] = nats_of(one) * of_batch[1];
      of_batch[2] = static_cast<double>(one.scored);
      if (after_batch) after_batch(i + 1);
      check_stop();  // needed on a GPU: no parallel_for runs there
    }
  });
  numbers.back() = is_finished ? 0 : 1;
  numbers = ranks.sum_numbers(std::move(numbers));
  Evaluation total;
  if (numbers.back() > 0) return total;
  double nats = 0;
  for (size_t i = 0; i + 1 < numbers.size(); i += 3) {
    nats += numbers[i];
    total.tokens += static_cast<int64_t>(numbers[i + 1]);
    total.targets += static_cast<int64_t>(numbers[i + 2]);
  }
  if (total.tokens == 0) fail("evaluation: none of the {} targets is scored", {total.targets});
  total.nats_per_token = nats / static_cast<double>(total.tokens);
  return total;
}

constexpr int64_t kMaxLogits = int64_t{1} << 25;

// Counts the predictions of a batch, a few sequences at a time (rows_at_once).
void count_predictions(const Model& model, const Batch& batch, Predictions& predictions) {
  const int64_t sequences = batch.ids_bc.shape()[0], at_once = rows_at_once(model, batch.ids_bc.shape()[1]);
  for (int64_t first = 0; first < sequences; first += at_once) {
    const int64_t count = std::min(at_once, sequences - first);
    const Tensor lengths_b = batch.lengths_b ? batch.lengths_b.rows(first, count) : Tensor();
    predictions.add(model.logits({batch.ids_bc.rows(first, count), {}, lengths_b}), batch.targets.rows(first, count));
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

void Predictions::add(const Tensor& logits_bcv, const Tensor& targets_bc) {
  const Shape &logits = logits_bcv.shape(), &targets = targets_bc.shape();
  if (logits.rank() != 3 || !(targets == Shape{logits[0], logits[1]}))
    fail("predictions: logits are {} and targets are {}, expected [batch context vocabulary] and [batch context]",
        {show(logits), show(targets)});
  std::vector<bool> right(static_cast<size_t>(targets[0]), true);  // true if all targets of the sequence are predicted correctly
  each_prediction(logits_bcv, targets_bc, [&](int64_t row, int64_t target, int64_t prediction) {
    ++tokens;
    tokens_right += prediction == target;
    if (prediction != target) right[static_cast<size_t>(row / targets[1])] = false;
  });
  sequences += targets[0];
  sequences_right += std::count(right.begin(), right.end(), true);
}

void Predictions::add_other_ranks(Ranks& ranks) {
  const std::vector<double> all = ranks.sum_numbers({double(tokens), double(tokens_right), double(sequences), double(sequences_right)});
  *this = {whole(all[0]), whole(all[1]), whole(all[2]), whole(all[3])};
}

double Predictions::token_accuracy() const { return ratio(tokens_right, tokens); }
double Predictions::sequence_accuracy() const { return ratio(sequences_right, sequences); }

Confusion::Confusion(int64_t classes) : classes_(classes) {
  if (classes < 2) fail("confusion: classes is {}, expected 2 or more", {classes});
  counts_.resize(static_cast<size_t>(classes * classes));
}

void Confusion::add(int64_t target, int64_t predicted) {
  for (const int64_t of_class : {target, predicted})
    if (of_class < 0 || of_class >= classes_) fail("confusion: class {} is outside 0 .. {}", {of_class, classes_ - 1});
  ++counts_[static_cast<size_t>(target * classes_ + predicted)];
}

void Confusion::add(const Tensor& logits_bk, const Tensor& targets_b) {
  const Shape &logits = logits_bk.shape(), &targets = targets_b.shape();
  if (logits.rank() != 2 || logits[1] != classes_ || !(targets == Shape{logits[0]}))
    fail("confusion: logits are {} and targets are {}, expected [batch {}] and [batch]", {show(logits), show(targets), classes_});
  each_prediction(logits_bk, targets_b, [&](int64_t, int64_t target, int64_t prediction) { add(target, prediction); });
}

void Confusion::add_other_ranks(Ranks& ranks) {
  const std::vector<double> all = ranks.sum_numbers(std::vector<double>(counts_.begin(), counts_.end()));
  std::transform(all.begin(), all.end(), counts_.begin(), whole);
}

int64_t Confusion::total() const { return std::accumulate(counts_.begin(), counts_.end(), int64_t{0}); }

double Confusion::accuracy() const {
  int64_t right = 0;
  for (int64_t k = 0; k < classes_; ++k) right += count(k, k);
  return ratio(right, total());
}

ClassScores Confusion::scores(int64_t of_class) const {
  const auto [targets, predictions] = sums(of_class);
  const int64_t right = count(of_class, of_class);
  return {ratio(right, predictions), ratio(right, targets), ratio(2 * right, targets + predictions)};
}

ClassScores Confusion::macro() const {
  ClassScores sum;
  int64_t occurring = 0;
  for (int64_t k = 0; k < classes_; ++k) {
    const auto [targets, predictions] = sums(k);
    occurring += targets + predictions > 0;
    const ClassScores one = scores(k);  // zeros if the class does not occur
    sum.precision += one.precision;
    sum.recall += one.recall;
    sum.f1 += one.f1;
  }
  const auto n = static_cast<double>(std::max<int64_t>(1, occurring));
  return {sum.precision / n, sum.recall / n, sum.f1 / n};
}

std::pair<int64_t, int64_t> Confusion::sums(int64_t of_class) const {
  std::pair<int64_t, int64_t> sums;
  for (int64_t k = 0; k < classes_; ++k) {
    sums.first += count(of_class, k);
    sums.second += count(k, of_class);
  }
  return sums;
}

Evaluation evaluate(const Model& model, int64_t count, const BatchOf& batch, const AfterBatch& after_batch, Ranks& ranks,
    bool with_predictions, bool (*stop)()) {
  std::optional<Confusion> confusion;
  if (model.config().traits().objective == Objective::label) confusion.emplace(model.config().settings<Classifier>().classes);
  Predictions predictions;
  Evaluation result = mean_of(model, count, batch, after_batch, ranks, stop, [&](const Batch& one) {
    if (confusion) {
      const Tensor logits_bk = model.logits(one);
      confusion->add(logits_bk, one.targets);
      return item(cross_entropy(logits_bk, one.targets));
    }
    if (with_predictions) count_predictions(model, one, predictions);
    return item(model.text_loss(one));
  });
  if (result.was_stopped()) return result;
  if (confusion) confusion->add_other_ranks(ranks);
  else if (with_predictions) predictions.add_other_ranks(ranks);
  result.confusion = confusion;
  if (with_predictions && !confusion) result.predictions = predictions;
  return result;
}

Tensor class_probabilities(const Model& model, const Batch& batch) {
  const NoTape unrecorded;
  const Training off(false);
  return softmax(to(convert(model.logits(batch), Dtype::f64), Device::cpu));
}

std::vector<double> token_nats(const Model& model, const Batch& batch) {
  if (!model.config().traits().writes_text())
    fail("token nats: a {} model gives no probability of the next token", {name_of(model.config().family)});
  check_targets(batch);
  const NoTape unrecorded;
  const Training off(false);
  const Tensor logits = to(convert(model.logits({batch.ids_bc, {}, batch.lengths_b}), Dtype::f32), Device::cpu),
               targets = to(batch.targets, Device::cpu);
  const int64_t vocab = logits.shape()[2], rows = targets.size();
  for (int64_t r = 0; r < rows; ++r)
    if (const int64_t target = targets.data<int64_t>()[r]; target < -1 || target >= vocab)
      fail("token nats: a target is {}, expected -1 .. {}", {target, vocab - 1});
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
  return context - model.counted(make_batch(ids_bc, ids_bc));
}

int64_t rows_at_once(const Model& model, int64_t context) {
  return std::clamp<int64_t>(kMaxLogits / (model.config().vocab * context), 1, 32);
}

}  // namespace ricci
