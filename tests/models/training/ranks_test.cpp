// Training on several ranks, which are threads here: values, masters, moments, losses and norms have the bits of one process.
#include <algorithm>
#include <map>
#include <mutex>

#include "core/cpu/parallel.h"
#include "tests/models/training/every_model.h"
#include "tests/models/training/small_training.h"
#include "tests/skip.h"
#include "tests/thread_ranks.h"

using namespace ricci;

namespace {

constexpr int64_t kSteps = 2;

struct Case {
  ModelConfig config;
  Dtype dtype = Dtype::f32;
  bool recompute = false;
  OptimizerConfig optimizer = {};
  bool freeze = false;        // the first parameter
  int64_t micro_batches = 0;  // 0: as many as leaves
};

struct Outcome {
  std::vector<double> numbers;  // losses and norms
  std::vector<std::pair<std::string, Tensor>> tensors;
};

// Micro-batches of which some score fewer tokens, so that they weigh differently.
std::vector<MicroBatch> micro_batches_of(const ModelConfig& config, int64_t count) {
  std::vector<MicroBatch> all = small_micro_batches(config, count, Device::cpu);
  if (config.family != family_of<Decoder>) return all;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t t = 0; t < i % 5; ++t, --all[static_cast<size_t>(i)].scored)
      all[static_cast<size_t>(i)].inputs.targets.data<int64_t>()[t] = kNoTarget;
  return all;
}

Model made(const Case& c) {
  Model model(c.config, 3);
  if (c.freeze) model.parameters()[0]->frozen = true;
  model.place_for_training(c.dtype, Device::cpu);
  model.recompute_blocks(c.recompute);
  return model;
}

TrainStepOptions options_of(const Case& c, int64_t max_ranks) {
  return {.seed = 8,
      .clip = 0.05,
      .max_ranks = max_ranks,
      .micro_batches = c.micro_batches ? c.micro_batches : max_ranks,
      .bucket_bytes = 8 * GradientLayout::kBlock * 4};
}

void take_steps(Model& model, Optimizer& optimizer, const Case& c, int64_t max_ranks, Ranks& ranks, std::vector<double>& numbers) {
  const TrainStepOptions options = options_of(c, max_ranks);
  TrainStep step(model, optimizer, Device::cpu, options, ranks);
  const std::vector<MicroBatch> all = micro_batches_of(c.config, options.micro_batches);
  const auto [lo, hi] = Share::of_rank(options.micro_batches, max_ranks, ranks.rank(), ranks.count()).micro_batches();
  const std::vector<MicroBatch> mine(all.begin() + lo, all.begin() + hi);
  for (int64_t i = 0; i < kSteps; ++i) {
    const auto [loss, norm] = step.run(mine, i, 1e-2, {double(ranks.rank()), 0.5});
    numbers.insert(numbers.end(), {loss, norm});
    CHECK(step.from_ranks().size() == static_cast<size_t>(2 * ranks.count()));
    for (size_t r = 0; r < step.from_ranks().size(); ++r) CHECK(step.from_ranks()[r] == (r % 2 ? 0.5 : double(r / 2)));
  }
}

Outcome alone(const Case& c, int64_t max_ranks) {
  Model model = made(c);
  Optimizer optimizer(model.trained_parameters(), c.optimizer);
  Outcome outcome;
  take_steps(model, optimizer, c, max_ranks, Ranks::alone(), outcome.numbers);
  for (const Parameter* p : model.parameters()) {
    outcome.tensors.emplace_back(p->path, p->value);
    if (p->master) outcome.tensors.emplace_back(p->path + ".master", p->master);
  }
  optimizer.each_state([&](const std::string& name, Tensor& t) { outcome.tensors.emplace_back(name, t); });
  return outcome;
}

// The same of several ranks; false where something differs between them or is not owned once.
bool together(const Case& c, int64_t max_ranks, int ranks, Outcome& outcome, std::vector<std::string>* errors = nullptr) {
  std::mutex lock;
  std::map<std::string, Tensor> tensors;
  std::map<std::string, int64_t> owned;
  std::vector<double> numbers;
  bool alike = true;
  const auto put = [&](const std::string& name, const Shape& shape, const std::vector<StateBlock>& blocks) {
    if (!tensors.contains(name)) tensors[name] = Tensor(shape, blocks.empty() ? Dtype::f32 : blocks[0].values.dtype());
    for (const StateBlock& block : blocks) {
      copy(part_of(tensors[name], block.elements), block.values);
      owned[name] += block.values.size();
    }
  };
  const auto one = [&](Ranks& rank) {
    Model model = made(c);
    const GradientLayout layout(model.trained_parameters(), rank.count(), options_of(c, max_ranks).bucket_bytes);
    const std::vector<OwnedBlock> blocks = layout.blocks_of(rank.rank());
    Optimizer optimizer(model.trained_parameters(), c.optimizer, {blocks.begin(), blocks.end()});
    std::vector<double> mine;
    take_steps(model, optimizer, c, max_ranks, rank, mine);
    const std::lock_guard locked(lock);
    if (numbers.empty()) numbers = mine;
    alike &= numbers == mine;
    for (const Parameter* p : model.parameters()) {
      const auto [found, is_new] = tensors.emplace(p->path, p->value);
      alike &= is_new || same_bits(found->second, p->value);
      if (p->master) tensors.emplace(p->path + ".master", p->master);  // frozen
      if (p->master_in_blocks) put(p->path + ".master", p->value.shape(), optimizer.master_blocks(*p));
    }
    optimizer.each_state_block(put);
  };
  const std::vector<std::string> got = on_ranks(ranks, one);
  if (errors) *errors = got;
  for (const std::string& error : got)
    if (!error.empty()) return false;
  outcome.numbers = numbers;
  for (auto& [name, t] : tensors) outcome.tensors.emplace_back(name, t);
  for (const auto& [name, count] : owned) alike &= count == tensors[name].size();
  return alike;
}

bool same(Outcome a, Outcome b) {
  const auto by_name = [](const auto& x, const auto& y) { return x.first < y.first; };
  std::sort(a.tensors.begin(), a.tensors.end(), by_name);
  std::sort(b.tensors.begin(), b.tensors.end(), by_name);
  const auto equal = [](const auto& x, const auto& y) { return x.first == y.first && same_bits(x.second, y.second); };
  return a.numbers == b.numbers && std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end(), equal);
}

// Its token table has several blocks, and all of it several buckets.
Case small_case() {
  Case c{small_model({.dropout = 0.1})};
  c.config.vocab = 3000;
  resolve(c.config);
  return c;
}

void check_same(const Case& c, int64_t max_ranks, int ranks) {
  CAPTURE(max_ranks);
  CAPTURE(ranks);
  Outcome several;
  std::vector<std::string> errors;
  const bool alike = together(c, max_ranks, ranks, several, &errors);
  for (const std::string& error : errors) CHECK(error == "");
  CHECK(alike);
  CHECK(same(several, alone(c, max_ranks)));
}

}  // namespace

TEST_CASE("ranks: the bits of one process, for every number of ranks and leaves up to 16") {
  Case c = small_case();
  c.config.layers = 1;
  for (int64_t max_ranks = 1; max_ranks <= 16; ++max_ranks) {
    const Outcome one = alone(c, max_ranks);
    for (int ranks = 2; ranks <= max_ranks; ++ranks) {
      if (!test::everything() && max_ranks > 5 && (max_ranks * ranks) % 7) continue;
      CAPTURE(max_ranks);
      CAPTURE(ranks);
      Outcome several;
      CHECK(together(c, max_ranks, ranks, several));
      CHECK(same(several, one));
    }
  }
}

TEST_CASE("ranks: the bits of one process in bf16, recomputed, with a frozen table, sgd and micro-batches that leaves do not divide") {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
    for (const bool recompute : {false, true})
      for (const bool freeze : {false, true})
        for (const bool sgd : {false, true}) {
          Case c = small_case();
          c.dtype = dtype, c.recompute = recompute, c.freeze = freeze, c.micro_batches = 7;
          c.optimizer.kind = sgd ? OptimizerConfig::Kind::sgd : OptimizerConfig::Kind::adamw;
          c.config.output.tie = !sgd;
          check_same(c, 4, 3);
        }
}

TEST_CASE("ranks: the bits of one process for every family and mixer") {
  for (const Variant& v : every_model()) {
    CAPTURE(v.name);
    check_same({v.config}, 4, 3);
  }
}

TEST_CASE("ranks: a parameter that one rank reached and another did not is an error that names both") {
  const Case c = small_case();
  const auto lines = on_ranks(2, [&](Ranks& rank) {
    Model model = made(c);
    const std::vector<Parameter*> trained = model.trained_parameters();
    const auto blocks = GradientLayout(trained, 2, options_of(c, 2).bucket_bytes).blocks_of(rank.rank());
    Optimizer optimizer(trained, {}, {blocks.begin(), blocks.end()});
    TrainStep step(model, optimizer, Device::cpu, options_of(c, 2), rank);
    for (Parameter* p : trained) p->frozen = rank.rank() == 1 && p->path == "blocks.1.fc.bias";
    step.run({micro_batches_of(c.config, 2)[static_cast<size_t>(rank.rank())]}, 811, 1e-3);
  });
  for (const std::string& line : lines) CHECK(line == "step 812: rank 1 on node has no gradient for blocks.1.fc.bias, rank 0 has");
}

TEST_CASE("ranks: the op that made a NaN on one of them is named on all, and nothing is updated") {
  Case c = small_case();
  c.config.output.tie = false;
  const auto lines = on_ranks(3, [&](Ranks& rank) {
    Model model = made(c);
    const std::vector<Parameter*> trained = model.trained_parameters();
    const auto blocks = GradientLayout(trained, 3, options_of(c, 3).bucket_bytes).blocks_of(rank.rank());
    Optimizer optimizer(trained, {}, {blocks.begin(), blocks.end()});
    fill(model.parameters()[0]->value.rows(2999, 1), NAN);
    std::vector<Tensor> before;
    for (const Parameter* p : trained) copy(before.emplace_back(like(p->value)), p->value);
    TrainStep step(model, optimizer, Device::cpu, options_of(c, 3), rank);
    const std::vector<MicroBatch> mine{micro_batches_of(c.config, 3)[static_cast<size_t>(rank.rank())]};
    if (rank.rank() == 1) mine[0].inputs.ids_bc.data<int64_t>()[3] = 2999;
    const double loss = step.run(mine, 2, 1e-3).loss;
    CHECK(std::isnan(loss));
    for (size_t i = 0; i < trained.size(); ++i) CHECK(same_bits(before[i], trained[i]->value));
    step.explain_nonfinite(mine, 2, loss);
  });
  for (const std::string& line : lines) CHECK_MESSAGE(line.starts_with("step 3: the loss is nan: embedding ("), line);
}

TEST_CASE("ranks: more of them than leaves, and a graph, are errors") {
  const Case c = small_case();
  const auto message = [&](TrainStepOptions options) {
    return on_ranks(2, [&](Ranks& rank) {
      Model model = made(c);
      Optimizer optimizer(model.trained_parameters(), {}, {});
      TrainStep(model, optimizer, Device::cpu, options, rank);
    })[0];
  };
  CHECK(message({}) == "max_ranks: 1 is the most ranks this run can use, not 2");
  CHECK(message({.cuda_graph = true, .max_ranks = 2}) == "cuda_graph: not with several ranks yet");
}
