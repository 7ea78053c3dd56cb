#include "models/inference/predictions.h"

#include "tests/ops/values.h"

using namespace ricci;

TEST_CASE("predictions: tokens and whole sequences are counted, targets of -1 are not") {
  // Largest logits: 2 0 1 | 1 1 0, where the first of equal ones counts.
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
  }) == "predictions: logits [2 3 3] and targets [3 2], expected [batch context vocabulary] and [batch context]");
  CHECK(Predictions().token_accuracy() == 0);
}
