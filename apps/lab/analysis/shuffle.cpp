#include "apps/lab/analysis/shuffle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/terminal/progress.h"
#include "core/error.h"
#include "core/random.h"
#include "models/evaluation/token_nats.h"

namespace ricci::apps {
namespace {

using json = nlohmann::ordered_json;

struct OfRun {
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

OfRun analyse(const TextRun& run, const ShuffleOptions& options) {
  const int64_t context = run.open.context, there = (run.tokens.size() - 1) / context;
  if (context < 4) fail("shuffle: a context of {}, expected 4 or more", {context});
  if (there < 1) fail("shuffle: {} has {} tokens, fewer than a window of {} and one more", {run.tokens.name(), run.tokens.size(), context});
  OfRun of{run.name, context, context / 2, std::min(options.windows, there), {}, {}};
  const int64_t at_once = rows_at_once(run.open.model, context);
  Progress progress({.steps = of.windows, .unit = "window", .out = stderr});
  for (int64_t w = 0; w < of.windows; w += at_once) {
    const int64_t rows = std::min(at_once, of.windows - w);
    std::vector<int64_t> inputs, shuffled, targets;
    for (int64_t r = w; r < w + rows; ++r) {
      // Windows are spread over the text.
      const std::vector<int64_t> ids = ids_at(run.tokens, r * there / of.windows * context, context + 1);
      const std::vector<int64_t> mixed =
          with_shuffled_start({ids.data(), static_cast<size_t>(context)}, of.shuffled, options.seed, static_cast<uint64_t>(r));
      inputs.insert(inputs.end(), ids.begin(), ids.end() - 1), targets.insert(targets.end(), ids.begin() + 1, ids.end());
      shuffled.insert(shuffled.end(), mixed.begin(), mixed.end());
    }
    const std::vector<double> plain = second_half(run, inputs, targets, rows, of.shuffled),
                              after = second_half(run, shuffled, targets, rows, of.shuffled);
    of.nats.insert(of.nats.end(), plain.begin(), plain.end());
    for (size_t i = 0; i < plain.size(); ++i) of.increases.push_back(after[i] - plain[i]);
    progress.update(w + rows, 0, run.name);
  }
  return of;
}

std::string range_of(const ShuffleRow& row) {
  return row.distance == row.last_distance ? std::to_string(row.distance) : fmt::format("{} - {}", row.distance, row.last_distance);
}

std::vector<Cells> table_of(const std::vector<OfRun>& runs) {
  std::vector<Cells> rows = {{"distance"}};
  std::vector<std::vector<ShuffleRow>> of_runs;
  const auto longest =
      std::max_element(runs.begin(), runs.end(), [](const OfRun& a, const OfRun& b) { return a.distances() < b.distances(); });
  for (const OfRun& run : runs) {
    of_runs.push_back(shuffle_rows(run.nats, run.increases, run.distances(), true));
    for (const char* what : {", in order", ", shuffled", ", +-"}) rows[0].push_back(run.name + what);
  }
  for (const ShuffleRow& range : shuffle_rows(longest->nats, longest->increases, longest->distances(), true)) {
    Cells& row = rows.emplace_back(Cells{range_of(range)});
    for (const auto& of_run : of_runs) {
      const size_t i = rows.size() - 2;
      const bool same = i < of_run.size() && of_run[i].last_distance == range.last_distance;
      row.push_back(same ? fmt::format("{:.4f}", of_run[i].nats) : "-"),
          row.push_back(same ? fmt::format("{:+.4f}", of_run[i].increase) : "-");
      row.push_back(same ? fmt::format("{:.4f}", of_run[i].error) : "-");
    }
  }
  return rows;
}

// A dot for each range of distances, at its middle on the logarithmic axis.
Chart chart_of(const std::vector<OfRun>& runs, const std::string& title) {
  Chart chart;
  chart.title = title, chart.x_name = "distance from the shuffled part, in tokens", chart.log_x = true;
  Panel panel{"increase of the negative log likelihood", "nats per token", {}};
  for (size_t r = 0; r < runs.size(); ++r) {
    const int colour = static_cast<int>(r);
    Curve curve{.name = runs[r].name, .colour = colour, .dashed = colour >= kColours, .points = {}, .marked = true};
    for (const ShuffleRow& row : shuffle_rows(runs[r].nats, runs[r].increases, runs[r].distances(), true))
      curve.points.push_back({std::sqrt(static_cast<double>(row.distance) * static_cast<double>(row.last_distance)), row.increase});
    chart.legend.push_back({curve.name, colour, curve.dashed});
    panel.curves.push_back(std::move(curve));
  }
  chart.panels.push_back(std::move(panel));
  return chart;
}

std::string json_of(const std::vector<OfRun>& runs) {
  json all = json::array();
  for (const OfRun& run : runs) {
    json rows = json::array();
    for (const ShuffleRow& row : shuffle_rows(run.nats, run.increases, run.distances(), false))
      rows.push_back({{"distance", row.distance}, {"nats_per_token", row.nats}, {"increase", row.increase}, {"standard_error", row.error}});
    all.push_back({{"run", run.name}, {"context", run.context}, {"shuffled", run.shuffled}, {"windows", run.windows},
        {"distances", std::move(rows)}});
  }
  return all.dump(1, ' ', false, json::error_handler_t::replace);
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
      row.increase += of_window, squares += of_window * of_window;
    }
    const auto n = static_cast<double>(windows);
    row.nats /= n * static_cast<double>(last - first + 1), row.increase /= n;
    row.error = windows > 1 ? std::sqrt(std::max(0.0, squares / n - row.increase * row.increase) / (n - 1)) : 0;
    rows.push_back(row);
    if (last == distances) break;
  }
  return rows;
}

Report analyse_shuffle(const ShuffleOptions& options) {
  std::vector<OfRun> runs;
  for (const TextRun& run : open_text_runs(options.text, text_writers())) runs.push_back(analyse(run, options));
  Report report;
  report.title = "likelihood behind a shuffled half of the context";
  report.table = table_of(runs), report.json = json_of(runs), report.chart = chart_of(runs, report.title);
  for (const OfRun& run : runs)
    report.notes.push_back(
        fmt::format("{}: {} windows of {} tokens, of which the first {} are shuffled; nats per token, +- standard error of the increase",
            run.name, run.windows, run.context, run.shuffled));
  return report;
}

}  // namespace ricci::apps
