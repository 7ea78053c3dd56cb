#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/lab/analysis/analyses.h"
#include "apps/terminal/progress.h"
#include "core/error.h"
#include "core/random.h"
#include "models/inference/evaluation.h"

namespace ricci::apps {
namespace {

struct RunNats {
  std::string name;
  int64_t context = 0, shuffled = 0, windows = 0;
  std::vector<double> nats, increases;  // [window x distance]
  int64_t distances() const { return context - shuffled + 1; }
};

// What a window predicts at each distance: position p predicts the token behind it, so the first one is that of position shuffled - 1.
std::vector<double> second_half(
    const TextRun& run, const std::vector<int64_t>& inputs, const std::vector<int64_t>& targets, int64_t rows, int64_t shuffled) {
  const std::vector<double> nats =
      token_nats(run.open.model, {ids_tensor(inputs, rows, run.open.device), ids_tensor(targets, rows, run.open.device)});
  std::vector<double> all;
  const int64_t context = run.open.context;
  for (int64_t r = 0; r < rows; ++r) all.insert(all.end(), nats.begin() + r * context + shuffled - 1, nats.begin() + (r + 1) * context);
  return all;
}

RunNats analyse(const TextRun& run, const ShuffleOptions& options) {
  const int64_t context = run.open.context, there = (run.tokens.size() - 1) / context;
  if (context < 4) fail("shuffle: a context of {}, expected 4 or more", {context});
  if (there < 1) fail("shuffle: {} has {} tokens, fewer than a window of {} and one more", {run.tokens.name(), run.tokens.size(), context});
  RunNats result{run.name, context, context / 2, std::min(options.windows, there), {}, {}};
  const int64_t at_once = rows_at_once(run.open.model, context);
  Progress progress({.steps = result.windows, .unit = "window", .out = stderr});
  for (int64_t w = 0; w < result.windows; w += at_once) {
    const int64_t rows = std::min(at_once, result.windows - w);
    std::vector<int64_t> inputs, shuffled, targets;
    for (int64_t r = w; r < w + rows; ++r) {
      // Windows are spread over the text.
      const std::vector<int64_t> ids = ids_at(run.tokens, r * there / result.windows * context, context + 1);
      const std::vector<int64_t> mixed =
          with_shuffled_start({ids.data(), static_cast<size_t>(context)}, result.shuffled, options.seed, static_cast<uint64_t>(r));
      inputs.insert(inputs.end(), ids.begin(), ids.end() - 1);
      targets.insert(targets.end(), ids.begin() + 1, ids.end());
      shuffled.insert(shuffled.end(), mixed.begin(), mixed.end());
    }
    const std::vector<double> plain = second_half(run, inputs, targets, rows, result.shuffled),
                              after = second_half(run, shuffled, targets, rows, result.shuffled);
    result.nats.insert(result.nats.end(), plain.begin(), plain.end());
    for (size_t i = 0; i < plain.size(); ++i) result.increases.push_back(after[i] - plain[i]);
    progress.update(w + rows, 0, run.name);
  }
  return result;
}

std::string range_of(const ShuffleRow& row) {
  return row.distance == row.last_distance ? std::to_string(row.distance) : fmt::format("{} - {}", row.distance, row.last_distance);
}

std::vector<ShuffleRow> ranges_of(const RunNats& run) { return shuffle_rows(run.nats, run.increases, run.distances(), true); }

// The ranges are those of the longest context; a run tells of those that it has.
ResultTable table_of(const std::vector<RunNats>& runs) {
  ResultTable table;
  const auto longest =
      std::max_element(runs.begin(), runs.end(), [](const RunNats& a, const RunNats& b) { return a.distances() < b.distances(); });
  table.columns = {{.heading = "distance", .left = true}};
  std::vector<std::vector<ShuffleRow>> of_runs;
  for (const RunNats& run : runs) {
    of_runs.push_back(ranges_of(run));
    for (const auto& [name, format] : {std::pair{", in order", "{:.4f}"}, {", shuffled", "{:+.4f}"}, {", +-", "{:.4f}"}})
      table.columns.push_back({.heading = run.name + name, .format = format});
  }
  const std::vector<ShuffleRow> ranges = ranges_of(*longest);
  for (size_t i = 0; i < ranges.size(); ++i) {
    std::vector<Value> row{range_of(ranges[i])};
    for (const std::vector<ShuffleRow>& rows : of_runs) {
      const bool same = i < rows.size() && rows[i].last_distance == ranges[i].last_distance;
      for (const auto number : {&ShuffleRow::nats, &ShuffleRow::increase, &ShuffleRow::error})
        row.emplace_back(same ? std::optional(rows[i].*number) : std::nullopt);
    }
    table.add_row(row);
  }
  return table;
}

// A dot for each range of distances, at its middle on the logarithmic axis.
Chart chart_of(const std::vector<RunNats>& runs, const std::string& title) {
  Chart chart{.title = title,
      .x_name = "distance from the shuffled part, in tokens",
      .log_x = true,
      .panels = {{"increase of the negative log likelihood", "nats per token"}}};
  for (const RunNats& run : runs) {
    std::vector<Point> points;
    for (const ShuffleRow& row : ranges_of(run))
      points.push_back({std::sqrt(static_cast<double>(row.distance) * static_cast<double>(row.last_distance)), row.increase});
    add_curves(chart, run.name, {points});
  }
  return chart;
}

Value json_of(const RunNats& run) {
  const auto as_object = [](const ShuffleRow& row) {
    return Object{{"distance", row.distance}, {"nats_per_token", row.nats}, {"increase", row.increase}, {"standard_error", row.error}};
  };
  return Object{{"run", run.name}, {"context", run.context}, {"shuffled", run.shuffled}, {"windows", run.windows},
      {"distances", values_of(shuffle_rows(run.nats, run.increases, run.distances(), false), as_object)}};
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
  const int64_t windows = static_cast<int64_t>(nats.size()) / distances;
  std::vector<ShuffleRow> rows;
  for (int64_t first = 1, last = 1; first <= distances; first = last + 1, last = std::min(in_ranges ? 2 * last : last + 1, distances)) {
    ShuffleRow row{first, last, 0, 0, 0};
    double squares = 0;
    for (int64_t w = 0; w < windows; ++w) {
      double of_window = 0;
      for (int64_t d = first - 1; d < last; ++d) {
        row.nats += nats[static_cast<size_t>(w * distances + d)];
        of_window += increases[static_cast<size_t>(w * distances + d)];
      }
      of_window /= static_cast<double>(last - first + 1);
      row.increase += of_window;
      squares += of_window * of_window;
    }
    const auto n = static_cast<double>(windows);
    row.nats /= n * static_cast<double>(last - first + 1);
    row.increase /= n;
    row.error = windows > 1 ? std::sqrt(std::max(0.0, squares / n - row.increase * row.increase) / (n - 1)) : 0;
    rows.push_back(row);
    if (last == distances) break;
  }
  return rows;
}

Report analyse_shuffle(const ShuffleOptions& options) {
  std::vector<RunNats> runs;
  for (const TextRun& run : open_text_runs(options.text, text_writers())) runs.push_back(analyse(run, options));
  Report report{.title = "likelihood behind a shuffled half of the context",
      .table = table_of(runs),
      .json = values_of(runs, [](const RunNats& run) { return json_of(run); })};
  report.chart = chart_of(runs, report.title);
  for (const RunNats& run : runs)
    report.notes.push_back(
        fmt::format("{}: {} windows of {} tokens, of which the first {} are shuffled; nats per token, +- standard error of the increase",
            run.name, run.windows, run.context, run.shuffled));
  return report;
}

}  // namespace ricci::apps
