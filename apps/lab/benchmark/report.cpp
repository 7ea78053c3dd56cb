#include "apps/lab/benchmark/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/lab/drawing/svg.h"
#include "apps/terminal/table.h"
#include "core/names.h"

namespace ricci::apps {
namespace {

using json = nlohmann::ordered_json;

constexpr double kMinShare = 1e-3;  // of the time of a step, of ops in the table

double half_spread(const Spread& s) { return s.median > 0 ? (s.upper_quartile - s.lower_quartile) / 2 / s.median : 0; }
std::string megabytes(int64_t bytes) { return fmt::format("{:.1f}", static_cast<double>(bytes) * 1e-6); }

std::vector<std::string> cells_of(const OpRow& op, const Peaks& peaks, int64_t rounds, double whole) {
  const double floor = floor_of(op, peaks);
  return {op.mixer, op.op, fmt::format("{:g}", static_cast<double>(op.calls) / static_cast<double>(rounds)),
      fmt::format("{:.3f}", op.seconds / static_cast<double>(rounds) * 1e3), fmt::format("{:.1f}%", 100 * op.seconds / whole),
      op.flops > 0 ? fmt::format("{:.1f}", op.flops / op.seconds * 1e-9) : "",
      op.bytes > 0 ? fmt::format("{:.1f}", op.bytes / op.seconds * 1e-9) : "",
      op.flops > 0 && op.bytes > 0 ? fmt::format("{:.1f}", op.flops / op.bytes) : "",
      floor > 0 ? op.flops / peaks.flops >= op.bytes / peaks.bytes ? "FLOPs" : "bytes" : "",
      floor > 0 ? fmt::format("{:.0f}%", 100 * floor / op.seconds) : ""};
}

json spread_json(const Spread& s) {
  return {{"median", s.median * 1e3}, {"least", s.least * 1e3}, {"lower_quartile", s.lower_quartile * 1e3},
      {"upper_quartile", s.upper_quartile * 1e3}, {"most", s.most * 1e3}};
}

json settings_of(const BenchOptions& o) {
  return {{"device", name_of(o.size.device)}, {"dtype", name_of(o.size.dtype)}, {"width", o.size.width},
      {"layers", o.size.alone ? 1 : o.size.layers}, {"heads", o.size.heads},
      {"feed_forward", o.size.feed_forward ? o.size.feed_forward : o.size.width}, {"alone", o.size.alone}, {"rounds", o.rounds}};
}

// "2 blocks of 256, 2048 tokens a step, f32 on cpu"
std::string described(const BenchOptions& o) {
  const std::string what =
      o.size.alone ? fmt::format("one mixer of {}", o.size.width) : fmt::format("{} blocks of {}", o.size.layers, o.size.width);
  const std::string step = o.sequences ? fmt::format("sequences a step: {}", o.sequences) : fmt::format("{} tokens a step", o.tokens);
  return fmt::format("{}, {}, {} on {}", what, step, name_of(o.size.dtype), name_of(o.size.device));
}

int colour_of(const BenchOptions& options, const std::string& mixer) {
  const auto is_it = [&](MixerKind kind) { return name_of(kind) == mixer; };
  return static_cast<int>(std::find_if(options.mixers.begin(), options.mixers.end(), is_it) - options.mixers.begin());
}

void add_legend(Chart& chart, const BenchOptions& options) {
  for (size_t i = 0; i < options.mixers.size(); ++i) chart.legend.push_back({name_of(options.mixers[i]), static_cast<int>(i), false});
}

template <class Value> Panel panel_of(const Benchmark& bench, const char* title, const char* unit, const Value& value) {
  Panel panel{title, unit, {}};
  for (const MixerKind kind : bench.options.mixers) {
    const int colour = colour_of(bench.options, name_of(kind));
    Curve curve{name_of(kind), colour, false, {}, {}};
    for (const MixerRow& row : bench.rows)
      if (row.mixer == curve.name && value(row) > 0) curve.points.push_back({static_cast<double>(row.positions), value(row)});
    std::sort(curve.points.begin(), curve.points.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
    if (!curve.points.empty()) panel.curves.push_back(std::move(curve));
  }
  return panel;
}

}  // namespace

std::vector<std::vector<std::string>> cells_of(const Benchmark& bench) {
  std::vector<std::vector<std::string>> rows = {
      {"mixer", "positions", "sequences", "ms/step", "spread", "GFLOP", "GFLOP/s", "tensors MB", "process MB", "parameters"}};
  for (const MixerRow& row : bench.rows)
    rows.push_back({row.mixer, std::to_string(row.positions), std::to_string(row.sequences),
        fmt::format("{:.3f}", row.seconds.median * 1e3), fmt::format("{:.1f}%", 100 * half_spread(row.seconds)),
        fmt::format("{:.3f}", row.flops * 1e-9), fmt::format("{:.1f}", row.flops / row.seconds.median * 1e-9), megabytes(row.tensor_bytes),
        row.process_bytes ? megabytes(*row.process_bytes) : "-", std::to_string(row.parameters)});
  return rows;
}

std::string table_of(const Benchmark& bench) { return described(bench.options) + "\n" + aligned(cells_of(bench), 1); }

std::string roofline_table(const Benchmark& bench) {
  if (!bench.peaks) return "";
  std::vector<std::vector<std::string>> rows = {
      {"mixer", "op", "calls", "ms", "share", "GFLOP/s", "GB/s", "FLOP/byte", "bound by", "of the roof"}};
  for (const OpRow& op : bench.ops) {
    double whole = 0;
    for (const OpRow& other : bench.ops) whole += other.mixer == op.mixer ? other.seconds : 0;
    if (op.seconds >= kMinShare * whole) rows.push_back(cells_of(op, *bench.peaks, bench.options.rounds, whole));
  }
  return fmt::format("measured peaks: {:.1f} GFLOP/s {}, memory {:.1f} GB/s\n", bench.peaks->flops * 1e-9,
             name_of(bench.options.size.dtype), bench.peaks->bytes * 1e-9) +
         aligned(rows, 2);
}

std::string json_of(const Benchmark& bench) {
  json result{{"settings", settings_of(bench.options)}, {"steps", json::array()}};
  for (const MixerRow& row : bench.rows)
    result["steps"].push_back({{"mixer", row.mixer}, {"positions", row.positions}, {"sequences", row.sequences},
        {"parameters", row.parameters}, {"ms", spread_json(row.seconds)}, {"flops", row.flops}, {"tensor_bytes", row.tensor_bytes},
        {"process_bytes", row.process_bytes ? json(*row.process_bytes) : json()}});
  if (!bench.peaks) return result.dump(1);
  result["peaks"] = {{"flops_per_second", bench.peaks->flops}, {"bytes_per_second", bench.peaks->bytes}};
  const auto rounds = static_cast<double>(bench.options.rounds);
  result["ops"] = json::array();
  for (const OpRow& op : bench.ops)
    result["ops"].push_back(
        {{"mixer", op.mixer}, {"op", op.op}, {"calls", static_cast<double>(op.calls) / rounds}, {"ms", op.seconds / rounds * 1e3},
            {"flops", op.flops / rounds}, {"bytes", op.bytes / rounds}, {"floor_ms", floor_of(op, *bench.peaks) / rounds * 1e3}});
  return result.dump(1);
}

Chart chart_of(const Benchmark& bench) {
  Chart chart;
  chart.title = described(bench.options), chart.x_name = "positions of a sequence", chart.log_x = chart.log_y = true;
  chart.panels.push_back(panel_of(bench, "time of a step", "ms, median", [](const MixerRow& row) { return row.seconds.median * 1e3; }));
  chart.panels.push_back(
      panel_of(bench, "peak memory of tensors", "MB", [](const MixerRow& row) { return static_cast<double>(row.tensor_bytes) * 1e-6; }));
  chart.panels.push_back(panel_of(bench, "work of a step", "GFLOP", [](const MixerRow& row) { return row.flops * 1e-9; }));
  add_legend(chart, bench.options);
  return chart;
}

Chart roofline_chart(const Benchmark& bench) {
  Chart chart;
  chart.title = "roofline: " + described(bench.options), chart.x_name = "FLOPs per byte that an op reads or writes",
  chart.log_x = chart.log_y = true;
  Panel& panel = chart.panels.emplace_back(Panel{"speed of ops", "GFLOP/s", {}});
  const double ridge = bench.peaks->flops / bench.peaks->bytes;
  double least = ridge / 8, most = ridge * 8;
  for (const OpRow& op : bench.ops) {
    if (!(op.flops > 0 && op.bytes > 0 && op.seconds > 0)) continue;
    const Point at{op.flops / op.bytes, op.flops / op.seconds * 1e-9};
    least = std::min(least, at.x / 2), most = std::max(most, at.x * 2);
    panel.curves.push_back({op.mixer + ", " + op.op, colour_of(bench.options, op.mixer), true, {at}, {}});
  }
  Curve roofs{"the roofs", static_cast<int>(bench.options.mixers.size()), false, {}, {}};
  for (const double x : {least, ridge, most}) roofs.points.push_back({x, std::min(x * bench.peaks->bytes, bench.peaks->flops) * 1e-9});
  panel.curves.push_back(roofs);
  add_legend(chart, bench.options);
  chart.legend.push_back({roofs.name, roofs.colour, false});
  return chart;
}

}  // namespace ricci::apps
