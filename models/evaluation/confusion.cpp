#include "models/evaluation/confusion.h"

#include <algorithm>
#include <numeric>

#include "core/dims.h"
#include "core/error.h"
#include "models/evaluation/predictions.h"

namespace ricci {
namespace {

double ratio(int64_t part, int64_t of) { return of ? static_cast<double>(part) / static_cast<double>(of) : 0; }

}  // namespace

Confusion::Confusion(int64_t classes) : classes_(classes) {
  if (classes < 2) fail("confusion: {} classes, expected 2 or more", {classes});
  counts_.resize(static_cast<size_t>(classes * classes));
}

void Confusion::add(int64_t target, int64_t predicted) {
  for (const int64_t of_class : {target, predicted})
    if (of_class < 0 || of_class >= classes_) fail("confusion: class {} is outside 0 .. {}", {of_class, classes_ - 1});
  ++counts_[static_cast<size_t>(target * classes_ + predicted)];
}

void Confusion::add(const Tensor& logits_bk, const Tensor& targets_b) {
  if (logits_bk.shape().rank() != 2 || logits_bk.shape()[1] != classes_ || !(targets_b.shape() == Shape{logits_bk.shape()[0]}))
    fail("confusion: logits {} and targets {}, expected [batch {}] and [batch]",
        {show(logits_bk.shape()), show(targets_b.shape()), classes_});
  each_prediction(logits_bk, targets_b, [&](int64_t, int64_t target, int64_t prediction) { add(target, prediction); });
}

int64_t Confusion::total() const { return std::accumulate(counts_.begin(), counts_.end(), int64_t{0}); }

int64_t Confusion::targets_of(int64_t of_class) const {
  int64_t sum = 0;
  for (int64_t predicted = 0; predicted < classes_; ++predicted) sum += count(of_class, predicted);
  return sum;
}

int64_t Confusion::predictions_of(int64_t of_class) const {
  int64_t sum = 0;
  for (int64_t target = 0; target < classes_; ++target) sum += count(target, of_class);
  return sum;
}

double Confusion::accuracy() const {
  int64_t right = 0;
  for (int64_t k = 0; k < classes_; ++k) right += count(k, k);
  return ratio(right, total());
}

ClassScores Confusion::scores(int64_t of_class) const {
  const int64_t right = count(of_class, of_class), targets = targets_of(of_class), predictions = predictions_of(of_class);
  return {ratio(right, predictions), ratio(right, targets), ratio(2 * right, targets + predictions)};
}

ClassScores Confusion::macro() const {
  ClassScores sum;
  int64_t occurring = 0;
  for (int64_t k = 0; k < classes_; ++k) {
    if (targets_of(k) + predictions_of(k) == 0) continue;
    const ClassScores one = scores(k);
    sum.precision += one.precision;
    sum.recall += one.recall;
    sum.f1 += one.f1;
    ++occurring;
  }
  const auto n = static_cast<double>(std::max<int64_t>(1, occurring));
  return {sum.precision / n, sum.recall / n, sum.f1 / n};
}

}  // namespace ricci
