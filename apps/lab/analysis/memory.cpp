#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "apps/lab/analysis/analyses.h"
#include "apps/lab/plot/records.h"
#include "apps/run/init.h"
#include "apps/run/micro_batches.h"
#include "apps/terminal/progress.h"
#include "cuda/device/device.h"

namespace ricci::apps {
namespace {

// Trained runs have a perplexity, and run files do not.
MemoryRow row_of(const std::string& path, const AnalysisOptions& options) {
  if (!is_folder(find_run(path))) {
    TrainConfig config = request_run(path, {}).config;
    config.model.vocab = planned_vocab(config, path);
    return memory_row(config.name, config, options);
  }
  const RunFolder run = RunFolder::open(path);
  MemoryRow row = memory_row(folder_name(run.path()), run.config(), options);
  if (!is_there(run.path() + "/metrics.jsonl")) return row;
  const std::vector<double> losses = read_records(run.path()).finite("val_loss");
  if (!losses.empty()) row.loss = *std::min_element(losses.begin(), losses.end());
  return row;
}

ResultTable table_of(const std::vector<MemoryRow>& rows) {
  ResultTable table;
  const auto add = [&](Column column, const auto& value) { table.add(std::move(column), rows, value); };
  add({.heading = "run", .key = "run", .left = true}, &MemoryRow::name);
  add({.heading = "family", .key = "family", .left = true}, [](const MemoryRow& row) { return name_of(row.family); });
  add({.heading = "memory", .key = "memory", .left = true}, [](const MemoryRow& row) { return row.is_planned ? "planned" : "measured"; });
  add({.heading = "parameters", .key = "parameters", .format = ","}, [](const MemoryRow& row) { return row.memory.parameters; });
  add({.heading = "working MB", .key = "working_bytes", .format = "{:.1f}", .factor = 1e-6},
      [](const MemoryRow& row) { return row.memory.working; });
  add({.heading = "peak MB", .key = "peak_bytes", .format = "{:.1f}", .factor = 1e-6},
      [](const MemoryRow& row) { return row.memory.peak; });
  for (size_t i = 0; i <= static_cast<size_t>(HeldFor::other); ++i)
    add({.key = std::string("at_peak.") + name_of(static_cast<HeldFor>(i))}, [i](const MemoryRow& row) { return row.memory.at_peak[i]; });
  add({.key = "nats_per_token"}, &MemoryRow::loss);
  add({.heading = "perplexity", .key = "perplexity", .format = "{:.2f}"}, &MemoryRow::perplexity);
  return table;
}

}  // namespace

MemoryRow memory_row(const std::string& name, const TrainConfig& config, const AnalysisOptions& options) {
  StepShape shape = step_shape_of(config);
  if (options.batch) {
    shape.sequences = *options.batch;
    shape.micro_batches = 1;
  }
  const Plan plan = plan_step(config.model, config.optimizer, shape);
  MemoryRow row{name, config.model.family, plan};
  row.is_planned = !available(shape.device) || plan.process > static_cast<int64_t>(options.measured);
  if (!row.is_planned) row.memory = measure_step(config.model, config.optimizer, shape);
  return row;
}

Report analyse_memory(const AnalysisOptions& options) {
  std::vector<MemoryRow> rows;
  for (const std::string& path : options.run.files) rows.push_back(row_of(path, options));
  Report report{.title = "perplexity against the memory of a training step",
      .table = table_of(rows),
      .notes = {"working: the peak of activations and workspace; peak: of all tensors; planned: by a dry run, because a step holds more "
                "than --measured. The perplexity belongs to the least validation loss in metrics.jsonl, per token of the run's tokenizer; "
                "that of coarse models and classifiers has other targets, and is not drawn."}};
  if (options.batch) report.title += fmt::format(" of {} sequences", *options.batch);
  for (const auto& [title, bytes] :
      {std::pair{"against working memory", &StepMemory::working}, {"against all tensors", &StepMemory::peak}}) {
    Chart chart{.x_name = "MB", .panels = {{title, "perplexity"}}};
    for (const Family family : text_writers()) {  // a curve for each family, its runs from left to right
      std::vector<Point> points;
      for (const MemoryRow& row : rows)
        if (row.family == family && row.loss)
          points.push_back({.x = static_cast<double>(row.memory.*bytes) * 1e-6,
              .y = *row.perplexity(),
              .label = row.name + (row.is_planned ? " (planned)" : "")});
      std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
      add_curves(chart, name_of(family), {points});
    }
    if (!chart.panels[0].curves.empty()) report.add(chart);
  }
  return report;
}

}  // namespace ricci::apps
