#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "apps/lab/benchmark/measure.h"
#include "core/choice.h"
#include "core/cpu/available.h"

namespace ricci::apps {
namespace {

constexpr double kMinShare = 1e-3;  // the least share of the time of a step that an op in the table has

double half_spread(const Spread& s) { return s.median > 0 ? (s.upper_quartile - s.lower_quartile) / 2 / s.median : 0; }

// "2 blocks of 256, 2048 tokens a step, f32 on cpu"
std::string described(const BenchOptions& o) {
  const std::string blocks =
      o.size.alone ? fmt::format("one mixer of {}", o.size.width) : fmt::format("{} blocks of {}", o.size.layers, o.size.width);
  const std::string step = o.sequences ? fmt::format("sequences a step: {}", *o.sequences) : fmt::format("{} tokens a step", o.tokens),
                    place = fmt::format("{} on {}", name_of(o.size.dtype), name_of(o.size.device));
  if (o.is_layer()) return fmt::format("one layer of {}, heads: {}, sequences: {}, {}", o.size.width, o.size.heads, *o.sequences, place);
  return fmt::format("{}, {}, {}", blocks, step, place);
}

Json settings_of(const BenchOptions& o) {
  return {{"device", name_of(o.size.device)}, {"dtype", name_of(o.size.dtype)}, {"width", o.size.width},
      {"layers", o.size.alone ? 1 : o.size.layers}, {"heads", o.size.heads}, {"feed_forward", o.size.feed_forward.value_or(o.size.width)},
      {"alone", o.size.alone}, {"rounds", o.rounds}};
}

ResultTable steps_of(const Benchmark& bench) {
  ResultTable table;
  const auto add = [&](Column column, const auto& value) { table.add(std::move(column), bench.rows, value); };
  const auto milliseconds = [&](Column column, double Spread::*part) {
    add(std::move(column), [part](const MixerRow& row) { return row.seconds.*part * 1e3; });
  };
  add({.heading = "mixer", .key = "mixer", .left = true}, &MixerRow::mixer);
  add({.heading = "positions", .key = "positions"}, &MixerRow::positions);
  add({.key = "sequences"}, &MixerRow::sequences);
  milliseconds(
      {.heading = "ms/step", .key = "ms.median", .format = "{:.3f}", .panel = "time of a step", .unit = "ms, median"}, &Spread::median);
  milliseconds({.key = "ms.least"}, &Spread::min);
  milliseconds({.key = "ms.lower_quartile"}, &Spread::lower_quartile);
  milliseconds({.key = "ms.upper_quartile"}, &Spread::upper_quartile);
  milliseconds({.key = "ms.most"}, &Spread::max);
  add({.heading = "spread", .format = "{:.1f}%"}, [](const MixerRow& row) { return 100 * half_spread(row.seconds); });
  add({.heading = "GFLOP", .key = "flops", .format = "{:.3f}", .factor = 1e-9, .panel = "work of a step", .unit = "GFLOP"},
      &MixerRow::flops);
  add({.heading = "GFLOP/s", .format = "{:.1f}", .factor = 1e-9}, [](const MixerRow& row) { return row.flops / row.seconds.median; });
  add({.heading = "tensors MB", .key = "tensor_bytes", .format = "{:.1f}", .factor = 1e-6, .panel = "peak memory of tensors", .unit = "MB"},
      &MixerRow::tensor_bytes);
  add({.heading = "process MB", .key = "process_bytes", .format = "{:.1f}", .factor = 1e-6}, &MixerRow::process_bytes);
  add({.key = "parameters"}, &MixerRow::parameters);
  return table;
}

// A line if measurements of the same spread far.
std::vector<std::string> busy_note(const Benchmark& bench) {
  constexpr double wide = 0.2;
  const auto unsteady =
      std::count_if(bench.rows.begin(), bench.rows.end(), [](const MixerRow& row) { return half_spread(row.seconds) > wide; });
  double load = 0;
  if (unsteady == 0 || ::getloadavg(&load, 1) != 1) return {};
  return {fmt::format("the spread is above 20% in {} of {} rows (load {:.1f} on {} processors): compare with care", unsteady,
      bench.rows.size(), load, available_processors())};
}

ResultTable layer_of(const Benchmark& bench) {
  ResultTable table;
  const auto add = [&](Column column, const auto& value) { table.add(std::move(column), bench.rows, value); };
  const auto milliseconds = [&](Column column, double Spread::*part) {
    column.format = "{:.3f}";
    add(std::move(column), [part](const MixerRow& row) { return row.seconds.*part * 1e3; });
  };
  add({.heading = "scale", .key = "scale", .format = "{}x", .left = true}, &MixerRow::scale);
  add({.heading = "tokens", .key = "tokens"}, &MixerRow::length);
  add({.heading = "positions", .key = "positions"}, &MixerRow::positions);
  milliseconds({.heading = "forward ms", .key = "forward_ms", .panel = "time of a forward", .unit = "ms, median"}, &Spread::median);
  milliseconds({.heading = "least ms", .key = "least_ms"}, &Spread::min);
  milliseconds({.key = "most_ms"}, &Spread::max);
  add({.heading = "kept MB",
          .key = "kept_bytes",
          .format = "{:.3f}",
          .factor = 1e-6,
          .panel = "memory kept for the backward",
          .unit = "MB"},
      &MixerRow::kept);
  return table;
}

// calls, ms, flops, bytes and floor_ms are means over the rounds.
ResultTable ops_of(const Benchmark& bench, const std::vector<OpRow>& ops) {
  ResultTable table;
  const Peaks peaks = *bench.peaks;
  const auto rounds = static_cast<double>(bench.options.rounds);
  const auto add = [&](Column column, const auto& value) { table.add(std::move(column), ops, value); };
  // A column that has no number where the op has no such work.
  const auto where = [&](Column column, const auto& has, const auto& value) {
    column.missing = "";
    add(std::move(column), [&](const OpRow& op) { return has(op) ? Json(value(op)) : Json(); });
  };
  const auto has_flops = [](const OpRow& op) { return op.flops > 0; };
  const auto has_bytes = [](const OpRow& op) { return op.bytes > 0; };
  const auto has_floor = [&](const OpRow& op) { return floor_of(op, peaks) > 0; };
  add({.heading = "mixer", .key = "mixer", .left = true}, &OpRow::mixer);
  add({.heading = "op", .key = "op", .left = true}, &OpRow::op);
  add({.key = "calls"}, [&](const OpRow& op) { return static_cast<double>(op.calls) / rounds; });
  add({.heading = "ms", .key = "ms", .format = "{:.3f}"}, [&](const OpRow& op) { return op.seconds / rounds * 1e3; });
  add({.heading = "share", .format = "{:.1f}%"}, [&](const OpRow& op) { return 100 * op.seconds / seconds_of(bench, op.mixer); });
  add({.key = "flops"}, [&](const OpRow& op) { return op.flops / rounds; });
  add({.key = "bytes"}, [&](const OpRow& op) { return op.bytes / rounds; });
  add({.key = "floor_ms"}, [&](const OpRow& op) { return floor_of(op, peaks) / rounds * 1e3; });
  where({.heading = "GFLOP/s", .format = "{:.1f}"}, has_flops, [](const OpRow& op) { return op.flops / op.seconds * 1e-9; });
  where({.heading = "GB/s", .format = "{:.1f}"}, has_bytes, [](const OpRow& op) { return op.bytes / op.seconds * 1e-9; });
  where({.heading = "roof", .format = "{:.0f}%"}, has_floor, [&](const OpRow& op) { return 100 * floor_of(op, peaks) / op.seconds; });
  return table;
}

// FLOP/s against FLOPs per byte: the roofs as a line, each op that has FLOPs as a dot.
Chart roofline_chart(const Benchmark& bench) {
  Chart chart{.title = "roofline: " + described(bench.options),
      .x_name = "FLOPs per byte that an op reads or writes",
      .log_x = true,
      .log_y = true,
      .panels = {{"speed of ops", "GFLOP/s"}}};
  for (const MixerKind kind : bench.options.mixers) add_curves(chart, name_of(kind), {});
  const auto colour_of = [&](const std::string& mixer) {
    const auto is_it = [&](const LegendEntry& entry) { return entry.name == mixer; };
    return static_cast<int>(std::find_if(chart.legend.begin(), chart.legend.end(), is_it) - chart.legend.begin());
  };
  const double ridge = bench.peaks->flops / bench.peaks->bytes;
  double min = ridge / 8, max = ridge * 8;
  for (const OpRow& op : bench.ops) {
    if (!(op.flops > 0 && op.bytes > 0 && op.seconds > 0)) continue;
    const Point speed{op.flops / op.bytes, op.flops / op.seconds * 1e-9};
    min = std::min(min, speed.x / 2);
    max = std::max(max, speed.x * 2);
    chart.panels[0].curves.push_back({.name = op.mixer + ", " + op.op, .colour = colour_of(op.mixer), .dashed = true, .points = {speed}});
  }
  std::vector<Point> roofs;
  for (const double x : {min, ridge, max}) roofs.push_back({x, std::min(x * bench.peaks->bytes, bench.peaks->flops) * 1e-9});
  add_curves(chart, "the roofs", {roofs}, false);
  return chart;
}

}  // namespace

Report report_of(const Benchmark& bench) {
  if (bench.options.is_layer()) {
    Report report{.title = described(bench.options), .table = layer_of(bench)};
    report.json = {{"layer", report.title}, {"rounds", bench.options.rounds}, {"rows", json_of(report.table)}};
    report.chart = chart_of(report, "scale", "tokens", "tokens of a sequence");
    return report;
  }
  Report report{.title = described(bench.options), .table = steps_of(bench)};
  report.json = {{"settings", settings_of(bench.options)}, {"steps", json_of(report.table)}};
  if (bench.peaks) {
    report.json["peaks"] = {{"flops_per_second", bench.peaks->flops}, {"bytes_per_second", bench.peaks->bytes}};
    report.json["ops"] = json_of(ops_of(bench, bench.ops));
  }
  report.notes = busy_note(bench);
  report.chart = chart_of(report, "mixer", "positions", "positions of a sequence");
  return report;
}

Report roofline_of(const Benchmark& bench) {
  std::vector<OpRow> worth_telling;
  for (const OpRow& op : bench.ops)
    if (op.seconds >= kMinShare * seconds_of(bench, op.mixer)) worth_telling.push_back(op);
  return {.title = fmt::format("measured peaks: {:.1f} GFLOP/s {}, memory {:.1f} GB/s", bench.peaks->flops * 1e-9,
              name_of(bench.options.size.dtype), bench.peaks->bytes * 1e-9),
      .table = ops_of(bench, worth_telling),
      .chart = roofline_chart(bench)};
}

}  // namespace ricci::apps
