#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/lab/analysis/analyses.h"
#include "apps/lab/plot/records.h"
#include "apps/run/evaluation.h"
#include "apps/run/init.h"
#include "apps/run/micro_batches.h"
#include "apps/run/run.h"
#include "apps/terminal/progress.h"
#include "core/error.h"
#include "cuda/device/device.h"

namespace ricci::apps {
namespace {

MemoryRow row_of_folder(const std::string& path, const MemoryOptions& options) {
  const RunFolder run = RunFolder::open(path);
  const TrainConfig& config = run.config();
  MemoryRow row = memory_row(folder_name(run.path()), config, options);
  if (options.evaluate) {
    const Model model = run.load_model(Device::cpu);
    const int64_t context = run.context();
    const EvaluationBatches batches =
        evaluation_batches(config, open_validation(config, {}, run.tokenizer()).tokens, layout_of(config).sequences, context, context);
    Progress progress({.steps = batches.count, .unit = "batch", .out = stderr});
    row.loss = evaluate(model, batches, Device::cpu, [&](int64_t done) { progress.update(done, 0, row.name); }).nats_per_token;
    row.loss_from = "evaluated";
  } else if (is_there(run.path() + "/metrics.jsonl")) {
    const RunRecords records = read_records(run.path());
    if (const auto losses = records.columns.find("val_loss"); losses != records.columns.end())
      for (const double loss : losses->second)
        if (std::isfinite(loss)) row.loss = std::min(loss, row.loss.value_or(loss));
    row.loss_from = "recorded";
  }
  return row;
}

MemoryRow row_of_file(const std::string& path, const MemoryOptions& options) {
  if (options.evaluate) fail("--evaluate: {} is a run file, which has no weights", {path});
  TrainConfig config = request_run(path, {}).config;
  config.model.vocab = planned_vocab(config, path);
  return memory_row(config.name, config, options);
}

ResultTable table_of(const std::vector<MemoryRow>& rows) {
  ResultTable table;
  const auto add = [&](Column column, const auto& value) { table.add(std::move(column), rows, value); };
  const auto megabytes = [&](const std::string& heading, const std::string& key, const auto& bytes) {
    add({.heading = heading, .key = key, .format = "{:.1f}", .factor = 1e-6}, bytes);
  };
  const auto with_loss = [&](Column column, const auto& value) {
    add(std::move(column), [&](const MemoryRow& row) { return row.loss ? Json(value(row)) : Json(); });
  };
  add({.heading = "run", .key = "run", .left = true}, &MemoryRow::name);
  add({.heading = "family", .key = "family", .left = true}, &MemoryRow::family);
  add({.heading = "memory", .key = "memory", .left = true}, [](const MemoryRow& row) { return row.is_planned ? "planned" : "measured"; });
  with_loss({.key = "loss_from"}, [](const MemoryRow& row) { return row.loss_from; });
  add({.heading = "parameters", .key = "parameters", .format = ","}, [](const MemoryRow& row) { return row.memory.parameters; });
  megabytes("working MB", "working_bytes", [](const MemoryRow& row) { return row.memory.working; });
  megabytes("peak MB", "peak_bytes", [](const MemoryRow& row) { return row.memory.peak; });
  for (size_t i = 0; i <= static_cast<size_t>(HeldFor::other); ++i)
    add({.key = std::string("at_peak.") + name_of(static_cast<HeldFor>(i))}, [i](const MemoryRow& row) { return row.memory.at_peak[i]; });
  with_loss({.key = "nats_per_token"}, [](const MemoryRow& row) { return *row.loss; });
  with_loss({.heading = "perplexity", .key = "perplexity", .format = "{:.2f}"}, [](const MemoryRow& row) { return std::exp(*row.loss); });
  return table;
}

// Coarse models and classifiers do not predict the next token.
bool is_of_next_token(const MemoryRow& row) { return traits_of(choice_of<Family>("family", row.family)).writes_text(); }
bool is_drawn(const MemoryRow& row) { return row.loss && is_of_next_token(row); }

// A curve for each family, its runs from left to right.
Chart chart_of(std::vector<MemoryRow> rows, const std::string& title) {
  Chart chart{.title = title,
      .x_name = "MB",
      .scattered = true,
      .panels = {{"against the peak of activations and workspace", "perplexity"}, {"against the peak of all tensors", "perplexity"}}};
  std::erase_if(rows, [](const MemoryRow& row) { return !is_drawn(row); });
  for (const MemoryRow& row : rows) {
    const auto is_of_family = [&](const LegendEntry& entry) { return entry.name == row.family; };
    if (std::none_of(chart.legend.begin(), chart.legend.end(), is_of_family)) add_curves(chart, row.family, {});
  }
  for (const auto& [panel, bytes] : {std::pair{0, &StepMemory::working}, {1, &StepMemory::peak}}) {
    const auto uses_less = [bytes = bytes](const MemoryRow& a, const MemoryRow& b) { return a.memory.*bytes < b.memory.*bytes; };
    std::stable_sort(rows.begin(), rows.end(), uses_less);
    for (const LegendEntry& family : chart.legend) {
      Curve curve{.name = family.name, .colour = family.colour, .marked = true};
      for (const MemoryRow& row : rows) {
        if (row.family != family.name) continue;
        curve.points.push_back({static_cast<double>(row.memory.*bytes) * 1e-6, std::exp(*row.loss)});
        curve.labels.push_back(row.name + (row.is_planned ? " (planned)" : ""));
      }
      chart.panels[static_cast<size_t>(panel)].curves.push_back(std::move(curve));
    }
  }
  return chart;
}

}  // namespace

MemoryRow memory_row(const std::string& name, const TrainConfig& config, const MemoryOptions& options) {
  StepShape shape = step_shape_of(config);
  if (options.batch) {
    shape.sequences = *options.batch;
    shape.micro_batches = 1;
  }
  const Plan plan = plan_step(config.model, config.optimizer, shape);
  MemoryRow row{name, name_of(config.model.family), plan};
  row.is_planned = !available(shape.device) || plan.process > static_cast<int64_t>(options.measured);
  if (!row.is_planned) row.memory = measure_step(config.model, config.optimizer, shape);
  return row;
}

Report analyse_memory(const MemoryOptions& options) {
  std::vector<MemoryRow> rows;
  for (const std::string& path : options.runs)
    rows.push_back(is_folder(find_run(path)) ? row_of_folder(path, options) : row_of_file(path, options));
  const bool has_points = std::any_of(rows.begin(), rows.end(), is_drawn);
  Report report{.table = table_of(rows)};
  report.title =
      options.batch ? fmt::format("memory of a training step of {} sequences", *options.batch) : "memory of a training step of each run";
  if (has_points) report.chart = chart_of(rows, "perplexity against " + report.title);
  report.notes = {"measured: the peaks of two steps, by what each tensor is held for; planned: the same by a dry run, where a step holds "
                  "more than --measured.",
      "recorded: the least validation loss in metrics.jsonl; evaluated: of the last weights over the whole validation text. In nats per "
      "token of the run's tokenizer."};
  if (!std::all_of(rows.begin(), rows.end(), is_of_next_token))
    report.notes.push_back("The loss of a coarse model is for the tokens of the next cell in any order, the loss of a classifier is "
                           "per document; they are not drawn.");
  return report;
}

}  // namespace ricci::apps
