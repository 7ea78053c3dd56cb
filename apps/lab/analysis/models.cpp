// Analyses of models without texts: the memory of a training step, and the keys that queries attend to.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/lab/analysis/analyses.h"
#include "apps/lab/plot/records.h"
#include "apps/run/batches.h"
#include "apps/run/init.h"
#include "apps/run/places.h"
#include "apps/run/run_folder.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/memory/memory.h"
#include "cuda/device/device.h"
#include "models/inspection/masks.h"
#include "models/model.h"

namespace ricci::apps {
namespace {

// The table row of a run or a run file. A run file has no perplexity.
MemoryRow row_of(const std::string& path, const AnalysisOptions& options) {
  if (!is_folder(find_weights(path).run)) {
    const TrainConfig config = request_run(path, {}).config;
    return memory_row(config.name, config, planned_model(config, path), options);
  }
  const RunFolder run = RunFolder::open(path);
  MemoryRow row = memory_row(folder_name(run.path()), run.config(), run.model_config(), options);
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
  add({.heading = "parameters", .key = "parameters", .format = ","}, [](const MemoryRow& row) { return row.memory.parameters; });
  add({.heading = "working", .key = "working_bytes", .format = "bytes"}, [](const MemoryRow& row) { return row.memory.working; });
  add({.heading = "peak", .key = "peak_bytes", .format = "bytes"}, [](const MemoryRow& row) { return row.memory.peak; });
  for (size_t i = 0; i <= static_cast<size_t>(HeldFor::other); ++i)
    add({.key = std::string("at_peak.") + name_of(static_cast<HeldFor>(i))}, [i](const MemoryRow& row) { return row.memory.at_peak[i]; });
  add({.key = "nats_per_token"}, &MemoryRow::loss);
  add({.heading = "perplexity", .key = "perplexity", .format = "{:.2f}"}, &MemoryRow::perplexity);
  return table;
}

// ---- Masks
std::string cell_name(int64_t tokens) { return tokens == 1 ? "tokens" : fmt::format("cells of {}", tokens); }

std::string heads_of(const Mask& mask) {
  if (mask.heads == 0) return "-";
  return mask.heads == 1 ? std::to_string(mask.first_head) : fmt::format("{} - {}", mask.first_head, mask.first_head + mask.heads - 1);
}

// Draws a square with tokens from left to right. Each query is a row as tall as its cell, filled from the first to the last token that it
// attends to.
Picture picture_of(const Mask& mask, const std::string& group, int64_t tokens) {
  constexpr double kSide = 268, kLeft = 10, kTop = 44;
  const double unit = kSide / static_cast<double>(tokens);
  const int colour = mask.key_tokens == 1 ? 0 : 1 + static_cast<int>(std::lround(std::log2(static_cast<double>(mask.key_tokens)))) / 2;
  std::string svg = svg_text(kLeft, kTop - 24, "ink", "", mask.layer + (mask.heads ? ", heads " + heads_of(mask) : ""));
  svg += svg_text(kLeft, kTop - 8, "muted", "",
      fmt::format("{} {} {}", cell_name(mask.query_tokens), mask.heads ? "see" : "read", cell_name(mask.key_tokens)));
  const auto rectangle = [&](int64_t x, int64_t y, int64_t width, int64_t height, const std::string& attributes) {
    svg += svg_rectangle(kLeft + unit * static_cast<double>(x), kTop + unit * static_cast<double>(y), unit * static_cast<double>(width),
        unit * static_cast<double>(height), attributes);
  };
  const auto is_like = [&](size_t i, size_t j) { return mask.rows[i].first == mask.rows[j].first && mask.rows[i].end == mask.rows[j].end; };
  size_t end = 0;
  for (size_t i = 0; i < mask.rows.size(); i = end) {
    end = i + 1;
    while (end < mask.rows.size() && is_like(end, i)) ++end;  // equal rows share a rectangle
    const int64_t first_key = mask.rows[i].first, keys = mask.rows[i].end - first_key;
    if (keys <= 0) continue;
    rectangle(first_key * mask.key_tokens, static_cast<int64_t>(i) * mask.query_tokens, keys * mask.key_tokens,
        static_cast<int64_t>(end - i) * mask.query_tokens, fmt::format("class=\"f{}\" shape-rendering=\"crispEdges\"", colour % kColours));
  }
  // Lines between large cells.
  const auto is_large = [&](int64_t cell) { return unit * static_cast<double>(cell) >= 4; };
  if (is_large(mask.key_tokens))
    for (int64_t x = 0; x < tokens; x += mask.key_tokens)
      rectangle(x, 0, std::min(mask.key_tokens, tokens - x), tokens, "class=\"grid\" fill=\"none\"");
  if (is_large(mask.query_tokens))
    for (int64_t y = 0; y < tokens; y += mask.query_tokens)
      rectangle(0, y, tokens, std::min(mask.query_tokens, tokens - y), "class=\"grid\" fill=\"none\"");
  rectangle(0, 0, tokens, tokens, "class=\"axis\" fill=\"none\"");
  return {.group = group, .width = kSide + 2 * kLeft, .height = kTop + kSide + kLeft, .elements = svg};
}

}  // namespace

MemoryRow memory_row(const std::string& name, const TrainConfig& config, const ModelConfig& model, const AnalysisOptions& options) {
  StepShape shape = step_shape_of(config);
  if (options.batch) {
    shape.sequences = *options.batch;
    shape.micro_batches = 1;
  }
  return {name, model.family, plan_step(model, config.optimizer, shape)};
}

Report analyse_memory(const AnalysisOptions& options) {
  std::vector<MemoryRow> rows;
  for (const std::string& path : options.run.files) rows.push_back(row_of(path, options));
  Report report{.title = "perplexity against the memory of a training step",
      .table = table_of(rows),
      .notes = {"working: the peak of activations and workspace; peak: of all tensors, both by a dry run of the step. "
                "The perplexity belongs to the lowest validation loss in metrics.jsonl, per token of the run's tokenizer. "
                "Coarse models and classifiers predict something else, so they are not drawn."}};
  if (options.batch) report.title += fmt::format(" of {} sequences", *options.batch);
  for (const auto& [title, bytes] :
      {std::pair{"against working memory", &StepMemory::working}, {"against all tensors", &StepMemory::peak}}) {
    Chart chart{.x_name = "MiB", .panels = {{title, "perplexity"}}};
    for (const MemoryRow& row : rows)
      if (row.loss && traits_of(row.family).writes_text())
        add_curves(chart, row.name, {{{static_cast<double>(row.memory.*bytes) / kMebibyte, *row.perplexity()}}});
    if (!chart.panels[0].curves.empty()) report.add(chart);
  }
  return report;
}

Report analyse_masks(const AnalysisOptions& options) {
  Report report{.title = "the keys that queries see",
      .notes = {"mean keys, most: the keys that a query sees; first: the first query that sees a key"},
      .json = Json::array()};
  report.table.columns = {{.heading = "run", .left = true, .missing = ""}, {.heading = "layer", .left = true},
      {.heading = "queries", .left = true}, {.heading = "keys", .left = true}, {.heading = "heads"},
      {.heading = "mean keys", .format = "{:.1f}"}, {.heading = "most"}, {.heading = "first"}};
  for (const std::string& given : options.run.files) {
    ModelConfig config = request_run(given, options.run.overrides).config.model;
    config.vocab = 1;                    // has no effect on masks
    constexpr int64_t kMaxTokens = 256;  // rows of longer texts are too thin
    const int64_t tokens = std::min(options.mask_tokens.value_or(kMaxTokens), config.ctx);
    const std::vector<Mask> all = masks(Model(config), tokens);
    if (all.empty()) fail("masks: a text of {} tokens is shorter than a cell", {tokens});
    int64_t side = 1;  // the longest side of any mask, in tokens
    for (const Mask& mask : all) side = std::max({side, std::ssize(mask.rows) * mask.query_tokens, mask.keys * mask.key_tokens});
    const std::string file = given.empty() ? "the default model" : given;
    const std::string mixer = config.traits().mixes ? fmt::format(", {}", names_of(config.mixer)) : "";
    const std::string name = is_folder(find_run(given)) ? folder_name(given) : file;
    const std::string title = fmt::format("{}: {}{}, {} tokens", name, name_of(config.family), mixer, tokens);
    Json list = Json::array();
    for (const Mask& mask : all) {
      int64_t sum = 0, most = 0;
      Json first = "none", rows = Json::array();
      for (const auto& [from, end] : mask.rows) {
        const int64_t keys = std::max<int64_t>(0, end - from);
        if (keys > 0 && most == 0) first = rows.size();
        most = std::max(most, keys);
        sum += keys;
        rows.push_back(keys ? Json::array({from, end}) : Json::array());
      }
      const double mean = mask.rows.empty() ? 0 : static_cast<double>(sum) / static_cast<double>(mask.rows.size());
      report.table.add_row({name, mask.layer, cell_name(mask.query_tokens), cell_name(mask.key_tokens), heads_of(mask), mean, most, first});
      list.push_back(Json{{"layer", mask.layer}, {"query_tokens", mask.query_tokens}, {"key_tokens", mask.key_tokens},
          {"first_head", mask.first_head}, {"heads", mask.heads}, {"keys", mask.keys}, {"rows", rows}});
      report.pictures.push_back(picture_of(mask, title, side));
    }
    report.json.push_back(Json{{"model", file}, {"tokens", tokens}, {"masks", list}});
  }
  hide_repeats(report.table.columns[0]);
  return report;
}

}  // namespace ricci::apps
