// ricci plan: the memory of a training step, by purpose, and its work, also for models that do not fit into this machine.
//   ricci plan run.yaml model.layers=24 batch=64 --memory 80GiB
//   ricci plan run.yaml accumulation=8 --ranks 8
#include "models/planning/plan.h"

#include <CLI/CLI.hpp>

#include "apps/lab/commands.h"
#include "apps/run/batches.h"
#include "apps/run/init.h"
#include "apps/run/options.h"
#include "apps/run/output.h"
#include "apps/run/places.h"
#include "apps/run/run_folder.h"
#include "apps/terminal/numbers.h"
#include "apps/terminal/table.h"
#include "core/error.h"
#include "core/files/file.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  RunOptions run;
  uint64_t memory = 0;  // bytes
  int64_t ranks = 1;
  bool as_json = false, tape = false;
};

ResultTable kept_of(const Plan& plan) {
  ResultTable table{{{.heading = "kept for the backward", .key = "op", .left = true}, {.key = "place"},
      {.heading = "times", .key = "count"}, {.heading = "memory", .key = "bytes", .format = "bytes"}, {.heading = "by", .left = true}}};
  for (const Plan::Kept& kept : plan.kept)
    if (kept.bytes) table.add_row({kept.op, kept.place, kept.count, kept.bytes, kept.place});
  return table;
}

Json json_of(const TrainConfig& config, const ModelConfig& model, const StepShape& shape, const Plan& plan, const Options& options) {
  Json all{{"recompute", shape.recompute_blocks ? "blocks" : "none"}, {"ranks", shape.ranks}, {"parameters", plan.parameters},
      {"peak_bytes", plan.peak}, {"gradient_bytes", plan.gradients}, {"working_bytes", plan.working}, {"recorded_bytes", plan.recorded},
      {"process_bytes", plan.process}, {"at_peak", Json::object()}, {"flops", plan.flops()}, {"bytes_moved", plan.bytes()},
      {"sum_bytes", plan.summed}};
  for (size_t use = 0; use < plan.at_peak.size(); ++use)
    all["at_peak"][use == size_t(HeldFor::other) ? "between ops, buffers" : name_of(HeldFor(use))] = plan.at_peak[use];
  all["kept"] = json_of(kept_of(plan));
  if (!options.memory) return all;
  const int64_t most = most_sequences(model, config.optimizer, shape, static_cast<int64_t>(options.memory));
  all["largest_batch"] = config.batch_invariant && most > 0 ? Json("any") : Json(most);  // because it computes one sequence at a time
  return all;
}

// A row for each way to recompute.
ResultTable table_of(const Json& ways) {
  ResultTable table{
      {{.heading = "recompute", .key = "recompute", .left = true}, {.heading = "peak", .key = "peak_bytes", .format = "bytes"},
          {.heading = "GFLOP a step", .key = "flops", .format = "{:.1f}", .factor = 1e-9},
          {.heading = "moved a step", .key = "bytes_moved", .format = "bytes"}, {.heading = "largest batch", .key = "largest_batch"}}};
  std::erase_if(table.columns, [&](const Column& column) { return !ways[0].contains(column.key); });
  for (Column& column : table.columns) column.values = values_of(ways, [&](const Json& way) { return way[column.key]; });
  return table;
}

void print_plan(const TrainConfig& config, const StepShape& shape, const Plan& plan, const Json& way, const Options& options) {
  std::string step = format_message("{} trained parameters; a step of {} x {} sequences of {} tokens in {} on {}, recompute: {}",
      {with_commas(plan.parameters), shape.micro_batches, shape.sequences, shape.context, name_of(shape.dtype), name_of(shape.device),
          name_of(config.recompute)});
  const int64_t most = (shape.micro_batches + shape.ranks - 1) / shape.ranks;
  if (shape.ranks > 1) step += format_message("; one of {} ranks, with {} x {} of them", {shape.ranks, most, shape.sequences});
  print(wrapped(step));
  ResultTable held{{{.heading = "held at the peak", .left = true}, {.heading = "memory", .format = "bytes"}}};
  for (const auto& [use, bytes] : way["at_peak"].items()) held.add_row({use, bytes});
  held.add_row({"peak", plan.peak});
  held.add_row({"peak of gradients", plan.gradients});
  held.add_row({"peak of activations, buffers", plan.working});
  if (plan.recorded) held.add_row({"the recorded step", plan.recorded});
  if (plan.process != plan.peak) held.add_row({"the whole process", plan.process});
  print(text_of(held));
  print(wrapped("The backward allocates gradients, and the update frees them. So a peak in the forward holds few of them."));
  // In a ring every part of the gradients passes all ranks but one twice: first to be summed, then to be known.
  const double sent = 2 * static_cast<double>(options.ranks - 1) / static_cast<double>(options.ranks) * static_cast<double>(plan.summed);
  if (shape.ranks > 1)
    print(format_message("The ranks add up {} of gradients in {}; each sends {} in a ring.\n",
        {show_bytes(plan.summed), name_of(config.reduce_dtype), show_bytes(static_cast<int64_t>(sent))}));
  print(text_of(kept_of(plan)) + "\n");
}

int plan(const Options& options) {
  const std::string file = find_run_file(find_weights(options.run.file()));
  const TrainConfig config = load_run_file(file, options.run.overrides);
  const ModelConfig model = planned_model(config, file);
  check_shared(config, options.ranks);
  print_warnings(config);
  StepShape shape = step_shape_of(config);
  shape.ranks = options.ranks;
  if (options.tape) {
    print_tape(model, shape, stdout);
    return 0;
  }
  Json ways = Json::array();
  for (const bool recomputes : {false, true}) {
    shape.recompute_blocks = recomputes;
    const Plan plan = plan_step(model, config.optimizer, shape);
    ways.push_back(json_of(config, model, shape, plan, options));
    if (recomputes == (config.recompute == Recompute::blocks) && !options.as_json) print_plan(config, shape, plan, ways.back(), options);
  }
  print(options.as_json ? to_text(ways, 1) : text_of(table_of(ways)));
  return 0;
}

void add_options(CLI::App& app, Options& options) {
  add_run_options(app, options.run);
  app.add_option("--memory", options.memory, "Print the largest batch that fits into this memory: 8GiB, 80GB")
      ->transform(CLI::AsSizeValue(true));
  app.add_option("--ranks", options.ranks, "Plan one process of a training with this number of processes")->check(at_least_one);
  app.add_flag("--json", options.as_json, "Print JSON");
  app.add_flag("--tape", options.tape, "Print only the tape of one micro-batch, a line for each op")
      ->excludes("--memory")
      ->excludes("--json");
}

}  // namespace

const Command ricci::apps::plan_command{{.name = "ricci plan",
                                            .summary = "Predicts the memory and the work of a training step.",
                                            .examples = "ricci plan apps/configs/quickstart.yaml model.layers=24 --memory 80GiB\n"
                                                        "ricci plan apps/configs/quickstart.yaml --tape"},
    with_options<Options, add_options, plan>};
