// ricci plan: predicts the memory of a training step by purpose, and its FLOPs. The command itself needs little memory.
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

// The plan for one way to recompute.
struct Way : Plan {
  StepShape shape;
  Json largest_batch = {};  // a number, or "any" if a step computes one sequence at a time; null without --memory

  const char* name() const { return shape.recompute_blocks ? "blocks" : "none"; }
};

const char* use_name(size_t use) { return use == size_t(HeldFor::other) ? "between ops, buffers" : name_of(HeldFor(use)); }

ResultTable kept_of(const Plan& plan) {
  ResultTable table{{{.heading = "kept for the backward", .key = "op", .left = true}, {.key = "place"},
      {.heading = "times", .key = "count"}, {.heading = "memory", .key = "bytes", .format = "bytes"}, {.heading = "by", .left = true}}};
  for (const Plan::Kept& kept : plan.kept)
    if (kept.bytes) table.add_row({kept.op, kept.place, kept.count, kept.bytes, kept.place});
  return table;
}

// A row for each way to recompute. The FLOPs of an optimizer with matrix products have a column.
ResultTable table_of(const std::vector<Way>& ways, const std::string& optimizer) {
  ResultTable table;
  const auto add = [&](Column column, const auto& value) { table.add(std::move(column), ways, value); };
  add({.heading = "recompute", .key = "recompute", .left = true}, &Way::name);
  add({.key = "ranks"}, [](const Way& way) { return way.shape.ranks; });
  add({.key = "parameters"}, &Way::parameters);
  add({.heading = "peak", .key = "peak_bytes", .format = "bytes"}, &Way::peak);
  add({.key = "gradient_bytes"}, &Way::gradients);
  add({.key = "working_bytes"}, &Way::working);
  add({.key = "recorded_bytes"}, &Way::recorded);
  add({.key = "process_bytes"}, &Way::process);
  for (size_t use = 0; use < ways[0].at_peak.size(); ++use)
    add({.key = std::string("at_peak.") + use_name(use)}, [use](const Way& way) { return way.at_peak[use]; });
  add({.heading = "GFLOP a step", .key = "flops", .format = "{:.1f}", .factor = 1e-9}, &Way::flops);
  if (ways[0].work.contains(optimizer))
    add({.heading = "of " + optimizer, .key = "optimizer_flops", .format = "{:.1f}", .factor = 1e-9},
        [&](const Way& way) { return way.work.at(optimizer).flops; });
  add({.heading = "moved a step", .key = "bytes_moved", .format = "bytes"}, &Way::bytes);
  add({.key = "sum_bytes"}, &Way::summed);
  add({.key = "kept"}, [](const Way& way) { return json_of(kept_of(way)); });
  if (!ways[0].largest_batch.is_null()) add({.heading = "largest batch", .key = "largest_batch"}, &Way::largest_batch);
  return table;
}

void print_plan(const TrainConfig& config, const Way& way) {
  const StepShape& shape = way.shape;
  std::string step = format_message("{} trained parameters; a step of {} x {} sequences of {} tokens in {} on {}, recompute: {}",
      {with_commas(way.parameters), shape.micro_batches, shape.sequences, shape.context, name_of(shape.dtype), name_of(shape.device),
          name_of(config.recompute)});
  const int64_t most = (shape.micro_batches + shape.ranks - 1) / shape.ranks;
  if (shape.ranks > 1) step += format_message("; one of {} ranks, with {} x {} of them", {shape.ranks, most, shape.sequences});
  print(wrapped(step));
  ResultTable held{{{.heading = "held at the peak", .left = true}, {.heading = "memory", .format = "bytes"}}};
  for (size_t use = 0; use < way.at_peak.size(); ++use) held.add_row({use_name(use), way.at_peak[use]});
  held.add_row({"peak", way.peak});
  held.add_row({"peak of gradients", way.gradients});
  held.add_row({"peak of activations, buffers", way.working});
  if (way.recorded) held.add_row({"the recorded step", way.recorded});
  if (way.process != way.peak) held.add_row({"the whole process", way.process});
  print(text_of(held));
  print(wrapped("The backward pass allocates gradients, and the update frees them. So few of them exist at a peak in the forward pass."));
  // In a ring, every part of the gradients passes all ranks but one twice: once for the sum, once to distribute it.
  const double sent = 2 * static_cast<double>(shape.ranks - 1) / static_cast<double>(shape.ranks) * static_cast<double>(way.summed);
  if (shape.ranks > 1)
    print(format_message("The ranks add up {} of gradients in {}; each sends {} in a ring.\n",
        {show_bytes(way.summed), name_of(config.reduce_dtype), show_bytes(static_cast<int64_t>(sent))}));
  print(text_of(kept_of(way)) + "\n");
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
  std::vector<Way> ways;
  for (const bool recomputes : {false, true}) {
    shape.recompute_blocks = recomputes;
    Way& way = ways.emplace_back(Way{plan_step(model, config.optimizer, shape), shape});
    if (!options.memory) continue;
    const int64_t most = most_sequences(model, config.optimizer, shape, static_cast<int64_t>(options.memory));
    way.largest_batch = config.batch_invariant && most > 0 ? Json("any") : Json(most);
  }
  const size_t chosen = config.recompute == Recompute::blocks ? 1 : 0;
  if (!options.as_json) print_plan(config, ways[chosen]);
  const ResultTable table = table_of(ways, name_of(config.optimizer.kind));
  print(options.as_json ? to_text(json_of(table), 1) : text_of(table));
  return 0;
}

void add_options(CLI::App& app, Options& options) {
  add_run_options(app, options.run);
  app.add_option("--memory", options.memory, "Print the largest batch that fits into this memory, such as 8GiB or 80GB")
      ->transform(CLI::AsSizeValue(true));
  app.add_option("--ranks", options.ranks, "Plan one process of a run with this number of processes")->check(at_least_one);
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
