// A classifier over several batches, against its logits sequence by sequence.
#include "models/evaluation/evaluation.h"
#include "tests/models/model_cases.h"

using namespace ricci;

namespace {

constexpr int64_t kSequences = 9, kLength = 6, kClasses = 3;

Model classifier() {
  ModelConfig c;
  c.family = family_of<Classifier>;
  apply_preset(c);
  c.vocab = 11, c.ctx = kLength, c.d = 12, c.layers = 1, c.block.dropout = 0.5, c.of<Classifier>().classes = kClasses;
  Model model = built(c, Device::cpu);
  model.each_parameter([](const std::string&, Parameter& p) {  // initial weights find all classes about as probable
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
    const Evaluation got = evaluate_classes(
        model, (kSequences + size - 1) / size,
        [&](int64_t i) {
          const int64_t first = i * size, count = std::min(size, kSequences - first);
          const std::vector<int64_t> some(targets.begin() + first, targets.begin() + first + count);
          const int64_t scored = count - std::count(some.begin(), some.end(), -1);
          return MicroBatch{{ids_of(ids_from(first, count), {count, kLength}, Device::cpu), ids_of(some, {count}, Device::cpu)}, scored};
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
