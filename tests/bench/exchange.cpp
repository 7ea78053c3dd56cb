// The exchange of gradients beside the backward that hides it, on the processes that mpirun started: steps of a model on random tokens,
// each as it is, then without the exchange, then the exchange alone. tests/bench/ranks.py runs it on networks of several speeds.
//   mpirun -n 2 ricci-bench-exchange [name] [--rounds N] [--list]
// Prints "measure NAME VALUE UNIT": medians over the rounds, each of the slowest rank.
#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "apps/run/corpus/micro_batches.h"
#include "autograd/gradient_layout.h"
#include "core/cpu/parallel.h"
#include "cuda/ranks/ranks.h"
#include "models/training/train_step.h"
#include "tests/bench/measured_steps.h"

using namespace ricci;

namespace {

struct Case {
  const char* name;
  int64_t vocab, d, layers, batch, context;
  bool tie;
};

constexpr Case kCases[] = {
    {"gpt2_4x64", 50257, 768, 12, 4, 64, true},
    {"gpt2_4x256", 50257, 768, 12, 4, 256, true},
    {"gpt2_untied_4x64", 50257, 768, 12, 4, 64, false},
    {"small_untied_4x256", 4096, 256, 6, 4, 256, false},
};

// Carries what other ranks carry, but gradients only while it is told to: else zeros arrive at once.
class GradientsOrNot final : public Ranks {
 public:
  explicit GradientsOrNot(Ranks& within) : within_(within) {
    rank_ = within.rank();
    count_ = within.count();
    local_ = within.local();
    machines_.clear();
    for (int r = 0; r < count_; ++r) machines_.push_back(within.machine(r));
  }
  bool carries_gradients = true;
  double waited_for_gradients = 0;  // seconds

  void all_to_all(const std::vector<Tensors>& to, const std::vector<Tensors>& from) override {
    exchanges_gradients_ = true;
    if (notes_) sizes_.push_back({sizes_of(to), sizes_of(from)});
    if (carries_gradients) return within_.all_to_all(to, from);
    for (size_t q = 0; q < from.size(); ++q)
      for (const Tensor& t : from[q])
        if (static_cast<int>(q) != rank_) fill(t, 0);
  }
  void all_gather(const Tensor& shares) override { within_.all_gather(shares); }
  void sum(const Tensor& numbers) override {
    exchanges_gradients_ = false;
    within_.sum(numbers);
  }
  using Ranks::from_first;
  void from_first(const Tensor& t) override { within_.from_first(t); }
  void wait_but_for(int64_t last) override {
    const double before = within_.waited();
    within_.wait_but_for(last);
    if (exchanges_gradients_) waited_for_gradients += within_.waited() - before;
  }
  void wait_patiently() override { within_.wait_patiently(); }

  // The all_to_alls of a step are noted from here on, until exchange_alone() has taken them.
  void note() { notes_ = true; }
  // The exchanges that were noted, with nothing beside them. Returns the seconds.
  double exchange_alone() {
    notes_ = false;
    for (size_t i = tensors_.size(); i < sizes_.size(); ++i)
      tensors_.push_back({tensors_of(sizes_[i].first), tensors_of(sizes_[i].second)});
    within_.wait_patiently();
    const double begun = seconds_now();
    for (const auto& [to, from] : tensors_) within_.all_to_all(to, from);
    within_.wait();
    return seconds_now() - begun;
  }

 private:
  using Sizes = std::vector<std::vector<int64_t>>;
  static Sizes sizes_of(const std::vector<Tensors>& lists) {
    Sizes sizes(lists.size());
    for (size_t q = 0; q < lists.size(); ++q)
      for (const Tensor& t : lists[q]) sizes[q].push_back(t.size());
    return sizes;
  }
  static std::vector<Tensors> tensors_of(const Sizes& sizes) {
    std::vector<Tensors> lists(sizes.size());
    for (size_t q = 0; q < sizes.size(); ++q)
      for (const int64_t size : sizes[q]) lists[q].push_back(zeros({size}, Dtype::f32, Device::cpu));
    return lists;
  }
  void begin_testing() override { testing_ = std::make_unique<Testing>(within_); }
  void end_testing() override { testing_.reset(); }

  Ranks& within_;
  std::unique_ptr<Testing> testing_;
  bool notes_ = false, exchanges_gradients_ = false;
  std::vector<std::pair<Sizes, Sizes>> sizes_;
  std::vector<std::pair<std::vector<Tensors>, std::vector<Tensors>>> tensors_;
};

ModelConfig config_of(const Case& c) {
  ModelConfig config;
  config.preset = Preset::gpt;
  config.vocab = c.vocab;
  config.ctx = c.context;
  config.d = c.d;
  config.layers = c.layers;
  config.settings<Sdp>().heads = c.d / 64;
  config.output.tie = c.tie;
  apply_preset(config);
  check(config);
  resolve(config);
  return config;
}

MicroBatch random_micro_batch(const Case& c, int64_t number) {
  const int64_t tokens = c.batch * c.context;
  const auto seed = static_cast<uint64_t>(2 * number);
  return apps::micro_batch_of(
      {c.batch, c.context, bench::random_ids(tokens, c.vocab, seed), bench::random_ids(tokens, c.vocab, seed + 1), tokens}, Device::cpu);
}

// The share of the tables in the gradient, which are complete only when backward ends.
double tables_of(Model& model) {
  int64_t tables = 0;
  model.each_parameter([&](const std::string& path, const Parameter& p) {
    if (path == "tok.weight" || path == "pos.weight") tables += p.value.size();
  });
  return static_cast<double>(tables) / static_cast<double>(model.parameter_count());
}

// The most of all ranks.
double slowest(Ranks& ranks, double seconds) {
  std::vector<double> all(static_cast<size_t>(ranks.count()));
  all[static_cast<size_t>(ranks.rank())] = seconds;
  all = ranks.sum(all);
  return *std::max_element(all.begin(), all.end());
}

void tell(const Ranks& ranks, const std::string& name, const char* what, double value, const char* unit) {
  if (ranks.rank() == 0) std::printf("measure %s_%s %.3f %s\n", name.c_str(), what, value, unit);
}

struct Times {
  std::vector<double> steps, waits, works, exchanges;  // seconds
};

void tell(const Ranks& ranks, const Case& c, const Times& times) {
  tell(ranks, c.name, "step", bench::median(times.steps) * 1e3, "ms");
  if (ranks.count() == 1) return;
  tell(ranks, c.name, "waits", bench::median(times.waits) * 1e3, "ms");
  tell(ranks, c.name, "work", bench::median(times.works) * 1e3, "ms");
  tell(ranks, c.name, "exchange", bench::median(times.exchanges) * 1e3, "ms");
}

void measure(const Case& c, int rounds) {
  GradientsOrNot ranks(Ranks::join());
  const int64_t count = ranks.count();
  Model model(config_of(c));
  model.init(1);
  model.place_for_training(Dtype::f32, Device::cpu);
  const std::vector<Parameter*> trained = model.trained_parameters();
  const GradientLayout layout(trained, count);
  const std::vector<OwnedBlock> blocks = layout.blocks_of(ranks.rank());
  Optimizer optimizer = count == 1 ? Optimizer(trained, {}) : Optimizer(trained, {}, {blocks.begin(), blocks.end()});
  TrainStep train_step(model, optimizer, Device::cpu, {.seed = 1, .clip = 1, .max_ranks = count, .micro_batches = count}, ranks);
  const std::vector<MicroBatch> mine{random_micro_batch(c, ranks.rank())};

  int64_t step = 0;
  const auto timed_step = [&](bool exchanges) {
    ranks.carries_gradients = exchanges;
    ranks.wait_patiently();
    const double begun = seconds_now();
    train_step.run(mine, step++, 1e-4);
    return slowest(ranks, seconds_now() - begun);
  };
  timed_step(true);
  ranks.note();
  timed_step(true);
  if (count > 1) ranks.exchange_alone();
  Times times;
  for (int round = 0; round < rounds; ++round) {
    ranks.waited_for_gradients = 0;
    times.steps.push_back(timed_step(true));
    times.waits.push_back(slowest(ranks, ranks.waited_for_gradients));
    if (count == 1) continue;
    times.works.push_back(timed_step(false));
    times.exchanges.push_back(slowest(ranks, ranks.exchange_alone()));
  }
  tell(ranks, c, times);
  if (count == 1) return;
  tell(ranks, c.name, "bytes", static_cast<double>(layout.buckets().back().hi * size_of(layout.dtype())), "bytes");
  tell(ranks, c.name, "tables", tables_of(model), "of the bytes");
  tell(ranks, c.name, "buckets", static_cast<double>(layout.buckets().size()), "buckets");
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> names;
  int rounds = 5;
  bool lists = false;
  const apps::AppText text{"ricci-bench-exchange", "The exchange of gradients, and how much of it backward hides.", true, true};
  const auto setup = [&](CLI::App& app) {
    app.add_option("names", names, "models; the first one if none are given");
    app.add_option("--rounds", rounds, "of a step, a step without the exchange, and the exchange alone")->check(apps::at_least_one);
    app.add_flag("--list", lists, "print the names of the models");
  };
  return apps::run_app(argc, argv, text, setup, [&] {
    set_thread_count(1);
    for (const std::string& name : names)
      if (std::none_of(std::begin(kCases), std::end(kCases), [&](const Case& c) { return c.name == name; }))
        fail("{}: there is no such model; --list prints them", {name});
    for (const Case& c : kCases) {
      const bool asked = names.empty() ? &c == &kCases[0] : std::find(names.begin(), names.end(), c.name) != names.end();
      if (lists) std::puts(c.name);
      else if (asked) measure(c, rounds);
    }
    return 0;
  });
}
