#include "apps/lab/analysis/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/lab/plot/records.h"
#include "apps/run/corpus/corpus.h"
#include "apps/run/corpus/micro_batches.h"
#include "apps/run/folder/run_folder.h"
#include "apps/terminal/progress.h"
#include "core/error.h"
#include "cuda/device/device.h"

namespace ricci::apps {
namespace {

using json = nlohmann::ordered_json;

std::string megabytes(int64_t bytes) { return fmt::format("{:.1f}", static_cast<double>(bytes) * 1e-6); }
int64_t held(const StepMemory& memory, HeldFor use) { return memory.at_peak[static_cast<size_t>(use)]; }

// The least validation loss that was recorded.
void add_recorded(MemoryRow& row, const std::string& folder) {
  if (!std::filesystem::exists(folder + "/metrics.jsonl")) return;
  const RunRecords records = read_records(folder);
  const auto losses = records.columns.find("val_loss");
  if (losses == records.columns.end()) return;
  for (const double loss : losses->second)
    if (std::isfinite(loss) && (!row.loss || loss < *row.loss)) row.loss = loss;
  row.loss_from = "recorded";
}

void add_evaluated(MemoryRow& row, const RunFolder& run) {
  const TrainConfig& config = run.config();
  const Model model = run.load_model(Device::cpu);
  const int64_t context = run.context();
  const EvaluationBatches batches =
      evaluation_batches(config, open_validation(config, run.tokenizer()), layout_of(config).sequences, context, context);
  Progress progress({.steps = count_of(batches), .unit = "batch", .out = stderr});
  row.loss = evaluate(model, batches, Device::cpu, 0, [&](int64_t done) { progress.update(done, 0, row.name); }).nats_per_token;
  row.loss_from = "evaluated";
}

MemoryRow row_of_folder(const std::string& path, const MemoryOptions& options) {
  const RunFolder run = RunFolder::open(path);
  MemoryRow row = memory_row(std::filesystem::path(run.path()).lexically_normal().filename().string(), run.config(), options);
  if (row.name.empty()) row.name = path;
  if (options.evaluate) add_evaluated(row, run);
  else add_recorded(row, path);
  return row;
}

MemoryRow row_of_file(const std::string& path, const MemoryOptions& options) {
  TrainConfig config = request_run(path, {}).config;
  if (!config.model.vocab) config.model.vocab = vocab_of(config, *open_corpus(config, nullptr).tokenizer);
  return memory_row(config.name, config, options);
}

std::vector<Cells> table_of(const std::vector<MemoryRow>& rows) {
  std::vector<Cells> table = {{"run", "family", "memory", "loss", "parameters", "activations, workspace MB", "all tensors MB", "weights",
      "gradients", "optimizer", "nats/token", "perplexity"}};
  for (const MemoryRow& row : rows)
    table.push_back(
        {row.name, row.family, row.is_planned ? "planned" : "measured", row.loss ? row.loss_from : "-", with_commas(row.memory.parameters),
            megabytes(row.memory.working), megabytes(row.memory.peak), megabytes(held(row.memory, HeldFor::parameters)),
            megabytes(held(row.memory, HeldFor::gradients)), megabytes(held(row.memory, HeldFor::optimizer_state)),
            row.loss ? fmt::format("{:.4f}", *row.loss) : "-", row.loss ? fmt::format("{:.2f}", std::exp(*row.loss)) : "-"});
  return table;
}

std::string json_of(const std::vector<MemoryRow>& rows) {
  json all = json::array();
  for (const MemoryRow& row : rows) {
    all.push_back({{"run", row.name}, {"family", row.family}, {"memory", row.is_planned ? "planned" : "measured"},
        {"parameters", row.memory.parameters}, {"working_bytes", row.memory.working}, {"peak_bytes", row.memory.peak}});
    for (size_t use = 0; use < row.memory.at_peak.size(); ++use)
      all.back()["at_peak"][ricci::name_of(static_cast<HeldFor>(use))] = row.memory.at_peak[use];
    if (row.loss) all.back().update({{"loss_from", row.loss_from}, {"nats_per_token", *row.loss}, {"perplexity", std::exp(*row.loss)}});
  }
  return all.dump(1, ' ', false, json::error_handler_t::replace);
}

// The losses of a coarse model and of a classifier are not those of the next token.
bool is_of_next_token(const MemoryRow& row) { return traits_of(choice_of<Family>("family", row.family)).writes_text(); }
bool is_drawn(const MemoryRow& row) { return row.loss && is_of_next_token(row); }

Panel panel_of(const std::vector<MemoryRow>& rows, const char* title, int64_t StepMemory::*bytes, std::map<std::string, int>& colours) {
  Panel panel{title, "perplexity", {}};
  for (const auto& [family, colour] : colours) {
    Curve curve{.name = family, .colour = colour, .dashed = false, .points = {}, .marked = true};
    std::vector<const MemoryRow*> own;
    for (const MemoryRow& row : rows)
      if (row.family == family && is_drawn(row)) own.push_back(&row);
    std::sort(own.begin(), own.end(), [&](const MemoryRow* a, const MemoryRow* b) { return a->memory.*bytes < b->memory.*bytes; });
    for (const MemoryRow* row : own) {
      curve.points.push_back({static_cast<double>(row->memory.*bytes) * 1e-6, std::exp(*row->loss)});
      curve.labels.push_back(row->name + (row->is_planned ? " (planned)" : ""));
    }
    panel.curves.push_back(std::move(curve));
  }
  return panel;
}

Chart chart_of(const std::vector<MemoryRow>& rows, const std::string& title) {
  Chart chart;
  chart.title = title, chart.x_name = "MB", chart.scattered = true;
  std::map<std::string, int> colours;
  for (const MemoryRow& row : rows)
    if (is_drawn(row) && colours.emplace(row.family, static_cast<int>(colours.size())).second)
      chart.legend.push_back({row.family, colours[row.family], false});
  chart.panels.push_back(panel_of(rows, "against the peak of activations and workspace", &StepMemory::working, colours));
  chart.panels.push_back(panel_of(rows, "against the peak of all tensors", &StepMemory::peak, colours));
  return chart;
}

}  // namespace

MemoryRow memory_row(const std::string& name, const TrainConfig& config, const MemoryOptions& options) {
  StepShape shape = step_shape_of(config);
  if (options.batch) shape.sequences = options.batch, shape.micro_batches = 1;
  const Plan plan = plan_step(config.model, config.optimizer, shape);
  MemoryRow row{name, ricci::name_of(config.model.family), plan, true, {}, ""};
  if (available(shape.device) && plan.process <= static_cast<int64_t>(options.measured))
    row.memory = measure_step(config.model, config.optimizer, shape), row.is_planned = false;
  return row;
}

Report analyse_memory(const MemoryOptions& options) {
  std::vector<MemoryRow> rows;
  for (const std::string& path : options.runs)
    rows.push_back(std::filesystem::is_directory(path) ? row_of_folder(path, options) : row_of_file(path, options));
  const bool has_points = std::any_of(rows.begin(), rows.end(), is_drawn);
  Report report;
  report.title =
      options.batch ? fmt::format("memory of a training step of {} sequences", options.batch) : "memory of a training step of each run";
  report.table = table_of(rows), report.texts = 4, report.json = json_of(rows);
  if (has_points) report.chart = chart_of(rows, "perplexity against " + report.title);
  report.notes = {"measured: the peaks of two steps, by what each tensor is held for; planned: the same by a dry run, where a step holds "
                  "more than --measured.",
      "recorded: the least validation loss in metrics.jsonl; evaluated: of the last weights over the whole validation text. In nats per "
      "token of the run's tokenizer."};
  if (!std::all_of(rows.begin(), rows.end(), is_of_next_token))
    report.notes.push_back("The loss of a coarse model is that of the tokens of the next cell in whatever order, that of a classifier is "
                           "per document; they are not drawn.");
  return report;
}

}  // namespace ricci::apps
