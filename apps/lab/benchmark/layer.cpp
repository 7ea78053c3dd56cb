#include "apps/lab/benchmark/layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/lab/drawing/svg.h"
#include "apps/terminal/table.h"
#include "core/cpu/clock.h"
#include "core/error.h"
#include "core/names.h"
#include "models/planning/published_memory.h"

namespace ricci::apps {
namespace {

using json = nlohmann::ordered_json;

struct Timed {
  LayerRow row;
  MixerStep layer;
  std::vector<double> seconds = {};
};

LayerRow row_of(const LayerOptions& options, int64_t scale, int64_t length) {
  LayerRow row{.scale = scale, .length = length, .positions = length / scale, .seconds = {}};
  constexpr double kPublishedBytes = 2;  // of a value
  const double bytes = options.size.dtype == Dtype::f64 ? 8 : options.size.dtype == Dtype::f32 ? 4 : 2;
  const PublishedSetting setting{.batch = static_cast<double>(options.sequences),
      .length = static_cast<double>(row.positions),
      .d = static_cast<double>(options.size.width),
      .heads = static_cast<double>(options.size.heads)};
  row.published = published_memory(setting)[0].total() * bytes / kPublishedBytes;  // its first row is one layer over the whole length
  return row;
}

StepSize size_of(const LayerOptions& options, int64_t positions) {
  StepSize size = options.size;
  size.layers = 1, size.alone = false, size.preset = Preset::gpt;
  size.sequences = options.sequences, size.positions = positions;
  if (size.feed_forward == 0) size.feed_forward = 4 * size.width;
  return size;
}

std::string title_of(const LayerOptions& o) {
  return fmt::format("one layer of {}, heads: {}, sequences: {}, {} on {}", o.size.width, o.size.heads, o.sequences, name_of(o.size.dtype),
      name_of(o.size.device));
}

std::string megabytes(double bytes) { return fmt::format("{:.3f}", bytes * 1e-6); }

template <class Value>
Panel panel_of(const LayerOptions& options, const std::vector<LayerRow>& rows, const char* title, const char* unit, const Value& value) {
  Panel panel{title, unit, {}};
  for (size_t s = 0; s < options.scales.size(); ++s) {
    const int colour = static_cast<int>(s);
    Curve curve{
        .name = fmt::format("{}x", options.scales[s]), .colour = colour, .dashed = colour >= kColours, .points = {}, .marked = true};
    for (const LayerRow& row : rows)
      if (row.scale == options.scales[s] && value(row) > 0) curve.points.push_back({static_cast<double>(row.length), value(row)});
    std::sort(curve.points.begin(), curve.points.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
    if (!curve.points.empty()) panel.curves.push_back(std::move(curve));
  }
  return panel;
}

}  // namespace

void check(const LayerOptions& options) {
  BenchOptions same;
  same.lengths = options.lengths, same.sequences = options.sequences, same.rounds = options.rounds, same.size = options.size;
  check(same);
  if (options.size.feed_forward != 0 && options.size.feed_forward != 4 * options.size.width)
    fail("--ff: {}, expected {} with --layer: the paper's formula is of feed-forward layers of four times the width",
        {options.size.feed_forward, 4 * options.size.width});
}

int64_t steps_of(const LayerOptions& options) {
  int64_t layers = 0;
  for (const int64_t length : options.lengths)
    layers += std::count_if(options.scales.begin(), options.scales.end(), [&](int64_t scale) { return length >= scale; });
  return layers * (1 + options.rounds);
}

std::vector<LayerRow> measure_layer(const LayerOptions& options, Progress& progress) {
  check(options);
  std::vector<LayerRow> rows;
  int64_t done = 0;
  for (const int64_t length : options.lengths) {
    std::vector<Timed> layers;
    for (const int64_t scale : options.scales)
      if (length >= scale) layers.push_back({row_of(options, scale, length), MixerStep(kind_of<Sdp>, size_of(options, length / scale))});
    for (Timed& each : layers) each.row.kept = each.layer.kept_bytes();
    for (int64_t round = -1; round < options.rounds; ++round)  // the first one is not counted: it touches memory for the first time
      for (Timed& each : layers) {
        const double started = seconds_now();
        each.layer.forward();
        if (round >= 0) each.seconds.push_back(seconds_now() - started);
        progress.update(++done, 0, fmt::format("{}x, {} tokens", each.row.scale, length));
      }
    for (Timed& each : layers) each.row.seconds = spread_of(each.seconds), rows.push_back(each.row);
  }
  return rows;
}

std::vector<std::vector<std::string>> cells_of(const LayerOptions&, const std::vector<LayerRow>& rows) {
  std::vector<std::vector<std::string>> cells = {
      {"scale", "tokens", "positions", "forward ms", "least ms", "kept MB", "by the paper's formula MB"}};
  for (const LayerRow& row : rows)
    cells.push_back({fmt::format("{}x", row.scale), std::to_string(row.length), std::to_string(row.positions),
        fmt::format("{:.3f}", row.seconds.median * 1e3), fmt::format("{:.3f}", row.seconds.least * 1e3),
        megabytes(static_cast<double>(row.kept)), megabytes(row.published)});
  return cells;
}

std::string table_of(const LayerOptions& options, const std::vector<LayerRow>& rows) {
  return title_of(options) + "\n" + aligned(cells_of(options, rows), 1);
}

std::string json_of(const LayerOptions& options, const std::vector<LayerRow>& rows) {
  json all = json::array();
  for (const LayerRow& row : rows)
    all.push_back({{"scale", row.scale}, {"tokens", row.length}, {"positions", row.positions}, {"forward_ms", row.seconds.median * 1e3},
        {"least_ms", row.seconds.least * 1e3}, {"most_ms", row.seconds.most * 1e3}, {"kept_bytes", row.kept},
        {"published_bytes", row.published}});
  return json{{"layer", title_of(options)}, {"rounds", options.rounds}, {"rows", std::move(all)}}.dump(1);
}

Chart chart_of(const LayerOptions& options, const std::vector<LayerRow>& rows) {
  Chart chart;
  chart.title = title_of(options), chart.x_name = "tokens of a sequence", chart.log_x = chart.log_y = true;
  chart.panels.push_back(
      panel_of(options, rows, "time of a forward", "ms, median", [](const LayerRow& row) { return row.seconds.median * 1e3; }));
  chart.panels.push_back(panel_of(
      options, rows, "memory kept for the backward", "MB", [](const LayerRow& row) { return static_cast<double>(row.kept) * 1e-6; }));
  chart.panels.push_back(
      panel_of(options, rows, "the same by the paper's formula", "MB", [](const LayerRow& row) { return row.published * 1e-6; }));
  for (size_t s = 0; s < options.scales.size(); ++s)
    chart.legend.push_back({fmt::format("{}x", options.scales[s]), static_cast<int>(s), static_cast<int>(s) >= kColours});
  return chart;
}

}  // namespace ricci::apps
