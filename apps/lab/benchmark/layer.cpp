#include "apps/lab/benchmark/layer.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/choice.h"
#include "core/cpu/clock.h"
#include "core/error.h"
#include "models/planning/published_memory.h"

namespace ricci::apps {
namespace {

struct Timed {
  LayerRow row;
  MixerStep layer;
  std::vector<double> seconds = {};
};

LayerRow row_of(const LayerOptions& options, int64_t scale, int64_t length) {
  LayerRow row{.scale = scale, .length = length, .positions = length / scale, .seconds = {}};
  constexpr double kPublishedBytes = 2;  // of a value
  const auto bytes = static_cast<double>(size_of(options.size.dtype));
  const PublishedSetting setting{.batch = static_cast<double>(options.sequences),
      .length = static_cast<double>(row.positions),
      .d = static_cast<double>(options.size.width),
      .heads = static_cast<double>(options.size.heads)};
  row.published = published_memory(setting)[0].total() * bytes / kPublishedBytes;  // its first row is one layer over the whole length
  return row;
}

StepSize size_of(const LayerOptions& options, int64_t positions) {
  StepSize size = options.size;
  size.layers = 1;
  size.alone = false;
  size.preset = Preset::gpt;
  size.sequences = options.sequences;
  size.positions = positions;
  if (size.feed_forward == 0) size.feed_forward = 4 * size.width;
  return size;
}

std::string title_of(const LayerOptions& o) {
  return fmt::format("one layer of {}, heads: {}, sequences: {}, {} on {}", o.size.width, o.size.heads, o.sequences, name_of(o.size.dtype),
      name_of(o.size.device));
}

}  // namespace

void check(const LayerOptions& options) {
  BenchOptions same;
  same.lengths = options.lengths;
  same.sequences = options.sequences;
  same.rounds = options.rounds;
  same.size = options.size;
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
    for (Timed& each : layers) {
      each.row.seconds = spread_of(each.seconds);
      rows.push_back(each.row);
    }
  }
  return rows;
}

Report report_of(const LayerOptions& options, const std::vector<LayerRow>& rows) {
  Report report{.title = title_of(options)};
  const auto add = [&](Column column, const auto& value) { report.table.add(std::move(column), rows, value); };
  add({.heading = "scale", .key = "scale", .format = "{}x", .left = true}, &LayerRow::scale);
  add({.heading = "tokens", .key = "tokens"}, &LayerRow::length);
  add({.heading = "positions", .key = "positions"}, &LayerRow::positions);
  add({.heading = "forward ms", .key = "forward_ms", .format = "{:.3f}", .panel = "time of a forward", .unit = "ms, median"},
      [](const LayerRow& row) { return row.seconds.median * 1e3; });
  add({.heading = "least ms", .key = "least_ms", .format = "{:.3f}"}, [](const LayerRow& row) { return row.seconds.min * 1e3; });
  add({.key = "most_ms"}, [](const LayerRow& row) { return row.seconds.max * 1e3; });
  add({.heading = "kept MB",
          .key = "kept_bytes",
          .format = "{:.3f}",
          .factor = 1e-6,
          .panel = "memory kept for the backward",
          .unit = "MB"},
      &LayerRow::kept);
  add({.heading = "by the paper's formula MB",
          .key = "published_bytes",
          .format = "{:.3f}",
          .factor = 1e-6,
          .panel = "the same by the paper's formula",
          .unit = "MB"},
      &LayerRow::published);
  report.json = Object{{"layer", report.title}, {"rounds", options.rounds}, {"rows", json_of(report.table)}};
  report.chart = chart_of(report, "scale", "tokens", "tokens of a sequence");
  return report;
}

}  // namespace ricci::apps
