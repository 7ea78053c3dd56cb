#include "models/inference/predictions.h"

#include <algorithm>
#include <numeric>

#include "core/dims.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {
namespace {

double ratio(int64_t part, int64_t whole) { return whole ? static_cast<double>(part) / static_cast<double>(whole) : 0; }

// f(row, target, prediction) for every row of the logits [.. v] whose target is not -1.
template <class F> void each_prediction(const Tensor& logits, const Tensor& targets, const F& f) {
  const Tensor predicted = to(largest_in_rows(logits), Device::cpu), host = to(targets, Device::cpu);
  for (int64_t r = 0; r < host.size(); ++r)
    if (const int64_t target = host.data<int64_t>()[r]; target != -1) f(r, target, predicted.data<int64_t>()[r]);
}

// Counts stay below 2^53, so that f64 holds their sums.
int64_t whole(double count) { return static_cast<int64_t>(count); }

}  // namespace

void Predictions::add(const Tensor& logits_bcv, const Tensor& targets_bc) {
  const Shape &logits = logits_bcv.shape(), &targets = targets_bc.shape();
  if (logits.rank() != 3 || !(targets == Shape{logits[0], logits[1]}))
    fail("predictions: logits {} and targets {}, expected [batch context vocabulary] and [batch context]", {show(logits), show(targets)});
  std::vector<bool> right(static_cast<size_t>(targets[0]), true);  // all targets of the sequence
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
  if (classes < 2) fail("confusion: {} classes, expected 2 or more", {classes});
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
    fail("confusion: logits {} and targets {}, expected [batch {}] and [batch]", {show(logits), show(targets), classes_});
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
    const ClassScores one = scores(k);  // zeros where the class does not occur
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

}  // namespace ricci
