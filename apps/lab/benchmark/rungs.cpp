#include "apps/lab/benchmark/rungs.h"

#include <fmt/format.h>

#include <algorithm>

#include "autograd/recording.h"
#include "core/cpu/available.h"
#include "core/cpu/parallel.h"
#include "cuda/device/device.h"

namespace ricci::apps {
namespace {

struct RungRow {
  std::string file;
  const char* dtype;
  double seconds, floor;
  std::optional<double> gain;  // over the rung before
};

std::vector<RungRow> rows_of(const LadderTimes& times, const Ladder& ladder) {
  std::vector<RungRow> rows;
  for (const Rung& rung : ladder.rungs) {
    rows.push_back({rung.file, name_of(rung.dtype), rung.seconds, floor_of(ladder, rung, times.peaks.at(rung.dtype)), {}});
    if (rows.size() > 1) rows.back().gain = rows[rows.size() - 2].seconds / rung.seconds;
  }
  return rows;
}

ResultTable table_of(const LadderTimes& times, const Ladder& ladder) {
  const std::vector<RungRow> rows = rows_of(times, ladder);
  ResultTable table;
  table.add({.heading = "rung", .key = "file", .left = true}, rows, &RungRow::file);
  table.add({.heading = "dtype", .key = "dtype", .left = true}, rows, &RungRow::dtype);
  table.add({.heading = "ms", .key = "ms", .format = "{:.3f}"}, rows, [](const RungRow& row) { return row.seconds * 1e3; });
  table.add({.heading = "gain", .key = "gain", .format = "{:.2f}", .missing = ""}, rows, &RungRow::gain);
  table.add({.heading = "floor ms", .key = "floor_ms", .format = "{:.3f}"}, rows, [](const RungRow& row) { return row.floor * 1e3; });
  table.add({.heading = "x floor", .key = "times_the_floor", .format = "{:.2f}"}, rows,
      [](const RungRow& row) { return row.seconds / row.floor; });
  return table;
}

}  // namespace

double floor_of(const Ladder& ladder, const Rung& rung, const Peaks& peaks) {
  return std::max(ladder.flops / peaks.flops, ladder.numbers * static_cast<double>(size_of(rung.dtype)) / peaks.bytes);
}

int64_t steps_of(const LadderOptions& options) { return std::ssize(options.ladders) * (1 + options.rounds); }

LadderTimes measure(const LadderOptions& options, Progress& progress) {
  require(options.device);
  const NoTape no_tape;
  LadderTimes all;
  int64_t done = 0;
  for (const LadderKind kind : options.ladders) {
    Ladder ladder = ladder_of(kind, options);
    for (int64_t round = -1; round < options.rounds; ++round) {  // the first one is not counted: it touches memory for the first time
      for (Rung& rung : ladder.rungs) {
        const double started = seconds_now();
        rung.run();
        synchronize(options.device);
        const double seconds = seconds_now() - started;
        if (round >= 0) rung.seconds = round == 0 ? seconds : std::min(rung.seconds, seconds);
      }
      progress.update(++done, 0, name_of(kind));
    }
    for (Rung& rung : ladder.rungs) {
      rung.run = {};  // and the memory of its inputs
      const Device device = rung.dtype == Dtype::f64 ? Device::cpu : options.device;
      if (!all.peaks.contains(rung.dtype)) all.peaks[rung.dtype] = measured_peaks(device, rung.dtype);
    }
    all.ladders.push_back(std::move(ladder));
  }
  double bandwidth = 0;  // no matter of the dtype: the best measurement counts
  for (const auto& [dtype, peaks] : all.peaks) bandwidth = std::max(bandwidth, peaks.bytes);
  for (auto& [dtype, peaks] : all.peaks)
    if (options.device == Device::cpu) peaks.bytes = bandwidth;
  return all;
}

std::vector<Report> reports_of(const LadderTimes& times) {
  std::vector<Report> reports;
  for (const Ladder& ladder : times.ladders)
    reports.push_back({.title = fmt::format("{}: {}", name_of(ladder.kind), ladder.size), .table = table_of(times, ladder)});
  std::string note = fmt::format("threads: {}; measured peaks", thread_count());
  for (const auto& [dtype, peaks] : times.peaks)
    note += fmt::format("; {}: {:.1f} GFLOP/s, {:.1f} GB/s", name_of(dtype), peaks.flops * 1e-9, peaks.bytes * 1e-9);
  if (!reports.empty()) reports.back().notes.push_back(note);
  return reports;
}

Json json_of(const LadderTimes& times) {
  Json ladders = Json::array(), peaks;
  for (const Ladder& ladder : times.ladders)
    ladders.push_back(Json{{"op", name_of(ladder.kind)}, {"size", ladder.size}, {"rungs", json_of(table_of(times, ladder))}});
  for (const auto& [dtype, peak] : times.peaks)
    peaks[name_of(dtype)] = {{"flops_per_second", peak.flops}, {"bytes_per_second", peak.bytes}};
  return {{"threads", thread_count()}, {"peaks", peaks}, {"ladders", ladders}};
}

}  // namespace ricci::apps
