#include "apps/lab/analysis/frequency.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "apps/run/corpus/corpus.h"
#include "apps/run/corpus/micro_batches.h"
#include "core/error.h"
#include "models/evaluation/token_nats.h"

namespace ricci::apps {
namespace {

using json = nlohmann::ordered_json;

struct OfRun {
  std::string name;
  uint64_t tokenizer = 0, training = 0;  // hashes: of the tokenizer, of the training text's tokens
  int64_t scored = 0, counted = 0;
  std::vector<FrequencyBin> bins;
};

// How often each token is in the training text; returns how many tokens were counted.
int64_t count_training(const Tokens& train, int64_t most, std::vector<TokenScore>& scores) {
  constexpr int64_t kPiece = 1 << 16;
  const int64_t all = std::min(most, train.size());
  for (int64_t first = 0; first < all; first += kPiece)
    for (const int64_t id : ids_at(train, first, std::min(kPiece, all - first))) ++scores[static_cast<size_t>(id)].training;
  return all;
}

// Windows overlap by half: every token has half a window in front of it, but for those at the start of the text. A model that does not
// score the first tokens of a window needs windows that overlap by as many.
int64_t score_text(const TextRun& run, int64_t most, std::vector<TokenScore>& scores) {
  const int64_t context = run.open.context, skipped = first_scored(run.open.model, context);
  const Windows windows(
      run.tokens, rows_at_once(run.open.model, context), context, std::max<int64_t>(1, std::min(context / 2, context - skipped)));
  int64_t scored = 0;
  Progress progress({.steps = std::min(most, run.tokens.size() - 1), .unit = "token", .out = stderr});
  for (int64_t i = 0; i < windows.batches() && scored < most; ++i) {
    const Batch batch = windows.at(i);
    const std::vector<double> nats = token_nats(run.open.model, micro_batch_of(batch, run.open.device).inputs);
    for (size_t t = 0; t < nats.size(); ++t) {
      if (std::isnan(nats[t]) || static_cast<int64_t>(t) % context < skipped || scored == most) continue;
      TokenScore& score = scores[static_cast<size_t>(batch.targets_bc[t])];
      ++score.scored, score.nats += nats[t], ++scored;
    }
    progress.update(scored, 0, run.name);
  }
  if (scored == 0) fail("frequency: {} scores no token of {}", {run.name, run.tokens.name()});
  return scored;
}

OfRun analyse(const TextRun& run, const FrequencyOptions& options) {
  std::vector<TokenScore> scores(static_cast<size_t>(run.open.model.config().vocab));
  const Tokens train = training_text(run);
  OfRun of{run.name, run.open.run.tokenizer()->hash(), train.hash(), 0, 0, {}};
  of.counted = count_training(train, options.training_tokens, scores);
  of.scored = score_text(run, options.tokens, scores);
  of.bins = frequency_bins(scores, options.bins);
  return of;
}

std::string range_of(const FrequencyBin& bin) {
  return bin.most == bin.least ? with_commas(bin.most) : with_commas(bin.most) + " - " + with_commas(bin.least);
}

Chart chart_of(const std::vector<OfRun>& runs, const std::string& title) {
  Chart chart;
  chart.title = title, chart.x_name = "bin of equal token mass, from the most frequent tokens to the rarest", chart.whole_x = true;
  Panel all{"negative log likelihood", "nats per token", {}}, more{"the same, more than " + runs[0].name, "nats per token", {}};
  for (size_t r = 0; r < runs.size(); ++r) {
    const int colour = static_cast<int>(r);
    Curve curve{.name = runs[r].name, .colour = colour, .dashed = colour >= kColours, .points = {}, .marked = true};
    Curve difference = curve;
    for (size_t i = 0; i < runs[r].bins.size(); ++i) {
      curve.points.push_back({static_cast<double>(i + 1), runs[r].bins[i].nats});
      difference.points.push_back({static_cast<double>(i + 1), runs[r].bins[i].nats - runs[0].bins[i].nats});
    }
    chart.legend.push_back({curve.name, colour, curve.dashed});
    all.curves.push_back(std::move(curve)), more.curves.push_back(std::move(difference));
  }
  chart.panels.push_back(std::move(all));
  if (runs.size() > 1) chart.panels.push_back(std::move(more));
  return chart;
}

std::vector<Cells> table_of(const std::vector<OfRun>& runs) {
  std::vector<Cells> rows = {{"bin", "times in the training text", "kinds"}};
  for (const OfRun& run : runs) rows[0].push_back(run.name);
  for (size_t i = 0; i < runs[0].bins.size(); ++i) {
    Cells& row = rows.emplace_back(Cells{std::to_string(i + 1), range_of(runs[0].bins[i]), with_commas(runs[0].bins[i].kinds)});
    for (const OfRun& run : runs) row.push_back(fmt::format("{:.4f}", run.bins[i].nats));
  }
  Cells& last = rows.emplace_back(Cells{"all", "", ""});
  for (const OfRun& run : runs) {
    double sum = 0;
    for (const FrequencyBin& bin : run.bins) sum += bin.nats;
    last.push_back(fmt::format("{:.4f}", sum / static_cast<double>(run.bins.size())));
  }
  return rows;
}

std::string json_of(const std::vector<OfRun>& runs) {
  json all = json::array();
  for (const OfRun& run : runs) {
    json bins = json::array();
    for (const FrequencyBin& bin : run.bins)
      bins.push_back({{"tokens", bin.tokens}, {"nats_per_token", bin.nats}, {"kinds", bin.kinds}, {"most_in_training", bin.most},
          {"least_in_training", bin.least}});
    all.push_back({{"run", run.name}, {"scored_tokens", run.scored}, {"training_tokens", run.counted}, {"bins", std::move(bins)}});
  }
  return all.dump(1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::vector<FrequencyBin> frequency_bins(std::span<const TokenScore> scores, int64_t bins) {
  std::vector<size_t> order;
  double left = 0;
  for (size_t id = 0; id < scores.size(); ++id)
    if (scores[id].scored > 0) order.push_back(id), left += static_cast<double>(scores[id].scored);
  if (order.empty()) fail("frequency: no token was scored");
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a].training > scores[b].training; });
  const double mass = left / static_cast<double>(bins);
  std::vector<FrequencyBin> all(static_cast<size_t>(bins));
  size_t at = 0;
  for (const size_t id : order) {
    const TokenScore& score = scores[id];
    double rest = static_cast<double>(score.scored);
    const double nats = score.nats / rest;
    while (rest > 1e-9 * mass) {
      FrequencyBin& bin = all[at];
      const bool last = at + 1 == all.size();
      const double share = last ? rest : std::min(rest, mass - bin.tokens);
      if (bin.kinds++ == 0) bin.most = score.training;
      bin.least = score.training, bin.tokens += share, bin.nats += share * nats, rest -= share;
      if (!last && bin.tokens >= mass * (1 - 1e-9)) ++at;
    }
  }
  for (FrequencyBin& bin : all)
    if (bin.tokens > 0) bin.nats /= bin.tokens;
  return all;
}

Report analyse_frequency(const FrequencyOptions& options) {
  std::vector<OfRun> runs;
  for (const TextRun& run : open_text_runs(options.text, text_writers())) runs.push_back(analyse(run, options));
  Report report;
  report.title = fmt::format("likelihood by training frequency, {} bins of equal mass", options.bins);
  report.table = table_of(runs), report.json = json_of(runs), report.chart = chart_of(runs, report.title);
  report.notes.push_back(fmt::format(
      "{} tokens scored, {} tokens of training text counted; nats per token", with_commas(runs[0].scored), with_commas(runs[0].counted)));
  for (const OfRun& run : runs) {
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
