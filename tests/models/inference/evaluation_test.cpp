// The loss of a text against its definition: the mean over all tokens but the first, for any windows; and the nats of single tokens.
#include "models/inference/evaluation.h"

#include <atomic>
#include <utility>

#include "core/cpu/parallel.h"
#include "data/feeds/evaluation.h"
#include "models/layers/layers.h"
#include "tests/models/training/small_training.h"
#include "tests/ops/values.h"
#include "tests/thread_ranks.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

Model built(double dropout) {
  Model model(small_model({.dropout = dropout}));
  model.init(3);
  model.place(Dtype::f64, Device::cpu);
  model.each_parameter([](const std::string&, Parameter& p) {  // with initial weights all tokens are about equally probable
    for (int64_t i = 0; i < p.value.size(); ++i) p.value.data<double>()[i] *= 8;
  });
  return model;
}

// Sum and count of the nats of windows first .. last, each by a separate forward.
std::pair<double, int64_t> nats(const Model& model, const std::vector<int64_t>& text, int64_t stride, int64_t first, int64_t last) {
  const int64_t context = model.config().ctx;
  double sum = 0;
  int64_t tokens = 0;
  for (int64_t window = first; window <= last; ++window) {
    const int64_t begin = window * stride, length = std::min<int64_t>(context, static_cast<int64_t>(text.size()) - begin);
    const std::vector<int64_t> ids(text.begin() + begin, text.begin() + begin + length);
    const Values logits = values_of(model.logits({ids_of(ids, {1, length}, Device::cpu)}));
    for (int64_t t = window == 0 ? 0 : context - stride; t < length && begin + t + 1 < static_cast<int64_t>(text.size()); ++t) {
      double total = 0;
      const auto logit = [&](int64_t v) { return logits[static_cast<size_t>(t * kVocabulary + v)]; };
      for (int64_t v = 0; v < kVocabulary; ++v) total += std::exp(logit(v));
      sum += std::log(total) - logit(text[static_cast<size_t>(begin + t + 1)]);
      ++tokens;
    }
  }
  return {sum, tokens};
}

Model model_of(Family family, int64_t ctx, LossFrom loss_from = LossFrom::start) {
  ModelConfig config;
  config.family = family, config.vocab = 19, config.ctx = ctx, config.d = 16, config.layers = 1;
  config.scales.scales = {1, 4}, config.stack_layers.layers = {1}, config.settings<TopDown>().loss_from = loss_from;
  apply_preset(config);
  Model model(config);
  model.init(3);
  model.place(Dtype::f32, Device::cpu);
  return model;
}

std::vector<int64_t> text(int64_t count) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back((i * i + 3 * i) % 19);
  return ids;
}

// Eight ids from `first`.
Tensor eight(const std::vector<int64_t>& ids, size_t first = 0) {
  const auto begin = ids.begin() + static_cast<ptrdiff_t>(first);
  return ids_of({begin, begin + 8}, {1, 8}, Device::cpu);
}

}  // namespace

TEST_CASE("evaluation: the mean over tokens, not over batches, for every stride and size of batch") {
  const Model model = built(0);
  std::vector<int64_t> text(45);
  small_text().read(3, text);
  const Tokens tokens_of_text = test_data::tokens_of(text, kVocabulary);
  for (int64_t stride : {7, 3, 1})
    for (int64_t batch : {1, 4, 100}) {
      CAPTURE(stride);
      CAPTURE(batch);
      const EvaluationBatches windows = EvaluationBatches::windows(tokens_of_text, batch, 7, stride);
      int64_t calls = 0;
      const Evaluation got = evaluate(model, windows, Device::cpu, [&](int64_t done) { CHECK(done == ++calls); });
      const auto [sum, tokens] = nats(model, text, stride, 0, windows.rows() - 1);
      CHECK(calls == windows.batches());
      CHECK(tokens == 44);
      CHECK(got.tokens == 44);
      CHECK(got.nats_per_token == doctest::Approx(sum / 44).epsilon(1e-13));
      CHECK(got.perplexity() == std::exp(got.nats_per_token));
    }
  const auto [sum, tokens] = nats(model, text, 7, 0, 3);  // the nats of the first two batches
  EvaluationBatches first = EvaluationBatches::windows(tokens_of_text, 2, 7, 7);
  first.keep_first(2);
  const Evaluation two = evaluate(model, first, Device::cpu);
  CHECK(two.tokens == tokens);
  CHECK(two.nats_per_token == doctest::Approx(sum / static_cast<double>(tokens)).epsilon(1e-13));
}

TEST_CASE("evaluation: nothing is recorded or dropped, wherever it is called") {
  const Model plain = built(0), dropping = built(0.5);
  const EvaluationBatches windows = EvaluationBatches::windows(small_text(), 50, 7, 7);
  const double expected = evaluate(plain, windows, Device::cpu).nats_per_token;
  const Training training;
  Tape tape;
  CHECK(evaluate(dropping, windows, Device::cpu).nats_per_token == expected);
  CHECK(tape.nodes().empty());
}

TEST_CASE("evaluation: it can be stopped within a batch, and repeated") {
  const Model model = built(0.5);
  const EvaluationBatches windows = EvaluationBatches::windows(small_text(), 50, 7, 7);
  const double expected = evaluate(model, windows, Device::cpu).nats_per_token;
  static int64_t asked = 0, most = 0;
  asked = 0, most = INT64_MAX;
  const auto stop = [] { return ++asked > most; };
  CHECK_FALSE(evaluate(model, windows, Device::cpu, {}, Ranks::alone(), stop).was_stopped());
  CHECK(asked > 10 * windows.batches());
  const int64_t all = asked;
  for (most = 0; most < all; most += 7) {
    asked = 0;
    CHECK(evaluate(model, windows, Device::cpu, {}, Ranks::alone(), stop).was_stopped());
  }
  CHECK(evaluate(model, windows, Device::cpu).nats_per_token == expected);
}

TEST_CASE("evaluation: ranks share the batches and have the result of one process, bit for bit; if one is stopped, all are") {
  const Model model = built(0);
  const EvaluationBatches batches = EvaluationBatches::windows(small_text(), 3, 7, 7);
  const Evaluation alone = evaluate(model, batches, Device::cpu);
  for (const int count : {2, 3, 5}) {
    std::atomic<int64_t> computed = 0;
    const auto errors = ricci::on_ranks(count, [&](Ranks& ranks) {
      const auto count_batch = [&](int64_t) { ++computed; };
      const Evaluation got = evaluate(model, batches, Device::cpu, count_batch, ranks);
      if (got.nats_per_token != alone.nats_per_token || got.tokens != alone.tokens || got.targets != alone.targets)
        fail("another result", {});
    });
    CHECK(errors == std::vector<std::string>(static_cast<size_t>(count)));
    CHECK(computed == batches.batches());
  }
  std::atomic<int> stopped = 0;
  ricci::on_ranks(3, [&](Ranks& ranks) {
    static thread_local bool is_asked = false;
    is_asked = ranks.rank() == 1;
    if (evaluate(model, batches, Device::cpu, {}, ranks, [] { return is_asked; }).was_stopped()) ++stopped;
  });
  CHECK(stopped == 3);
}

TEST_CASE("evaluation: predictions that ranks counted are those of one process") {
  const auto errors = ricci::on_ranks(3, [](Ranks& ranks) {
    const int64_t r = ranks.rank();
    Predictions predictions{10 + r, 5 * r, 3, r};
    predictions.add_other_ranks(ranks);
    if (predictions.tokens != 33 || predictions.tokens_right != 15 || predictions.sequences != 9 || predictions.sequences_right != 3)
      fail("predictions", {});
    Confusion confusion(2);
    for (int64_t i = 0; i <= r; ++i) confusion.add(1, r == 2 ? 0 : 1);
    confusion.add_other_ranks(ranks);
    if (confusion.count(1, 1) != 3 || confusion.count(1, 0) != 3 || confusion.total() != 6) fail("confusion", {});
  });
  CHECK(errors == std::vector<std::string>(3));
}

TEST_CASE("token nats: their mean is the loss, and -1 is no target") {
  for (const Family family : {family_of<Decoder>, family_of<TopDown>, family_of<BottomUp>, family_of<Retina>}) {
    const Model model = model_of(family, 8);
    std::vector<int64_t> targets = text(16);
    targets[3] = targets[15] = -1;
    const Batch inputs{ids_of(text(16), {2, 8}, Device::cpu), ids_of(targets, {2, 8}, Device::cpu)};
    const std::vector<double> nats = token_nats(model, inputs);
    REQUIRE(nats.size() == 16);
    CHECK(std::isnan(nats[3]));
    CHECK(std::isnan(nats[15]));
    double sum = 0;
    for (const double n : nats) sum += std::isnan(n) ? 0 : n;
    CHECK(sum / 14 == doctest::Approx(item(model.loss(inputs))).epsilon(1e-5));
  }
}

TEST_CASE("token nats: the first position that counts") {
  CHECK(first_scored(model_of(family_of<Decoder>, 8), 8) == 0);
  CHECK(first_scored(model_of(family_of<TopDown>, 8), 8) == 0);
  CHECK(first_scored(model_of(family_of<TopDown>, 8, LossFrom::first_full), 8) == 3);
}

TEST_CASE("token nats: errors") {
  const Model model = model_of(family_of<Decoder>, 8), coarse = model_of(family_of<Coarse>, 8);
  CHECK(message_of([&] {
    token_nats(coarse, {eight(text(8)), eight(text(8))});
  }) == "token nats: a coarse model gives no probability of the next token");
  CHECK(message_of([&] {
    token_nats(model, {ids_of({0, 4}, {1, 2}, Device::cpu), ids_of({1, 19}, {1, 2}, Device::cpu)});
  }) == "token nats: a target is 19, expected -1 .. 18");
}
