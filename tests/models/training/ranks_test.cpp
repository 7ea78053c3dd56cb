// Training on multiple ranks, threads here: in f64 they have the losses, norms and values of one process up to rounding, and each rank has
// the bits of the others.
#include <algorithm>
#include <cmath>
#include <mutex>

#include "core/cpu/parallel.h"
#include "models/training/sum_gradients.h"
#include "tests/models/training/every_model.h"
#include "tests/models/training/small_training.h"
#include "tests/skip.h"
#include "tests/thread_ranks.h"

using namespace ricci;

namespace {

constexpr int64_t kSteps = 3;

struct Case {
  ModelConfig config;
  Dtype dtype = Dtype::f64;
  int64_t micro_batches = 4;
  OptimizerConfig optimizer = {};
  bool freeze = false;  // the first parameter
};

struct Outcome {
  std::vector<double> numbers;  // losses and norms
  std::vector<Tensor> values;
};

// Micro-batches of different weights: some have fewer scored tokens.
std::vector<Batch> micro_batches_of(const ModelConfig& config, int64_t count) {
  std::vector<Batch> all = small_micro_batches(config, count, Device::cpu);
  if (config.family != family_of<Decoder>) return all;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t t = 0; t < i % 5; ++t, --all[static_cast<size_t>(i)].scored)
      all[static_cast<size_t>(i)].targets.data<int64_t>()[t] = kNoTarget;
  return all;
}

Model made(const Case& c) {
  Model model(c.config, 3);
  if (c.freeze) model.parameters()[0]->frozen = true;
  model.place_for_training(c.dtype, Device::cpu);
  return model;
}

Outcome train(const Case& c, Ranks& ranks, Dtype reduce_dtype = Dtype::f32) {
  Model model = made(c);
  Optimizer optimizer(model.trained_parameters(), c.optimizer);
  const auto [lo, hi] = share_of(c.micro_batches, ranks);
  TrainStep step(model, optimizer, Device::cpu,
      {.seed = 8, .clip = 0.05, .first_micro_batch = lo, .reduce_dtype = reduce_dtype, .norms_every = 1}, ranks);
  const std::vector<Batch> all = micro_batches_of(c.config, c.micro_batches);
  Outcome outcome;
  for (int64_t i = 0; i < kSteps; ++i) {
    const StepResult result = step.run({all.begin() + lo, all.begin() + hi}, i, 1e-2);
    outcome.numbers.insert(outcome.numbers.end(), {result.loss, result.gradient_norm});
    for (const auto& [name, norm] : result.norms) outcome.numbers.push_back(norm);
  }
  for (const Parameter* p : model.parameters())
    if (p->value) outcome.values.push_back(p->unrounded());
  return outcome;
}

// The largest difference of any value from one process's.
double difference(const Outcome& a, const Outcome& b) {
  double largest = 0;
  for (size_t i = 0; i < a.numbers.size(); ++i) largest = std::max(largest, std::abs(a.numbers[i] - b.numbers[i]));
  for (size_t i = 0; i < a.values.size(); ++i) {
    const Values x = values_of(a.values[i]), y = values_of(b.values[i]);
    for (size_t e = 0; e < x.size(); ++e) largest = std::max(largest, std::abs(x[e] - y[e]));
  }
  return largest;
}

bool same(const Outcome& a, const Outcome& b) {
  if (a.numbers != b.numbers || a.values.size() != b.values.size()) return false;
  for (size_t i = 0; i < a.values.size(); ++i)
    if (!same_bits(a.values[i], b.values[i])) return false;
  return true;
}

// `count` ranks compute the result of one process, with the same bits on each.
Outcome check_ranks(const Case& c, int count, double tolerance, Dtype reduce_dtype = Dtype::f32) {
  CAPTURE(count);
  std::mutex lock;
  std::vector<Outcome> of_ranks;
  const std::vector<std::string> errors = on_ranks(count, [&](Ranks& ranks) {
    Outcome outcome = train(c, ranks, reduce_dtype);
    const std::lock_guard locked(lock);
    of_ranks.push_back(std::move(outcome));
  });
  for (const std::string& error : errors) CHECK(error == "");
  REQUIRE(of_ranks.size() == static_cast<size_t>(count));
  for (const Outcome& outcome : of_ranks) CHECK(same(outcome, of_ranks[0]));
  CHECK(difference(of_ranks[0], train(c, Ranks::alone())) < tolerance);
  return of_ranks[0];
}

Case small_case() { return {small_model({.dropout = 0.1})}; }

constexpr double kRounding = 1e-9;  // in f64; adam divides small gradients by small numbers

}  // namespace

TEST_CASE("ranks: the losses, norms and values of one process, for shares that are equal or not") {
  Case c = small_case();
  for (c.micro_batches = 2; c.micro_batches <= 7; ++c.micro_batches)
    for (int count = 2; count <= c.micro_batches; ++count) {
      if (!test::everything() && c.micro_batches % 3 != 1) continue;
      CAPTURE(c.micro_batches);
      check_ranks(c, count, kRounding);
    }
}

TEST_CASE("ranks: every family and mixer, sgd, a frozen table, an output map that is not tied") {
  for (const Variant& v : every_model()) {
    CAPTURE(v.name);
    check_ranks({v.config}, 3, kRounding);
  }
  Case c = small_case();
  c.freeze = true;
  c.config.output.tie = false;
  c.optimizer = OptimizerConfig::with(Sgd());
  check_ranks(c, 2, kRounding);
}

TEST_CASE("ranks: f32, bf16 models with f32 masters, and gradients that are added up in bf16") {
  Case c = small_case();
  c.optimizer = OptimizerConfig::with(Sgd());  // proportional to the gradient, unlike adam
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    c.dtype = dtype;
    const Outcome exact = check_ranks(c, 4, dtype == Dtype::f32 ? 1e-6 : 1e-3);
    const Outcome rounded = check_ranks(c, 4, 1e-3, Dtype::bf16);
    CHECK_FALSE(same(exact, rounded));
  }
}

TEST_CASE("ranks: a gradient is the sum of those that have one, and stays empty if no rank has one") {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
    for (const Dtype reduce_dtype : {Dtype::f32, Dtype::bf16}) {
      const auto errors = on_ranks(3, [&](Ranks& ranks) {
        std::vector<Parameter> parameters(5);
        std::vector<Parameter*> all;
        const std::vector<Shape> shapes{{3, 5}, {33}, {2}, {1}, {1}};
        for (size_t i = 0; i < shapes.size(); ++i) {
          parameters[i].value = zeros(shapes[i], dtype, Device::cpu);
          all.push_back(&parameters[i]);
        }
        const double mine = ranks.rank() + 1;  // a short number that bf16 can hold
        for (const size_t i : {size_t{0}, size_t{1}, size_t{3}}) {
          if (i == 1 && ranks.rank() != 1) continue;
          parameters[i].grad = Tensor(shapes[i], dtype);
          fill(parameters[i].grad, mine * static_cast<double>(i + 1));
        }
        parameters[4].grad = parameters[3].grad;  // the tape can give one tensor to two parameters
        const Tensor loss({}, Dtype::f64);
        fill(loss, mine / 4);
        sum_gradients(all, loss, reduce_dtype, ranks);
        CHECK(item(loss) == 1.5);
        CHECK_FALSE(parameters[2].grad);
        for (const auto& [i, expected] : {std::pair<size_t, double>{0, 6}, {1, 4}, {3, 24}, {4, 24}}) {
          REQUIRE(parameters[i].grad);
          CHECK(parameters[i].grad.dtype() == dtype);
          CHECK(parameters[i].grad.shape() == shapes[i]);
          const std::vector<double> values = values_of(parameters[i].grad);
          CHECK(std::count(values.begin(), values.end(), expected) == std::ssize(values));
        }
      });
      for (const std::string& error : errors) CHECK(error == "");
    }
  }
}

TEST_CASE("ranks: if an op makes a NaN on one of them, all name it, and nothing is updated") {
  Case c = small_case();
  c.config.output.tie = false;
  const auto lines = on_ranks(3, [&](Ranks& ranks) {
    Model model = made(c);
    const std::vector<Parameter*> trained = model.trained_parameters();
    Optimizer optimizer(trained, {});
    fill(model.parameters()[0]->value.rows(kVocabulary - 1, 1), NAN);
    std::vector<Tensor> before;
    for (const Parameter* p : trained) copy(before.emplace_back(like(p->value)), p->value);
    TrainStep step(model, optimizer, Device::cpu, {.seed = 8, .first_micro_batch = ranks.rank()}, ranks);
    const std::vector<Batch> mine{micro_batches_of(c.config, 3)[static_cast<size_t>(ranks.rank())]};
    int64_t* const ids = mine[0].ids_bc.data<int64_t>();
    std::replace(ids, ids + mine[0].ids_bc.size(), kVocabulary - 1, int64_t{0});
    if (ranks.rank() == 1) ids[3] = kVocabulary - 1;
    const double loss = step.run(mine, 2, 1e-3).loss;
    CHECK(std::isnan(loss));
    for (size_t i = 0; i < trained.size(); ++i) CHECK(same_bits(before[i], trained[i]->value));
    step.explain_nonfinite(mine, 2, loss);
  });
  for (const std::string& line : lines) CHECK_MESSAGE(line.starts_with("step 3: the loss is nan: embedding ("), line);
}

TEST_CASE("ranks: a graph is an error") {
  const auto lines = on_ranks(2, [&](Ranks& ranks) {
    Model model = made(small_case());
    Optimizer optimizer(model.trained_parameters(), {});
    TrainStep(model, optimizer, Device::cpu, {.cuda_graph = true}, ranks);
  });
  CHECK(lines[0] == "cuda_graph: is not supported with multiple ranks");
}
