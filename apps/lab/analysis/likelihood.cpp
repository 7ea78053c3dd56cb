// Analyses of the nats of single tokens: by their frequency, and by their distance from shuffled tokens.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "apps/lab/analysis/analyses.h"
#include "apps/run/corpus.h"
#include "apps/terminal/numbers.h"
#include "apps/terminal/progress.h"
#include "core/error.h"
#include "models/inference/evaluation.h"

namespace ricci::apps {
namespace {

int64_t total_scored(const std::vector<TokenScore>& kinds) {
  return std::accumulate(kinds.begin(), kinds.end(), int64_t{0}, [](int64_t sum, const TokenScore& kind) { return sum + kind.scored; });
}

// The scores of all token types, by id.
std::vector<TokenScore> score_tokens(const TextRun& run, const Tokens& train, int64_t counted, int64_t scored) {
  std::vector<TokenScore> kinds(static_cast<size_t>(run.model.config().vocab));
  constexpr int64_t kChunk = 1 << 16;
  for (int64_t first = 0; first < counted; first += kChunk)
    for (const int64_t id : ids_at(train, {first}, std::min(kChunk, counted - first))) ++kinds[static_cast<size_t>(id)].training;

  // Windows overlap by half, so each token has half a window before it. If a model does not score the first tokens of a window, windows
  // must overlap by at least those.
  const int64_t context = run.context, skipped = first_scored(run.model, context);
  const int64_t stride = std::max<int64_t>(1, std::min(context / 2, context - skipped)), last = run.tokens.size() - 1;
  if (last < context) fail("{}: {} tokens, fewer than a window of {} and one more", {run.tokens.name(), run.tokens.size(), context});
  Ids starts{0};
  for (int64_t start = stride; start - stride + context < std::min(last, scored + skipped); start += stride) starts.push_back(start);
  const std::vector<double> nats = window_nats(run, starts);
  const Ids ids = ids_at(run.tokens, {0}, starts.back() + context + 1);
  int64_t token = 0, left = scored;  // token: the last one that was scored
  for (size_t i = 0; i < nats.size() && left > 0; ++i) {
    // Position p of a window predicts the token after it.
    const int64_t p = static_cast<int64_t>(i) % context, next = starts[i / static_cast<size_t>(context)] + p + 1;
    if (p < skipped || next <= token || next > last) continue;
    const int64_t id = ids[static_cast<size_t>(token = next)];
    if (id == run.tokens.first_id()) continue;  // it is never a target
    ++kinds[static_cast<size_t>(id)].scored;
    kinds[static_cast<size_t>(id)].nats += nats[i];
    --left;
  }
  return kinds;
}

}  // namespace

std::vector<FrequencyBin> frequency_bins(std::vector<TokenScore> kinds, int64_t bins) {
  std::erase_if(kinds, [](const TokenScore& kind) { return kind.scored == 0; });
  if (kinds.empty()) fail("frequency: no token was scored");
  std::stable_sort(kinds.begin(), kinds.end(), [](const TokenScore& a, const TokenScore& b) { return a.training > b.training; });
  // Each token counts as `bins` parts, because the parts of a bin are then a whole number: the number of scored tokens.
  const int64_t room = total_scored(kinds);
  std::vector<FrequencyBin> all;
  int64_t left = 0;  // parts that the last bin can take
  for (const TokenScore& kind : kinds)
    for (int64_t rest = kind.scored * bins, taken = 0; rest > 0; rest -= taken, left -= taken) {
      if (left == 0) {
        left = room;
        all.push_back({.tokens = static_cast<double>(room) / static_cast<double>(bins), .max = kind.training});
      }
      taken = std::min(rest, left);
      FrequencyBin& bin = all.back();
      bin.nats += static_cast<double>(taken) / static_cast<double>(bins) * (kind.nats / static_cast<double>(kind.scored));
      bin.min = kind.training;
      ++bin.kinds;
    }
  for (FrequencyBin& bin : all) bin.nats /= bin.tokens;
  return all;
}

Report analyse_frequency(const AnalysisOptions& options) {
  const std::vector<TextRun> runs = open_text_runs(options, text_writers());
  Report report{.title = fmt::format("nats per token by training frequency, {} bins of equal mass", options.bins), .json = Json::array()};
  report.table.columns = {{.heading = "run", .left = true, .missing = ""}, {.heading = "bin", .left = true}, {.heading = "in training"},
      {.heading = "kinds", .format = ","}, {.heading = "nats", .format = "{:.4f}"}};
  Chart chart{.x_name = "bin, from frequent tokens to rare ones", .whole_x = true, .panels = {{"loss", "nats per token"}}};
  if (runs.size() > 1) chart.panels.push_back({"more than " + runs[0].name, "nats per token"});
  std::vector<FrequencyBin> first;  // bins of the first run
  for (const TextRun& run : runs) {
    if (run.config().data.empty()) fail("{}: has no training text (data is empty, as in imported runs)", {run.name});
    const Tokens train = open_corpus(run.config(), run.run.tokenizer()).train;
    const int64_t counted = std::min(options.counted, train.size());
    const std::vector<TokenScore> kinds = score_tokens(run, train, counted, options.scored);
    const std::vector<FrequencyBin> bins = frequency_bins(kinds, options.bins);
    if (first.empty()) first = bins;
    std::vector<std::vector<Point>> points(2);
    double sum = 0;
    Json name = run.name, list = Json::array();
    for (size_t i = 0; i < bins.size(); ++i) {
      const FrequencyBin& bin = bins[i];
      sum += bin.nats;
      points[0].push_back({static_cast<double>(i + 1), bin.nats});
      points[1].push_back({static_cast<double>(i + 1), bin.nats - first[i].nats});
      const std::string counts = (bin.max == bin.min ? "" : with_commas(bin.max) + " - ") + with_commas(bin.min);
      report.table.add_row({std::exchange(name, {}), i + 1, counts, bin.kinds, bin.nats});
      list.push_back(Json{{"tokens", bin.tokens}, {"nats_per_token", bin.nats}, {"kinds", bin.kinds}, {"most_in_training", bin.max},
          {"least_in_training", bin.min}});
    }
    report.table.add_row({{}, "all", "", "", sum / static_cast<double>(bins.size())});
    points.resize(chart.panels.size());
    add_curves(chart, run.name, points);
    const int64_t scored = total_scored(kinds);
    report.json.push_back(Json{{"run", run.name}, {"scored_tokens", scored}, {"training_tokens", counted}, {"bins", list}});
    add_note(
        report, run.name, fmt::format("{} tokens scored, {} tokens of training text counted", with_commas(scored), with_commas(counted)));
  }
  report.add(chart);
  return report;
}

std::vector<ShuffleRow> shuffle_rows(std::span<const double> before, std::span<const double> after, int64_t context, bool in_ranges) {
  // Position p predicts the token after it, so the first token after the shuffled ones is predicted by the last of them.
  const int64_t skipped = context / 2 - 1, distances = context - skipped, windows = std::ssize(before) / context;
  const auto n = static_cast<double>(windows);
  std::vector<ShuffleRow> rows;
  for (int64_t first = 1, last = 1; first <= distances; first = last + 1, last = std::min(in_ranges ? 2 * last : first, distances)) {
    ShuffleRow& row = rows.emplace_back(ShuffleRow{first, last});
    const auto length = static_cast<double>(last - first + 1);
    double squares = 0;
    for (int64_t w = 0; w < windows; ++w) {
      double sum = 0;
      for (int64_t d = first; d <= last; ++d) {
        const auto i = static_cast<size_t>(w * context + skipped + d - 1);
        row.nats += before[i];
        sum += after[i] - before[i];
      }
      row.increase += sum / length;
      squares += (sum / length) * (sum / length);
    }
    row.nats /= n * length;
    row.increase /= n;
    row.error = windows > 1 ? std::sqrt(std::max(0.0, squares / n - row.increase * row.increase) / (n - 1)) : 0;
  }
  return rows;
}

Report analyse_shuffle(const AnalysisOptions& options) {
  Report report{.title = "nats per token after a shuffled half of the context",
      .notes = {"nats: in the true order; shuffled: the increase by shuffling; ±: its standard error over the windows."},
      .json = Json::array()};
  report.table.columns = {{.heading = "run", .left = true, .missing = ""}, {.heading = "distance", .left = true},
      {.heading = "nats", .format = "{:.4f}"}, {.heading = "shuffled", .format = "{:+.4f}"}, {.heading = "±", .format = "{:.4f}"}};
  Chart chart{.x_name = "distance from the shuffled part, in tokens",
      .log_x = true,
      .whole_x = true,
      .panels = {{"increase of the loss", "nats per token"}}};
  for (const TextRun& run : open_text_runs(options, text_writers())) {
    const int64_t context = run.context;
    if (context < 4) fail("shuffle: a context of {}, expected 4 or more", {context});
    const Ids starts = spread_over(run.tokens, run.tokens.size() - 1, context, options.windows);
    const std::vector<double> before = window_nats(run, starts), after = window_nats(run, starts, options.seed);
    std::vector<Point> points;
    Json name = run.name;
    for (const ShuffleRow& row : shuffle_rows(before, after, context, true)) {
      const std::string last = row.distance < row.last_distance ? fmt::format(" - {}", row.last_distance) : "";
      report.table.add_row({std::exchange(name, {}), std::to_string(row.distance) + last, row.nats, row.increase, row.error});
      // A dot at the middle of the range on the logarithmic axis.
      points.push_back({std::sqrt(static_cast<double>(row.distance) * static_cast<double>(row.last_distance)), row.increase, row.error});
    }
    add_curves(chart, run.name, {points});
    report.json.push_back(Json{{"run", run.name}, {"context", context}, {"shuffled", context / 2}, {"windows", starts.size()},
        {"distances", values_of(shuffle_rows(before, after, context, false), [](const ShuffleRow& row) {
           return Json{{"distance", row.distance}, {"nats_per_token", row.nats}, {"increase", row.increase}, {"standard_error", row.error}};
         })}});
    add_note(report, run.name, fmt::format("{} windows of {} tokens, the first {} shuffled", starts.size(), context, context / 2));
  }
  report.add(chart);
  return report;
}

}  // namespace ricci::apps
