// The scores of classifiers and of predicted tokens, against values computed by hand and logits sequence by sequence.

#include "models/inference/evaluation.h"
#include "tests/models/model_cases.h"

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

constexpr int64_t kSequences = 9, kLength = 6, kClasses = 3;

Model classifier() {
  ModelConfig c = small_config(kind_of<Sdp>, Preset::gpt, family_of<Classifier>);
  c.ctx = kLength, c.layers = 1, c.block.dropout = 0.5;
  Model model = built(c, Device::cpu);
  model.each_parameter([](const std::string&, Parameter& p) {  // with initial weights all classes are about equally probable
    for (int64_t i = 0; i < p.value.size(); ++i) p.value.data<double>()[i] *= 8;
  });
  return model;
}

std::vector<int64_t> ids_from(int64_t sequence, int64_t count) {
  std::vector<int64_t> all;
  for (int64_t i = sequence * kLength; i < (sequence + count) * kLength; ++i) all.push_back((i * i + i / 5) % 11);
  return all;
}

}  // namespace

TEST_CASE("predictions: tokens and whole sequences are counted, targets of -1 are not") {
  // Largest logits: 2 0 1 | 1 1 0, the first of equal ones.
  const Tensor logits = tensor_of({0, 1, 2, 5, 1, 0, 3, 4, 4, 0, 9, 8, 1, 7, 0, 6, 6, 6}, {2, 3, 3}, Dtype::f64, Device::cpu);
  const auto counted = [&](const std::vector<int64_t>& targets) {
    Predictions p;
    const Tensor t({2, 3}, Dtype::i64);
    std::copy(targets.begin(), targets.end(), t.data<int64_t>());
    p.add(logits, t);
    p.add(logits, t);
    return std::vector<int64_t>{p.tokens, p.tokens_right, p.sequences, p.sequences_right};
  };
  CHECK(counted({2, 0, 1, 1, 1, 0}) == std::vector<int64_t>{12, 12, 4, 4});
  CHECK(counted({2, 0, 2, 1, 1, 0}) == std::vector<int64_t>{12, 10, 4, 2});
  CHECK(counted({-1, 0, -1, 2, -1, 0}) == std::vector<int64_t>{6, 4, 4, 2});
  CHECK(counted({0, 1, 2, 0, 0, 1}) == std::vector<int64_t>{12, 0, 4, 0});
  CHECK(message_of([&] {
    Predictions().add(logits, Tensor({3, 2}, Dtype::i64));
  }) == "predictions: logits are [2 3 3] and targets are [3 2], expected [batch context vocabulary] and [batch context]");
  CHECK(Predictions().token_accuracy() == 0);
}

TEST_CASE("predictions: the first of the largest logits, on every device and in every dtype") {
  on_every_device([](Device device) {
    for (const Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::bf16}) {
      const Tensor logits_rv = convert(randn({7, 301}, 5), dtype);  // in bf16 some of them are equal
      for (const auto& [row, column] : {std::pair{0, 300}, {1, 0}, {2, 17}, {2, 230}}) {
        const Tensor element = logits_rv.rows(row, 1).reshaped({301}).rows(column, 1);
        fill(element, 100);
      }
      const Tensor host = convert(logits_rv, Dtype::f64), found = to(largest_in_rows(to(logits_rv, device)), Device::cpu);
      REQUIRE(found.shape() == Shape{7});
      for (int64_t r = 0; r < 7; ++r) {
        const double* const row = host.data<double>() + r * 301;
        CHECK(found.data<int64_t>()[r] == std::max_element(row, row + 301) - row);
      }
      CHECK(found.data<int64_t>()[2] == 17);
      fill(logits_rv, NAN);
      CHECK(item(to(largest_in_rows(to(logits_rv, device)), Device::cpu), 3) == 0);
    }
  });
}

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
      Confusion(2).add(logits_bk, targets_b), "confusion: logits are [5 3] and targets are [5], expected [batch 2] and [batch]", Error);
  CHECK_THROWS_WITH_AS(Confusion(1), "confusion: classes is 1, expected 2 or more", Error);
}

TEST_CASE("classes: loss and counts do not depend on the batches, and targets of -1 do not count") {
  const Model model = classifier();
  const std::vector<int64_t> targets = {0, 2, -1, 1, 1, 0, 2, 2, -1};
  double nats = 0;
  Confusion expected(kClasses);
  for (int64_t s = 0; s < kSequences; ++s) {
    const Tensor logits = model.logits({ids_of(ids_from(s, 1), {1, kLength}, Device::cpu)});
    const int64_t target = targets[static_cast<size_t>(s)];
    if (target < 0) continue;
    double total = 0;
    int64_t best = 0;
    for (int64_t k = 0; k < kClasses; ++k) {
      total += std::exp(item(logits, k));
      if (item(logits, k) > item(logits, best)) best = k;
    }
    nats += std::log(total) - item(logits, target);
    expected.add(target, best);
  }
  for (const int64_t size : {1, 2, 9}) {
    CAPTURE(size);
    int64_t calls = 0;
    const Evaluation got = evaluate(
        model, (kSequences + size - 1) / size,
        [&](int64_t i) {
          const int64_t first = i * size, count = std::min(size, kSequences - first);
          const std::vector<int64_t> some(targets.begin() + first, targets.begin() + first + count);
          return make_batch(ids_of(ids_from(first, count), {count, kLength}, Device::cpu), ids_of(some, {count}, Device::cpu));
        },
        [&](int64_t done) { CHECK(done == ++calls); });
    CHECK(got.nats_per_token == doctest::Approx(nats / 7).epsilon(1e-13));
    CHECK(got.tokens == 7);
    for (int64_t target = 0; target < kClasses; ++target)
      for (int64_t predicted = 0; predicted < kClasses; ++predicted)
        CHECK(got.confusion->count(target, predicted) == expected.count(target, predicted));
    CHECK(calls == (kSequences + size - 1) / size);
  }
}
