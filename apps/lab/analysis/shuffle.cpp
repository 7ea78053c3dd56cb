#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/lab/analysis/analyses.h"
#include "core/error.h"
#include "core/random.h"
#include "models/inference/evaluation.h"

namespace ricci::apps {
namespace {

struct RunNats {
  std::string name;
  int64_t context = 0, shuffled = 0, windows = 0;
  std::vector<double> nats = {}, increases = {};  // [window x distance]

  std::vector<ShuffleRow> rows(bool in_ranges) const { return shuffle_rows(nats, increases, context - shuffled + 1, in_ranges); }
};

RunNats analyse(const TextRun& run, const ShuffleOptions& options) {
  const int64_t context = run.context, size = run.tokens.size();
  if (context < 4) fail("shuffle: a context of {}, expected 4 or more", {context});
  if (size - 1 < context) fail("shuffle: {} has {} tokens, fewer than a window of {} and one more", {run.tokens.name(), size, context});
  const std::vector<int64_t> starts = spread_over(size - 1, context, options.windows);
  RunNats result{run.name, context, context / 2, std::ssize(starts)};
  uint64_t window = 0;
  in_batches(run, starts, [&](std::span<const int64_t> batch) {
    std::vector<int64_t> inputs, shuffled, targets;
    for (const int64_t start : batch) {
      const std::vector<int64_t> ids = ids_at(run.tokens, start, context + 1),
                                 mixed = with_shuffled_start(std::span(ids).first(ids.size() - 1), result.shuffled, options.seed, window++);
      inputs.insert(inputs.end(), ids.begin(), ids.end() - 1);
      targets.insert(targets.end(), ids.begin() + 1, ids.end());
      shuffled.insert(shuffled.end(), mixed.begin(), mixed.end());
    }
    const auto rows = std::ssize(batch);
    const auto nats_of = [&](const std::vector<int64_t>& ids) {
      return token_nats(run.model, {ids_tensor(ids, rows, run.device), ids_tensor(targets, rows, run.device)});
    };
    const std::vector<double> before = nats_of(inputs), after = nats_of(shuffled);
    // Position p predicts the token after it, so the first token of the second half is predicted by position shuffled - 1.
    for (size_t i = 0; i < before.size(); ++i)
      if (static_cast<int64_t>(i) % context >= result.shuffled - 1) {
        result.nats.push_back(before[i]);
        result.increases.push_back(after[i] - before[i]);
      }
  });
  return result;
}

// The ranges of the longest context, and the numbers of each run as far as it has them.
ResultTable table_of(const std::vector<RunNats>& runs) {
  ResultTable table;
  std::vector<ShuffleRow> ranges;
  for (const RunNats& run : runs)
    if (std::vector<ShuffleRow> rows = run.rows(true); ranges.empty() || rows.back().last_distance > ranges.back().last_distance)
      ranges = std::move(rows);
  table.add({.heading = "distance", .left = true}, ranges, [](const ShuffleRow& row) {
    return row.distance == row.last_distance ? std::to_string(row.distance) : fmt::format("{} - {}", row.distance, row.last_distance);
  });
  for (const RunNats& run : runs) {
    const std::vector<ShuffleRow> rows = run.rows(true);
    const auto add = [&](const std::string& heading, const char* format, double ShuffleRow::*number) {
      table.add({.heading = heading, .format = format}, ranges, [&](const ShuffleRow& range) {
        const auto i = static_cast<size_t>(&range - ranges.data());
        return i < rows.size() && rows[i].last_distance == range.last_distance ? Json(rows[i].*number) : Json();
      });
    };
    add(run.name, "{:.4f}", &ShuffleRow::nats);
    add("shuffled", "{:+.4f}", &ShuffleRow::increase);
    add("+-", "{:.4f}", &ShuffleRow::error);
  }
  return table;
}

// A dot for each range of distances, at its middle on the logarithmic axis.
void draw(Chart& chart, const RunNats& run) {
  std::vector<Point> points;
  for (const ShuffleRow& row : run.rows(true))
    points.push_back({std::sqrt(static_cast<double>(row.distance) * static_cast<double>(row.last_distance)), row.increase});
  add_curves(chart, run.name, {points});
}

Json nats_json(const RunNats& run) {
  const std::vector<ShuffleRow> rows = run.rows(false);
  ResultTable distances;
  distances.add({.key = "distance"}, rows, &ShuffleRow::distance);
  distances.add({.key = "nats_per_token"}, rows, &ShuffleRow::nats);
  distances.add({.key = "increase"}, rows, &ShuffleRow::increase);
  distances.add({.key = "standard_error"}, rows, &ShuffleRow::error);
  return {
      {"run", run.name}, {"context", run.context}, {"shuffled", run.shuffled}, {"windows", run.windows}, {"distances", json_of(distances)}};
}

}  // namespace

std::vector<int64_t> with_shuffled_start(std::span<const int64_t> ids, int64_t shuffled, uint64_t seed, uint64_t window) {
  std::vector<int64_t> mixed(ids.begin(), ids.end());
  const Philox random{seed, window};
  for (int64_t i = shuffled - 1; i > 0; --i)  // Fisher and Yates
    std::swap(mixed[static_cast<size_t>(i)], mixed[index_below(static_cast<uint64_t>(i) + 1, random, static_cast<uint64_t>(i))]);
  return mixed;
}

std::vector<ShuffleRow> shuffle_rows(std::span<const double> nats, std::span<const double> increases, int64_t distances, bool in_ranges) {
  const int64_t windows = std::ssize(nats) / distances;
  std::vector<ShuffleRow> rows;
  for (int64_t first = 1, last = 1; first <= distances; first = last + 1, last = std::min(in_ranges ? 2 * last : last + 1, distances)) {
    ShuffleRow& row = rows.emplace_back(ShuffleRow{first, last});
    const auto length = static_cast<double>(last - first + 1), n = static_cast<double>(windows);
    double squares = 0;
    for (int64_t w = 0; w < windows; ++w) {
      double sum = 0;
      for (int64_t d = first - 1; d < last; ++d) {
        row.nats += nats[static_cast<size_t>(w * distances + d)];
        sum += increases[static_cast<size_t>(w * distances + d)];
      }
      const double mean = sum / length;
      row.increase += mean;
      squares += mean * mean;
    }
    row.nats /= n * length;
    row.increase /= n;
    row.error = windows > 1 ? std::sqrt(std::max(0.0, squares / n - row.increase * row.increase) / (n - 1)) : 0;
    if (last == distances) break;
  }
  return rows;
}

Report analyse_shuffle(const ShuffleOptions& options) {
  std::vector<RunNats> runs;
  for (const TextRun& run : open_text_runs(options.text, text_writers())) runs.push_back(analyse(run, options));
  Report report{.title = "likelihood after a shuffled half of the context", .table = table_of(runs), .json = values_of(runs, nats_json)};
  report.chart = {.title = report.title,
      .x_name = "distance from the shuffled part, in tokens",
      .log_x = true,
      .panels = {{"increase of the negative log likelihood", "nats per token"}}};
  for (const RunNats& run : runs) {
    draw(*report.chart, run);
    report.notes.push_back(
        fmt::format("{}: {} windows of {} tokens, the first {} shuffled; nats per token in order, their increase, and its standard error",
            run.name, run.windows, run.context, run.shuffled));
  }
  return report;
}

}  // namespace ricci::apps
