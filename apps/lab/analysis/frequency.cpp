#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "apps/lab/analysis/analyses.h"
#include "apps/run/corpus/corpus.h"
#include "apps/run/corpus/micro_batches.h"
#include "apps/terminal/progress.h"
#include "core/error.h"
#include "models/inference/evaluation.h"

namespace ricci::apps {
namespace {

struct RunBins {
  std::string name;
  uint64_t tokenizer = 0, training = 0;  // hashes: of the tokenizer, of the training text's tokens
  int64_t scored = 0, counted = 0;
  std::vector<FrequencyBin> bins;
};

// How often each token is in the training text; returns how many tokens were counted.
int64_t count_training(const Tokens& train, int64_t max, std::vector<TokenScore>& scores) {
  constexpr int64_t kChunk = 1 << 16;
  const int64_t all = std::min(max, train.size());
  for (int64_t first = 0; first < all; first += kChunk)
    for (const int64_t id : ids_at(train, first, std::min(kChunk, all - first))) ++scores[static_cast<size_t>(id)].training;
  return all;
}

// Windows overlap by half: every token has half a window in front of it, but for those at the start of the text. A model that does not
// score the first tokens of a window needs windows that overlap by as many.
int64_t score_text(const TextRun& run, int64_t max, std::vector<TokenScore>& scores) {
  const int64_t context = run.open.context, skipped = first_scored(run.open.model, context);
  const Windows windows(
      run.tokens, rows_at_once(run.open.model, context), context, std::max<int64_t>(1, std::min(context / 2, context - skipped)));
  int64_t scored = 0;
  Progress progress({.steps = std::min(max, run.tokens.size() - 1), .unit = "token", .out = stderr});
  for (int64_t i = 0; i < windows.batches() && scored < max; ++i) {
    const Batch batch = windows.at(i);
    const std::vector<double> nats = token_nats(run.open.model, micro_batch_of(batch, run.open.device).inputs);
    for (size_t t = 0; t < nats.size(); ++t) {
      if (std::isnan(nats[t]) || static_cast<int64_t>(t) % context < skipped || scored == max) continue;
      TokenScore& score = scores[static_cast<size_t>(batch.targets_bc[t])];
      ++score.scored;
      score.nats += nats[t];
      ++scored;
    }
    progress.update(scored, 0, run.name);
  }
  if (scored == 0) fail("frequency: {} scores no token of {}", {run.name, run.tokens.name()});
  return scored;
}

RunBins analyse(const TextRun& run, const FrequencyOptions& options) {
  std::vector<TokenScore> scores(static_cast<size_t>(run.open.model.config().vocab));
  const Tokens train = training_text(run);
  RunBins result{run.name, run.open.run.tokenizer()->hash(), train.hash(), 0, 0, {}};
  result.counted = count_training(train, options.training_tokens, scores);
  result.scored = score_text(run, options.tokens, scores);
  result.bins = frequency_bins(scores, options.bins);
  return result;
}

std::string range_of(const FrequencyBin& bin) {
  return bin.max == bin.min ? with_commas(bin.max) : with_commas(bin.max) + " - " + with_commas(bin.min);
}

double mean_nats(const RunBins& run) {
  double sum = 0;
  for (const FrequencyBin& bin : run.bins) sum += bin.nats;
  return sum / static_cast<double>(run.bins.size());
}

Chart chart_of(const std::vector<RunBins>& runs, const std::string& title) {
  Chart chart{.title = title,
      .x_name = "bin of equal token mass, from the most frequent tokens to the rarest",
      .whole_x = true,
      .panels = {{"negative log likelihood", "nats per token"}}};
  if (runs.size() > 1) chart.panels.push_back({"the same, more than " + runs[0].name, "nats per token"});
  for (const RunBins& run : runs) {
    std::vector<std::vector<Point>> points(chart.panels.size());
    for (size_t i = 0; i < run.bins.size(); ++i) {
      const auto x = static_cast<double>(i + 1);
      points[0].push_back({x, run.bins[i].nats});
      if (runs.size() > 1) points[1].push_back({x, run.bins[i].nats - runs[0].bins[i].nats});
    }
    add_curves(chart, run.name, points);
  }
  return chart;
}

// The last row is of all bins.
ResultTable table_of(const std::vector<RunBins>& runs) {
  ResultTable table{{{.heading = "bin", .left = true}, {.heading = "times in the training text"}, {.heading = "kinds", .format = ","}}};
  for (const RunBins& run : runs) table.columns.push_back({.heading = run.name, .format = "{:.4f}"});
  for (size_t i = 0; i < runs[0].bins.size(); ++i) {
    std::vector<Value> row{i + 1, range_of(runs[0].bins[i]), runs[0].bins[i].kinds};
    for (const RunBins& run : runs) row.emplace_back(run.bins[i].nats);
    table.add_row(row);
  }
  std::vector<Value> all{"all", "", ""};
  for (const RunBins& run : runs) all.emplace_back(mean_nats(run));
  table.add_row(all);
  return table;
}

Value json_of(const RunBins& run) {
  const auto as_object = [](const FrequencyBin& bin) {
    return Object{{"tokens", bin.tokens}, {"nats_per_token", bin.nats}, {"kinds", bin.kinds}, {"most_in_training", bin.max},
        {"least_in_training", bin.min}};
  };
  return Object{
      {"run", run.name}, {"scored_tokens", run.scored}, {"training_tokens", run.counted}, {"bins", values_of(run.bins, as_object)}};
}

}  // namespace

std::vector<FrequencyBin> frequency_bins(std::span<const TokenScore> scores, int64_t bins) {
  std::vector<size_t> order;
  double left = 0;
  for (size_t id = 0; id < scores.size(); ++id)
    if (scores[id].scored > 0) {
      order.push_back(id);
      left += static_cast<double>(scores[id].scored);
    }
  if (order.empty()) fail("frequency: no token was scored");
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a].training > scores[b].training; });
  const double mass = left / static_cast<double>(bins);
  std::vector<FrequencyBin> all(static_cast<size_t>(bins));
  size_t number = 0;
  for (const size_t id : order) {
    const TokenScore& score = scores[id];
    double rest = static_cast<double>(score.scored);
    const double nats = score.nats / rest;
    while (rest > 1e-9 * mass) {
      FrequencyBin& bin = all[number];
      const bool last = number + 1 == all.size();
      const double share = last ? rest : std::min(rest, mass - bin.tokens);
      if (bin.kinds++ == 0) bin.max = score.training;
      bin.min = score.training;
      bin.tokens += share;
      bin.nats += share * nats;
      rest -= share;
      if (!last && bin.tokens >= mass * (1 - 1e-9)) ++number;
    }
  }
  for (FrequencyBin& bin : all)
    if (bin.tokens > 0) bin.nats /= bin.tokens;
  return all;
}

Report analyse_frequency(const FrequencyOptions& options) {
  std::vector<RunBins> runs;
  for (const TextRun& run : open_text_runs(options.text, text_writers())) runs.push_back(analyse(run, options));
  Report report{.title = fmt::format("likelihood by training frequency, {} bins of equal mass", options.bins),
      .table = table_of(runs),
      .json = values_of(runs, [](const RunBins& run) { return json_of(run); })};
  report.chart = chart_of(runs, report.title);
  report.notes.push_back(fmt::format(
      "{} tokens scored, {} tokens of training text counted; nats per token", with_commas(runs[0].scored), with_commas(runs[0].counted)));
  for (const RunBins& run : runs) {
    if (run.tokenizer != runs[0].tokenizer || run.training != runs[0].training)
      report.notes.push_back(
          fmt::format("{} has another {} than {}: its bins are of its own counts. The columns of counts and kinds tell those of {} alone.",
              run.name, run.tokenizer != runs[0].tokenizer ? "tokenizer" : "training text", runs[0].name, runs[0].name));
    if (run.scored != runs[0].scored)
      report.notes.push_back(
          fmt::format("{} scores {} tokens of the text, so other ones than {}.", run.name, with_commas(run.scored), runs[0].name));
  }
  return report;
}

}  // namespace ricci::apps
