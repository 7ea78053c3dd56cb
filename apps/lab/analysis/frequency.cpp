#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "apps/lab/analysis/analyses.h"
#include "apps/run/corpus.h"
#include "apps/run/micro_batches.h"
#include "apps/terminal/progress.h"
#include "core/error.h"
#include "models/inference/evaluation.h"

namespace ricci::apps {
namespace {

struct RunBins {
  std::string name;
  uint64_t tokenizer = 0, training = 0;  // hashes of the tokenizer and of the training text's tokens
  int64_t scored = 0, counted = 0;
  std::vector<FrequencyBin> bins;
};

RunBins analyse(const TextRun& run, const FrequencyOptions& options) {
  std::vector<TokenScore> scores(static_cast<size_t>(run.model.config().vocab));
  const Tokens train = training_text(run);
  RunBins result{run.name, run.tokenizer().hash(), train.hash(), 0, std::min(options.training_tokens, train.size()), {}};
  constexpr int64_t kChunk = 1 << 16;
  for (int64_t first = 0; first < result.counted; first += kChunk)
    for (const int64_t id : ids_at(train, first, std::min(kChunk, result.counted - first))) ++scores[static_cast<size_t>(id)].training;

  // Windows overlap by half: every token has half a window before it, but for those at the start of the text. A model that does not
  // score the first tokens of a window needs windows that overlap by these.
  const int64_t context = run.context, skipped = first_scored(run.model, context);
  const Windows windows(
      run.tokens, rows_at_once(run.model, context), context, std::max<int64_t>(1, std::min(context / 2, context - skipped)));
  Progress progress({.steps = std::min(options.tokens, run.tokens.size() - 1), .unit = "token", .out = stderr});
  for (int64_t i = 0; i < windows.batches() && result.scored < options.tokens; ++i) {
    const Batch batch = windows.at(i);
    const std::vector<double> nats = token_nats(run.model, micro_batch_of(batch, run.device).inputs);
    for (size_t t = 0; t < nats.size(); ++t) {
      if (std::isnan(nats[t]) || static_cast<int64_t>(t) % context < skipped || result.scored == options.tokens) continue;
      TokenScore& score = scores[static_cast<size_t>(batch.targets_bc[t])];
      ++score.scored;
      score.nats += nats[t];
      ++result.scored;
    }
    progress.update(result.scored, 0, run.name);
  }
  if (result.scored == 0) fail("frequency: {} scores no token of {}", {run.name, run.tokens.name()});
  result.bins = frequency_bins(scores, options.bins);
  return result;
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

// A row for each bin, and one for the mean over all of them.
ResultTable table_of(const std::vector<RunBins>& runs) {
  ResultTable table;
  const auto add = [&](Column column, const std::vector<FrequencyBin>& bins, const auto& value, Json last) {
    table.add(std::move(column), bins, value);
    table.columns.back().values.push_back(std::move(last));
  };
  const std::vector<FrequencyBin>& bins = runs[0].bins;
  add(
      {.heading = "bin", .left = true}, bins, [&](const FrequencyBin& bin) { return &bin - bins.data() + 1; }, "all");
  add(
      {.heading = "in training"}, bins,
      [](const FrequencyBin& bin) { return (bin.max == bin.min ? "" : with_commas(bin.max) + " - ") + with_commas(bin.min); }, "");
  add({.heading = "kinds", .format = ","}, bins, &FrequencyBin::kinds, "");
  for (const RunBins& run : runs) {
    const auto sum = [](double nats, const FrequencyBin& bin) { return nats + bin.nats; };
    const double all = std::accumulate(run.bins.begin(), run.bins.end(), 0.0, sum);
    add({.heading = run.name, .format = "{:.4f}"}, run.bins, &FrequencyBin::nats, all / static_cast<double>(run.bins.size()));
  }
  return table;
}

Json bins_json(const RunBins& run) {
  ResultTable bins;
  bins.add({.key = "tokens"}, run.bins, &FrequencyBin::tokens);
  bins.add({.key = "nats_per_token"}, run.bins, &FrequencyBin::nats);
  bins.add({.key = "kinds"}, run.bins, &FrequencyBin::kinds);
  bins.add({.key = "most_in_training"}, run.bins, &FrequencyBin::max);
  bins.add({.key = "least_in_training"}, run.bins, &FrequencyBin::min);
  return {{"run", run.name}, {"scored_tokens", run.scored}, {"training_tokens", run.counted}, {"bins", json_of(bins)}};
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
      .json = values_of(runs, bins_json)};
  report.chart = chart_of(runs, report.title);
  report.notes.push_back(fmt::format(
      "{} tokens scored, {} tokens of training text counted; nats per token", with_commas(runs[0].scored), with_commas(runs[0].counted)));
  for (const RunBins& run : runs) {
    if (run.tokenizer != runs[0].tokenizer || run.training != runs[0].training)
      report.notes.push_back(
          fmt::format("{} has another {} than {}: its bins are of its own counts. The columns of counts and kinds are for {} alone.",
              run.name, run.tokenizer != runs[0].tokenizer ? "tokenizer" : "training text", runs[0].name, runs[0].name));
    if (run.scored != runs[0].scored)
      report.notes.push_back(
          fmt::format("{} scores {} tokens of the text, so other ones than {}.", run.name, with_commas(run.scored), runs[0].name));
  }
  return report;
}

}  // namespace ricci::apps
