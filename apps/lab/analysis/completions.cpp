#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/lab/analysis/analyses.h"
#include "apps/lab/report/statistics.h"
#include "autograd/tape.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "models/layers/layers.h"

namespace ricci::apps {
namespace {

using Ids = std::vector<int64_t>;

struct Completion {
  Ids before, next;  // the tokens up to here, and of the next cell if they are known
  std::vector<Expected> expected;
};

// `before` ends with a whole cell.
Completion complete(const TextRun& run, const Ids& before, const Ids& next, int64_t count) {
  const NoTape no_tape;
  const Training off(false);
  const Tensor logits_bmv = to(convert(run.model.logits({ids_tensor(before, 1, run.device)}), Dtype::f64), Device::cpu);
  const std::span logits(logits_bmv.data<double>(), static_cast<size_t>(logits_bmv.size()));
  return {before, next, most_probable(logits.last(static_cast<size_t>(logits_bmv.shape()[2])), count)};
}

std::vector<Completion> completions_of(const TextRun& run, const CompletionsOptions& options, int64_t scale) {
  const int64_t whole = run.context / scale * scale, count = options.top.value_or(scale);
  if (!options.given.empty()) {  // it is read to its last whole cell: what follows is not known as a whole
    Ids ids = run.tokenizer().encode_start(options.given);
    if (std::ssize(ids) < scale) fail("--text: {} tokens, fewer than a cell of {}", {ids.size(), scale});
    ids.resize(ids.size() / static_cast<size_t>(scale) * static_cast<size_t>(scale));
    return {complete(run, {ids.end() - std::min<ptrdiff_t>(std::ssize(ids), whole), ids.end()}, {}, count)};
  }
  const std::vector<int64_t> starts = spread_over(run.tokens.size(), whole + scale, options.places);
  if (starts.empty())
    fail("completions: {} has {} tokens, fewer than a context of {} and a cell of {} more",
        {run.tokens.name(), run.tokens.size(), whole, scale});
  std::vector<Completion> all;
  for (const int64_t start : starts)
    all.push_back(complete(run, ids_at(run.tokens, start, whole), ids_at(run.tokens, start + whole, scale), count));
  return all;
}

// Texts with a dot between them.
template <class List, class Text> std::string joined(const List& all, const Text& text) {
  std::string line;
  for (const auto& each : all) line += (line.empty() ? "" : " · ") + text(each);
  return line;
}

// The share of the tokens of the next cells that are in the lists.
double found_share(const std::vector<Completion>& all) {
  double found = 0, tokens = 0;
  for (const Completion& each : all)
    for (const int64_t id : each.next) {
      ++tokens;
      found += std::any_of(each.expected.begin(), each.expected.end(), [&](const Expected& e) { return e.id == id; });
    }
  return tokens > 0 ? found / tokens : 0;
}

// A row for each place, with the columns of the text and of the JSON.
ResultTable table_of(const TextRun& run, const std::vector<Completion>& all, int64_t tokens_shown) {
  const Tokenizer& tokenizer = run.tokenizer();
  const auto token = [&](int64_t id) { return shown(tokenizer, {id}, true); };
  ResultTable table;
  const auto add = [&](Column column, const auto& value) { table.add(std::move(column), all, value); };
  add({.heading = "the text in front", .left = true}, [&](const Completion& each) {
    const Ids last(each.before.end() - std::min<ptrdiff_t>(tokens_shown, std::ssize(each.before)), each.before.end());
    return "…" + shown(tokenizer, last, last.size() == 1);
  });
  add({.heading = "the next cell", .left = true, .missing = "?"},
      [&](const Completion& each) { return each.next.empty() ? Json() : Json(joined(each.next, token)); });
  add({.heading = "expected, with probabilities", .left = true}, [&](const Completion& each) {
    return joined(each.expected, [&](const Expected& e) { return fmt::format("{} {:.3f}", token(e.id), e.probability); });
  });
  add({.key = "text"}, [&](const Completion& each) { return tokenizer.decode(each.before); });
  add({.key = "next"}, [&](const Completion& each) { return tokenizer.decode(each.next); });
  add({.key = "next_ids"}, &Completion::next);
  add({.key = "expected"}, [&](const Completion& each) {
    return values_of(each.expected, [&](const Expected& e) {
      return Json{{"id", e.id}, {"token", token(e.id)}, {"probability", e.probability}};
    });
  });
  return table;
}

Report next_cells_of(const TextRun& run, const CompletionsOptions& options) {
  const int64_t scale = run.config().model.settings<Coarse>().scale;
  if (run.context < scale) fail("--context: {}, fewer tokens than a cell of {}", {run.context, scale});
  const std::vector<Completion> all = completions_of(run, options, scale);
  Report report{.title = fmt::format("{}: the most probable tokens of the next cell of {} tokens", run.name, scale),
      .table = table_of(run, all, options.shown * scale)};
  if (options.given.empty())
    report.notes.push_back(
        fmt::format("{:.1f}% of the tokens of the next cells are among those listed; a model that knew them all would give each 1/{}",
            100 * found_share(all), scale));
  report.json = {{"run", run.name}, {"scale", scale}, {"found", found_share(all)}, {"places", json_of(report.table)}};
  return report;
}

}  // namespace

std::vector<Expected> most_probable(std::span<const double> logits, int64_t count) {
  std::vector<Expected> all;
  for (const double logit : logits) all.push_back({std::ssize(all), logit});
  all = best_of(std::move(all), count,
      [](const Expected& a, const Expected& b) { return a.probability != b.probability ? a.probability > b.probability : a.id < b.id; });
  double sum = 0;
  const double max = all[0].probability;
  for (const double logit : logits) sum += std::exp(logit - max);
  for (Expected& each : all) each.probability = std::exp(each.probability - max) / sum;
  return all;
}

Report analyse_completions(const CompletionsOptions& options) {
  std::vector<std::pair<std::string, Report>> reports;
  for (const TextRun& run : open_text_runs(options.text, {family_of<Coarse>})) reports.emplace_back(run.name, next_cells_of(run, options));
  return stacked("the most probable tokens of the next cell", reports);
}

}  // namespace ricci::apps
