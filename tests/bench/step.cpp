// The cost of recompute and batch_invariant, for the run file and overrides of ricci train:
//   ricci-bench-step run.yaml batch=32
// Time and memory: optimizer steps, five of each kind in turn, the median of --rounds and the peak of tensor memory. Processor time is the
// sum over all threads, and hardly depends on other programs. Then ten steps from equal weights, with the sequences of a step in 1, 2 and 8
// batches: equality of the weights, and the losses.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "apps/run/batches.h"
#include "apps/run/config.h"
#include "apps/run/corpus.h"
#include "apps/run/options.h"
#include "core/cpu/parallel.h"
#include "core/files/checksum.h"
#include "models/training/optimizer.h"
#include "models/training/train_step.h"
#include "tests/bench/measured_steps.h"

using namespace ricci;
using namespace ricci::apps;
using bench::median;

namespace {

// A run as in ricci train, without files.
struct Run {
  TrainConfig config;
  Device device;
  Model model;
  Optimizer optimizer;
  TrainStep train_step;
  RandomCrops crops;
  int64_t done = 0;

  Run(const TrainConfig& c, const Corpus& corpus)
      : config(c),
        device(c.device),
        model(prepared(c, device)),
        optimizer(model.parameters(), c.optimizer),
        train_step(model, optimizer, device, step_options(c)),
        crops(corpus.train, c.sequences(), c.sequence_length(), c.seed, c.micro_batches()) {}

  static Model prepared(const TrainConfig& c, Device device) {
    Model model(c.model);
    model.init(c.seed);
    model.place(Dtype::f32, device);
    model.recompute_blocks(c.recompute == Recompute::blocks);
    return model;
  }
  double step() {
    std::vector<Batch> micro_batches;
    for (int64_t i = 0; i < config.micro_batches(); ++i) micro_batches.push_back(crops.next());
    const double loss = train_step.run(micro_batches, done, config.schedule.rate(done, config.steps)).loss;
    ++done;
    return loss;
  }
  // The hash of the bytes of all weights.
  uint64_t hash() {
    std::string all;
    model.each_parameter([&](const std::string&, Parameter& p) {
      const Tensor t = to(p.value, Device::cpu);
      all.append(static_cast<const char*>(t.raw()), static_cast<size_t>(t.bytes()));
    });
    return hash_bytes(all);
  }
};

struct Variant {
  const char* name;
  TrainConfig config;
  std::vector<double> milliseconds = {}, processor = {};
  int64_t peak = 0;
};

// One after the other, so memory is counted separately; two steps to warm up.
void measure(Variant& v, const Corpus& corpus) {
  Run run(v.config, corpus);
  run.step(), run.step();
  reset_peak(run.device);
  for (int i = 0; i < 5; ++i) {
    const double start = seconds_now();
    const std::clock_t busy = std::clock();
    run.step();
    v.milliseconds.push_back(1e3 * (seconds_now() - start));
    v.processor.push_back(1e3 * static_cast<double>(std::clock() - busy) / CLOCKS_PER_SEC);
  }
  v.peak = memory_use(run.device).peak;
}

void compare_costs(const TrainConfig& config, const Corpus& corpus, int rounds) {
  std::vector<Variant> variants = {{"plain", config}, {"recompute: blocks", config}, {"batch_invariant", config}};
  variants[1].config.recompute = Recompute::blocks, variants[2].config.batch_invariant = true;
  for (int round = 0; round < rounds; ++round)
    for (Variant& v : variants) measure(v, corpus);
  const double plain_ms = median(variants[0].milliseconds), plain_busy = median(variants[0].processor);
  const auto plain_peak = static_cast<double>(variants[0].peak);
  std::printf("%-20s %12s %8s %12s %8s %12s %8s\n", "", "ms per step", "ratio", "processor ms", "ratio", "peak MB", "ratio");
  for (const Variant& v : variants) {
    const double ms = median(v.milliseconds), busy = median(v.processor), peak = static_cast<double>(v.peak);
    std::printf("%-20s %12.1f %8.2f %12.1f %8.2f %12.1f %8.2f\n", v.name, ms, ms / plain_ms, busy, busy / plain_busy, peak / 1e6,
        peak / plain_peak);
  }
  std::fflush(stdout);  // the rest takes minutes for large models
}

void compare_cuts(TrainConfig config, const Corpus& corpus) {
  const int64_t sequences = config.batch * config.accumulation;
  std::printf("\n%-20s %10s %20s %22s %14s\n", "ten steps", "cut", "hash of the weights", "last loss", "difference");
  for (bool invariant : {false, true}) {
    double first = 0;
    for (int64_t parts : {1, 2, 8}) {
      if (sequences % parts) continue;
      config.accumulation = parts, config.batch = sequences / parts, config.batch_invariant = invariant;
      Run run(config, corpus);
      double loss = 0;
      for (int i = 0; i < 10; ++i) loss = run.step();
      if (parts == 1) first = loss;
      const std::string cut = std::to_string(parts) + "x" + std::to_string(config.batch);
      std::printf("%-20s %10s     %016llx %22.16f %14.1e\n", invariant ? "batch_invariant" : "plain", cut.c_str(),
          static_cast<unsigned long long>(run.hash()), loss, std::abs(loss / first - 1));
    }
  }
}

int compare(TrainConfig config, int rounds) {
  if (config.threads) set_thread_count(static_cast<int>(config.threads));
  const Corpus corpus = open_corpus(config);
  config.model.vocab = corpus.tokenizer->vocab_size();
  compare_costs(config, corpus, rounds);
  compare_cuts(config, corpus);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  RunOptions options;
  int rounds = 3;
  return run_app(
      argc, argv, {"ricci-bench-step", "Time and memory of a training step with recompute and batch_invariant."},
      [&](CLI::App& app) {
        add_run_options(app, options);
        app.add_option("--rounds", rounds, "of five steps per variant");
      },
      [&] { return compare(load_config<TrainConfig>(options.file(), options.overrides), rounds); });
}
