// The scores of a classifier against values computed by hand.
#include "models/inference/predictions.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

// Counts: a row per target, a column per prediction.
Confusion counted(const std::vector<std::vector<int64_t>>& rows) {
  Confusion confusion(static_cast<int64_t>(rows.size()));
  for (size_t target = 0; target < rows.size(); ++target)
    for (size_t predicted = 0; predicted < rows.size(); ++predicted)
      for (int64_t i = 0; i < rows[target][predicted]; ++i) confusion.add(static_cast<int64_t>(target), static_cast<int64_t>(predicted));
  return confusion;
}

}  // namespace

TEST_CASE("confusion: three classes") {
  const Confusion confusion = counted({{5, 2, 1}, {0, 3, 3}, {2, 0, 8}});
  CHECK(confusion.total() == 24);
  CHECK(confusion.count(1, 2) == 3);
  CHECK(confusion.accuracy() == doctest::Approx(16.0 / 24).epsilon(1e-15));
  const double precision[] = {5.0 / 7, 3.0 / 5, 8.0 / 12}, recall[] = {5.0 / 8, 3.0 / 6, 8.0 / 10}, f1[] = {10.0 / 15, 6.0 / 11, 16.0 / 22};
  for (int64_t k = 0; k < 3; ++k) {
    const ClassScores scores = confusion.scores(k);
    CHECK(scores.precision == doctest::Approx(precision[k]).epsilon(1e-15));
    CHECK(scores.recall == doctest::Approx(recall[k]).epsilon(1e-15));
    CHECK(scores.f1 == doctest::Approx(f1[k]).epsilon(1e-15));
  }
  const ClassScores macro = confusion.macro();
  CHECK(macro.precision == doctest::Approx((5.0 / 7 + 3.0 / 5 + 8.0 / 12) / 3).epsilon(1e-15));
  CHECK(macro.recall == doctest::Approx((5.0 / 8 + 3.0 / 6 + 8.0 / 10) / 3).epsilon(1e-15));
  CHECK(macro.f1 == doctest::Approx((10.0 / 15 + 6.0 / 11 + 16.0 / 22) / 3).epsilon(1e-15));
}

TEST_CASE("confusion: classes that are never predicted, never right, or do not occur") {
  const Confusion confusion = counted({{4, 0, 0, 0}, {2, 0, 0, 0}, {0, 0, 0, 0}, {0, 3, 0, 0}});
  CHECK(confusion.accuracy() == doctest::Approx(4.0 / 9));
  CHECK(confusion.scores(1).precision == 0);  // predicted, never right
  CHECK(confusion.scores(1).f1 == 0);
  CHECK(confusion.scores(3).precision == 0);    // never predicted
  CHECK(confusion.scores(2).recall == 0);       // does not occur
  const ClassScores macro = confusion.macro();  // over 0, 1 and 3
  CHECK(macro.precision == doctest::Approx(4.0 / 6 / 3));
  CHECK(macro.recall == doctest::Approx(1.0 / 3));
  CHECK(macro.f1 == doctest::Approx(8.0 / 10 / 3));
  CHECK(Confusion(2).accuracy() == 0);
  CHECK(Confusion(2).macro().f1 == 0);
}

TEST_CASE("confusion: a batch of logits") {
  const Tensor logits_bk({5, 3}, Dtype::f32), targets_b({5}, Dtype::i64);
  const float logits[] = {0, 2, 1, -1, -3, -2, 4, 4, 0, 0, 0, 1, 9, 0, 0};  // predicts 1 0 0 2 0
  const int64_t targets[] = {1, 2, 0, 2, -1};
  std::copy(std::begin(logits), std::end(logits), logits_bk.data<float>());
  std::copy(std::begin(targets), std::end(targets), targets_b.data<int64_t>());
  Confusion confusion(3);
  confusion.add(logits_bk, targets_b);
  CHECK(confusion.total() == 4);
  for (const auto& [target, predicted] : {std::pair{1, 1}, {2, 0}, {0, 0}, {2, 2}}) CHECK(confusion.count(target, predicted) == 1);

  targets_b.data<int64_t>()[3] = 3;
  CHECK_THROWS_WITH_AS(confusion.add(logits_bk, targets_b), "confusion: class 3 is outside 0 .. 2", Error);
  CHECK_THROWS_WITH_AS(
      Confusion(2).add(logits_bk, targets_b), "confusion: logits [5 3] and targets [5], expected [batch 2] and [batch]", Error);
  CHECK_THROWS_WITH_AS(Confusion(1), "confusion: 1 classes, expected 2 or more", Error);
}
