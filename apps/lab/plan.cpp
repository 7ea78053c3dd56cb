// ricci-plan: the memory of a training step of a run file, by what it is held for, and its work. Nothing is computed.
//   ricci-plan run.yaml model.layers=24 batch=64 --memory 80GiB
//   ricci-plan run.yaml accumulation=8 --ranks 8 --bandwidth 10GB/s
#include "models/planning/plan.h"

#include <CLI/CLI.hpp>

#include "apps/run/init.h"
#include "apps/run/loop.h"
#include "apps/run/micro_batches.h"
#include "apps/run/options.h"
#include "apps/run/run.h"
#include "apps/terminal/cli.h"
#include "apps/terminal/table.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/memory/memory.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  RunOptions run;
  uint64_t memory = 0;  // bytes
  int64_t ranks = 1;
  uint64_t bandwidth = 0;  // bytes per second
  bool as_json = false, tape = false;
};

// One way to compute the same step.
struct Level {
  Recompute recompute;
  Plan plan;
  int64_t sequences = 0;  // that fit into the memory asked about
};

// The largest batch. batch_invariant takes one sequence at a time: where one fits, any number does.
Json largest_batch(const TrainConfig& config, const Level& level) {
  if (config.batch_invariant && level.sequences > 0) return "any";
  return level.sequences;
}

StepShape shape_of(const TrainConfig& config, const Options& options) {
  StepShape shape = step_shape_of(config);
  shape.ranks = options.ranks;
  return shape;
}

std::vector<Level> levels_of(const TrainConfig& config, const Options& options) {
  std::vector<Level> levels;
  for (const Recompute recompute : {Recompute::none, Recompute::blocks}) {
    StepShape shape = shape_of(config, options);
    shape.recompute_blocks = recompute == Recompute::blocks;
    levels.push_back({recompute, plan_step(config.model, config.optimizer, shape)});
    if (options.memory)
      levels.back().sequences = most_sequences(config.model, config.optimizer, shape, static_cast<int64_t>(options.memory));
  }
  return levels;
}

// The bytes of gradients that each rank sends if they are added up in a ring: on its way around, every part passes all ranks but one
// twice, first to be summed and then to be known. More links or latencies change the time, but a ring is a good first guess.
double sent_of(const Plan& plan, int64_t ranks) {
  return 2 * static_cast<double>(ranks - 1) / static_cast<double>(ranks) * static_cast<double>(plan.summed);
}
double sum_ms(const Plan& plan, const Options& options) {
  return 1e3 * sent_of(plan, options.ranks) / static_cast<double>(options.bandwidth);
}

// The cost of data parallelism.
std::string sum_lines(const Plan& plan, const TrainConfig& config, const Options& options) {
  const std::string time = options.bandwidth ? format_message("It takes {:.1f} ms at {:.1f} GB/s.",
                                                   {sum_ms(plan, options), static_cast<double>(options.bandwidth) * 1e-9})
                                             : "--bandwidth gives the time.";
  return format_message("The ranks add up {} of gradients in {}; in a ring each sends {}.\n{}\n",
      {show_bytes(plan.summed), name_of(config.reduce_dtype), show_bytes(static_cast<int64_t>(sent_of(plan, options.ranks))), time});
}

const char* described(HeldFor use) { return use == HeldFor::other ? "between ops, buffers" : name_of(use); }

// The memory held at the peak, and its sums.
ResultTable memory_of(const Plan& plan) {
  ResultTable table{{{.heading = "held at the peak", .left = true}, {.heading = "memory", .format = "bytes"}}};
  for (size_t use = 0; use < plan.at_peak.size(); ++use) table.add_row({described(static_cast<HeldFor>(use)), plan.at_peak[use]});
  table.add_row({"peak", plan.peak});
  table.add_row({"most of gradients", plan.gradients});
  table.add_row({"most of activations, buffers", plan.working});
  if (plan.recorded) table.add_row({"the recorded step", plan.recorded});
  if (plan.process != plan.peak) table.add_row({"of the whole process", plan.process});
  return table;
}

ResultTable kept_of(const Plan& plan) {
  ResultTable table{{{.heading = "kept for the backward", .key = "op", .left = true}, {.key = "place"},
      {.heading = "times", .key = "count"}, {.heading = "memory", .key = "bytes", .format = "bytes"}, {.heading = "by", .left = true}}};
  for (const Plan::Kept& kept : plan.kept)
    if (kept.bytes) table.add_row({kept.op, kept.place, kept.count, kept.bytes, kept.place});
  return table;
}

// A row for each way to recompute.
ResultTable table_of(const TrainConfig& config, const std::vector<Level>& levels, const Options& options) {
  ResultTable table;
  const auto add = [&](Column column, const auto& value) { table.add(std::move(column), levels, value); };
  add({.heading = "recompute", .key = "recompute", .left = true}, [](const Level& level) { return name_of(level.recompute); });
  add({.key = "ranks"}, [&](const Level&) { return options.ranks; });
  add({.key = "parameters"}, [](const Level& level) { return level.plan.parameters; });
  add({.heading = "peak", .key = "peak_bytes", .format = "bytes"}, [](const Level& level) { return level.plan.peak; });
  add({.key = "gradient_bytes"}, [](const Level& level) { return level.plan.gradients; });
  add({.key = "working_bytes"}, [](const Level& level) { return level.plan.working; });
  add({.key = "recorded_bytes"}, [](const Level& level) { return level.plan.recorded; });
  add({.key = "process_bytes"}, [](const Level& level) { return level.plan.process; });
  for (size_t use = 0; use < levels[0].plan.at_peak.size(); ++use)
    add({.key = std::string("at_peak.") + described(static_cast<HeldFor>(use))},
        [use](const Level& level) { return level.plan.at_peak[use]; });
  add({.heading = "GFLOP a step", .key = "flops", .format = "{:.1f}", .factor = 1e-9},
      [](const Level& level) { return level.plan.flops(); });
  add({.heading = "GB moved a step", .key = "bytes_moved", .format = "{:.2f}", .factor = 1e-9},
      [](const Level& level) { return level.plan.bytes(); });
  add({.key = "sum_bytes"}, [](const Level& level) { return level.plan.summed; });
  if (options.bandwidth)
    add({.heading = "ms of the sum", .key = "sum_ms", .format = "{:.1f}"}, [&](const Level& level) { return sum_ms(level.plan, options); });
  add({.key = "kept"}, [](const Level& level) { return json_of(kept_of(level.plan)); });
  if (options.memory)
    add({.heading = "largest batch", .key = "largest_batch"}, [&](const Level& level) { return largest_batch(config, level); });
  return table;
}

void print_all(const TrainConfig& config, const std::vector<Level>& levels, const Options& options) {
  const Level& chosen = levels[config.recompute == Recompute::blocks];
  const StepShape shape = step_shape_of(config);
  const int64_t most = (shape.micro_batches + options.ranks - 1) / options.ranks;
  const std::string shared =
      options.ranks == 1 ? "" : format_message("; one of {} ranks, with {} x {} of them", {options.ranks, most, shape.sequences});
  print(wrapped(format_message("{} trained parameters; a step of {} x {} sequences of {} tokens in {} on {}, recompute: {}{}",
      {chosen.plan.parameters, shape.micro_batches, shape.sequences, shape.context, name_of(shape.dtype), name_of(shape.device),
          name_of(chosen.recompute), shared})));
  print(text_of(memory_of(chosen.plan)));
  print(wrapped("Gradients are made in backward and freed after the update. Few of them are held at a peak in the forward."));
  if (options.ranks > 1) print(sum_lines(chosen.plan, config, options));
  print(text_of(kept_of(chosen.plan)) + "\n");
  print(text_of(table_of(config, levels, options)));
}

int plan(const Options& options) {
  const std::string found = find_run(options.run.file()), file = found + (is_folder(found) ? "/config.yaml" : "");
  check_run_file(found);
  TrainConfig config = load_run_file(file, options.run.overrides);
  config.model.vocab = planned_vocab(config, file);
  check_shared(config, options.ranks);
  print_warnings(config);
  if (options.tape) {
    StepShape shape = shape_of(config, options);
    shape.recompute_blocks = config.recompute == Recompute::blocks;
    std::fputs(tape_of_step(config.model, shape).c_str(), stdout);
    return 0;
  }
  const std::vector<Level> levels = levels_of(config, options);
  if (options.as_json) print(to_text(json_of(table_of(config, levels, options)), 1));
  else print_all(config, levels, options);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return run_app(
      argc, argv,
      {.name = "ricci-plan",
          .summary = "Predicts the memory and the work of a training step.",
          .examples = "ricci-plan apps/configs/quickstart.yaml model.layers=24 --memory 80GB\n"
                      "ricci-plan apps/configs/quickstart.yaml --tape"},
      [&](CLI::App& app) {
        add_run_options<TrainConfig>(app, options.run);
        CLI::Option* const memory = app.add_option("--memory", options.memory, "Print the largest batch that fits into it: 8GiB, 80GB");
        memory->transform(CLI::AsSizeValue(true));
        app.add_option("--ranks", options.ranks, "Plan for one of this number of processes")->check(at_least_one);
        app.add_option("--bandwidth", options.bandwidth, "Print the time of the sum of gradients at this speed of the network: 10GB/s")
            ->transform(CLI::AsSizeValue(true))
            ->transform([](std::string text) { return text.ends_with("/s") ? text.substr(0, text.size() - 2) : text; }, "")
            ->needs("--ranks");
        CLI::Option* const as_json = app.add_flag("--json", options.as_json, "Print JSON");
        CLI::Option* const tape = app.add_flag("--tape", options.tape, "Print the tape of one micro-batch instead: a line for each op");
        for (CLI::Option* unread : {memory, as_json}) tape->excludes(unread);
      },
      [&] { return plan(options); });
}
