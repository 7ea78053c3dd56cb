// Analyses of the nats of single tokens, by frequency and by distance from shuffled tokens.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/lab/analysis/analyses.h"
#include "apps/run/corpus.h"
#include "apps/terminal/numbers.h"
#include "apps/terminal/progress.h"
#include "core/error.h"
#include "models/inference/evaluation.h"

namespace ricci::apps {
namespace {

int64_t total_scored(const std::vector<TokenScore>& kinds) {
  int64_t total = 0;
  for (const TokenScore& kind : kinds) total += kind.scored;
  return total;
}

// Counts the occurrences of each type in the first `counted` training tokens.
void count_training(const Tokens& train, int64_t counted, std::vector<TokenScore>& kinds) {
  constexpr int64_t kChunk = 1 << 16;
  for (int64_t first = 0; first < counted; first += kChunk) {
    const Ids ids = ids_at(train, {first}, std::min(kChunk, counted - first));
    for (const int64_t id : ids) ++kinds[static_cast<size_t>(id)].training;
  }
}

// Adds the nats of at most `scored` tokens to the scores of their types. Windows overlap by half, or more if the model does not score the
// first tokens of a window, so each token has half a window before it.
void score_text(const TextRun& run, int64_t scored, std::vector<TokenScore>& kinds) {
  const int64_t context = run.context, skipped = first_scored(run.model, context);
  const int64_t stride = std::max<int64_t>(1, std::min(context / 2, context - skipped));
  const int64_t last = run.tokens.size() - 1;
  if (last < context) fail("{}: has {} tokens, expected more than a window of {}", {run.tokens.name(), run.tokens.size(), context});
  const int64_t wanted = std::min(last, scored + skipped);  // the windows reach this token
  Ids starts{0};
  while (starts.back() + context < wanted) starts.push_back(starts.back() + stride);
  const std::vector<double> nats = window_nats(run, starts);
  const Ids ids = ids_at(run.tokens, {0}, starts.back() + context + 1);
  int64_t newest = 0;  // the last scored token
  int64_t left = scored;
  for (size_t window = 0; window < starts.size(); ++window) {
    for (int64_t position = skipped; position < context; ++position) {
      const int64_t token = starts[window] + position + 1;  // predicted from the position before it
      if (token <= newest || token > last) continue;
      newest = token;
      const int64_t id = ids[static_cast<size_t>(token)];
      if (id == run.tokens.first_id()) continue;  // never a target
      if (left == 0) return;
      --left;
      TokenScore& kind = kinds[static_cast<size_t>(id)];
      ++kind.scored;
      kind.nats += nats[window * static_cast<size_t>(context) + static_cast<size_t>(position)];
    }
  }
}

// The range of the training occurrences of a bin's token types, such as "1,234 - 56".
std::string counts_text(const FrequencyBin& bin) {
  const std::string least = with_commas(bin.min);
  return bin.max == bin.min ? least : with_commas(bin.max) + " - " + least;
}

Json bin_json(const FrequencyBin& bin) {
  return {{"tokens", bin.tokens}, {"nats_per_token", bin.nats}, {"kinds", bin.kinds}, {"most_in_training", bin.max},
      {"least_in_training", bin.min}};
}

}  // namespace

std::vector<FrequencyBin> frequency_bins(std::vector<TokenScore> kinds, int64_t bins) {
  std::erase_if(kinds, [](const TokenScore& kind) { return kind.scored == 0; });
  if (kinds.empty()) fail("frequency: no token was scored");
  std::stable_sort(kinds.begin(), kinds.end(), [](const TokenScore& a, const TokenScore& b) { return a.training > b.training; });
  // Each token is divided into `bins` parts. Each bin then holds one part per scored token.
  const int64_t room = total_scored(kinds);
  std::vector<FrequencyBin> all;
  int64_t free = 0;  // parts that still fit into the last bin
  for (const TokenScore& kind : kinds) {
    const double mean_nats = kind.nats / static_cast<double>(kind.scored);
    int64_t rest = kind.scored * bins;
    while (rest > 0) {
      if (free == 0) {
        all.push_back({.tokens = static_cast<double>(room) / static_cast<double>(bins), .max = kind.training});
        free = room;
      }
      const int64_t taken = std::min(rest, free);
      FrequencyBin& bin = all.back();
      bin.nats += static_cast<double>(taken) / static_cast<double>(bins) * mean_nats;
      bin.min = kind.training;
      ++bin.kinds;
      rest -= taken;
      free -= taken;
    }
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
    if (run.config().data.empty()) fail("{}: has no training text (the key data is empty, as in imported runs)", {run.name});
    const Tokens train = open_corpus(run.config(), run.run.tokenizer()).train;
    const int64_t counted = std::min(options.counted, train.size());
    std::vector<TokenScore> kinds(static_cast<size_t>(run.model.config().vocab));  // by id
    count_training(train, counted, kinds);
    score_text(run, options.scored, kinds);
    const std::vector<FrequencyBin> bins = frequency_bins(kinds, options.bins);
    if (first.empty()) first = bins;
    std::vector<Point> losses, differences;
    double sum = 0;
    for (size_t i = 0; i < bins.size(); ++i) {
      const FrequencyBin& bin = bins[i];
      const auto number = static_cast<double>(i + 1);
      losses.push_back({number, bin.nats});
      differences.push_back({number, bin.nats - first[i].nats});
      report.table.add_row({run.name, i + 1, counts_text(bin), bin.kinds, bin.nats});
      sum += bin.nats;
    }
    report.table.add_row({run.name, "all", "", "", sum / static_cast<double>(bins.size())});
    if (runs.size() > 1) add_curves(chart, run.name, {losses, differences});
    else add_curves(chart, run.name, {losses});
    const int64_t scored = total_scored(kinds);
    report.json.push_back(
        Json{{"run", run.name}, {"scored_tokens", scored}, {"training_tokens", counted}, {"bins", values_of(bins, bin_json)}});
    add_note(
        report, run.name, fmt::format("{} tokens scored, {} tokens of training text counted", with_commas(scored), with_commas(counted)));
  }
  hide_repeats(report.table.columns[0]);
  report.add(chart);
  return report;
}

namespace {

// The mean over all windows at the distances `first` to `last`.
ShuffleRow shuffle_row(std::span<const double> before, std::span<const double> after, int64_t context, int64_t first, int64_t last) {
  const int64_t windows = std::ssize(before) / context, count = last - first + 1;
  const auto n = static_cast<double>(windows), length = static_cast<double>(count);
  ShuffleRow row{first, last};
  double squares = 0;
  for (int64_t window = 0; window < windows; ++window) {
    // The last shuffled position predicts the first unshuffled token.
    const int64_t start = window * context + context / 2 - 1;
    double increase = 0;
    for (int64_t distance = first; distance <= last; ++distance) {
      const auto i = static_cast<size_t>(start + distance - 1);
      row.nats += before[i];
      increase += after[i] - before[i];
    }
    row.increase += increase / length;
    squares += (increase / length) * (increase / length);
  }
  row.nats /= n * length;
  row.increase /= n;
  if (windows > 1) row.error = std::sqrt(std::max(0.0, squares / n - row.increase * row.increase) / (n - 1));
  return row;
}

}  // namespace

std::vector<ShuffleRow> shuffle_rows(std::span<const double> before, std::span<const double> after, int64_t context, bool in_ranges) {
  const int64_t distances = context - context / 2 + 1;
  std::vector<ShuffleRow> rows;
  int64_t first = 1, last = 1;
  while (first <= distances) {
    rows.push_back(shuffle_row(before, after, context, first, last));
    first = last + 1;
    last = std::min(in_ranges ? 2 * last : first, distances);
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
    if (context < 4) fail("shuffle: the context is {}, expected 4 or more", {context});
    const Ids starts = spread_over(run.tokens, run.tokens.size() - 1, context, options.windows);
    const std::vector<double> before = window_nats(run, starts), after = window_nats(run, starts, options.seed);
    std::vector<Point> points;
    for (const ShuffleRow& row : shuffle_rows(before, after, context, true)) {
      const std::string last = row.distance < row.last_distance ? fmt::format(" - {}", row.last_distance) : "";
      report.table.add_row({run.name, std::to_string(row.distance) + last, row.nats, row.increase, row.error});
      // A dot at the middle of the range on the logarithmic axis.
      const double middle = std::sqrt(static_cast<double>(row.distance) * static_cast<double>(row.last_distance));
      points.push_back({middle, row.increase, row.error});
    }
    add_curves(chart, run.name, {points});
    const auto row_json = [](const ShuffleRow& row) {
      return Json{{"distance", row.distance}, {"nats_per_token", row.nats}, {"increase", row.increase}, {"standard_error", row.error}};
    };
    report.json.push_back(Json{{"run", run.name}, {"context", context}, {"shuffled", context / 2}, {"windows", starts.size()},
        {"distances", values_of(shuffle_rows(before, after, context, false), row_json)}});
    add_note(report, run.name, fmt::format("{} windows of {} tokens, the first {} shuffled", starts.size(), context, context / 2));
  }
  hide_repeats(report.table.columns[0]);
  report.add(chart);
  return report;
}

}  // namespace ricci::apps
