#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "apps/lab/analysis/analyses.h"
#include "autograd/tape.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "models/layers/layers.h"

namespace ricci::apps {
namespace {

using Ids = std::vector<int64_t>;

struct Completion {
  Ids before, next;  // next: the tokens of the next cell; empty: not known
  std::vector<Expected> expected;
};

// The logits behind the last whole cell.
std::vector<double> last_logits(const TextRun& run, const Ids& ids) {
  const NoTape no_tape;
  const Training off(false);
  const Tensor logits_bmv = to(convert(run.open.model.logits({ids_tensor(ids, 1, run.open.device)}), Dtype::f64), Device::cpu);
  const double* const end = logits_bmv.data<double>() + logits_bmv.size();
  return {end - logits_bmv.shape()[2], end};
}

Completion complete(const TextRun& run, const Ids& before, const Ids& next, const CompletionsOptions& options) {
  const int64_t scale = run.open.run.config().model.settings<Coarse>().scale;
  return {before, next, most_probable(last_logits(run, before), options.top ? options.top : scale)};
}

// A given text is read to its last whole cell, and what is behind that is not known as a whole.
Completion complete_given(const TextRun& run, const CompletionsOptions& options) {
  const int64_t scale = run.open.run.config().model.settings<Coarse>().scale;
  Ids ids = run.open.run.tokenizer()->encode(options.given);
  const int64_t max = run.open.context / scale * scale, whole = static_cast<int64_t>(ids.size()) / scale * scale;
  if (whole == 0) fail("--text: {} tokens, fewer than a cell of {}", {ids.size(), scale});
  ids.resize(static_cast<size_t>(whole));
  if (whole > max) ids.erase(ids.begin(), ids.end() - max);
  return complete(run, ids, {}, options);
}

std::vector<Completion> completions_of(const TextRun& run, const CompletionsOptions& options) {
  if (!options.given.empty()) return {complete_given(run, options)};
  const int64_t scale = run.open.run.config().model.settings<Coarse>().scale, whole = run.open.context / scale * scale,
                length = whole + scale;
  const int64_t there = run.tokens.size() / length;
  if (there == 0)
    fail("completions: {} has {} tokens, fewer than a context of {} and a cell of {} more",
        {run.tokens.name(), run.tokens.size(), whole, scale});
  std::vector<Completion> all;
  const int64_t places = std::min(options.places, there);
  for (int64_t i = 0; i < places; ++i) {
    const int64_t first = i * there / places * length;
    all.push_back(complete(run, ids_at(run.tokens, first, whole), ids_at(run.tokens, first + whole, scale), options));
  }
  return all;
}

std::vector<std::string> texts_of(const Tokenizer& tokenizer, const Ids& ids) {
  std::vector<std::string> texts;
  for (const int64_t id : ids) texts.push_back(shown(tokenizer, id));
  return texts;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : " · ") + text;
  return all;
}

// The share of the tokens of the next cells that are among those told.
double found_share(const std::vector<Completion>& all) {
  double found = 0, tokens = 0;
  for (const Completion& each : all)
    for (const int64_t id : each.next) {
      ++tokens;
      found += std::any_of(each.expected.begin(), each.expected.end(), [&](const Expected& e) { return e.id == id; });
    }
  return tokens > 0 ? found / tokens : 0;
}

// A row for each place, with what the text shows of it and what the JSON tells.
ResultTable table_of(const TextRun& run, const std::vector<Completion>& all, const CompletionsOptions& options) {
  const Tokenizer& tokenizer = *run.open.run.tokenizer();
  const int64_t scale = run.open.run.config().model.settings<Coarse>().scale;
  ResultTable table;
  const auto add = [&](Column column, const auto& value) { table.add(std::move(column), all, value); };
  add({.heading = "the text in front", .left = true}, [&](const Completion& each) {
    const auto few = std::min<ptrdiff_t>(options.shown * scale, std::ssize(each.before));
    return "…" + shown(tokenizer, Ids(each.before.end() - few, each.before.end()));
  });
  add({.heading = "the next cell", .left = true, .missing = "?"},
      [&](const Completion& each) { return each.next.empty() ? Value() : Value(joined(texts_of(tokenizer, each.next))); });
  add({.heading = "expected, with probabilities", .left = true}, [&](const Completion& each) {
    std::vector<std::string> texts;
    for (const Expected& e : each.expected) texts.push_back(fmt::format("{} {:.3f}", shown(tokenizer, e.id), e.probability));
    return joined(texts);
  });
  add({.key = "text"}, [&](const Completion& each) { return tokenizer.decode(each.before); });
  add({.key = "next"}, [&](const Completion& each) { return tokenizer.decode(each.next); });
  add({.key = "next_ids"}, &Completion::next);
  add({.key = "expected"}, [&](const Completion& each) {
    return values_of(each.expected, [&](const Expected& e) {
      return Object{{"id", e.id}, {"token", shown(tokenizer, e.id)}, {"probability", e.probability}};
    });
  });
  return table;
}

}  // namespace

std::vector<Expected> most_probable(std::span<const double> logits, int64_t count) {
  Ids ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto logit = [&](int64_t id) { return logits[static_cast<size_t>(id)]; };
  const auto end = ids.begin() + std::min<int64_t>(count, static_cast<int64_t>(ids.size()));
  std::partial_sort(ids.begin(), end, ids.end(), [&](int64_t a, int64_t b) { return logit(a) != logit(b) ? logit(a) > logit(b) : a < b; });
  double sum = 0;
  for (const double l : logits) sum += std::exp(l - logit(ids[0]));
  std::vector<Expected> all;
  for (auto id = ids.begin(); id != end; ++id) all.push_back({*id, std::exp(logit(*id) - logit(ids[0])) / sum});
  return all;
}

Report analyse_completions(const CompletionsOptions& options) {
  const TextRun run = open_text_run(options.run, options.text, {family_of<Coarse>});
  if (run.open.context < run.open.run.config().model.settings<Coarse>().scale)
    fail("--context: {}, fewer tokens than a cell of {}", {run.open.context, run.open.run.config().model.settings<Coarse>().scale});
  const std::vector<Completion> all = completions_of(run, options);
  const int64_t scale = run.open.run.config().model.settings<Coarse>().scale;
  Report report{.title = fmt::format("{}: the most probable tokens of the next cell of {} tokens", run.name, scale),
      .table = table_of(run, all, options)};
  if (options.given.empty())
    report.notes.push_back(
        fmt::format("{:.1f}% of the tokens of the next cells are among those told; a model that knew them all would give each 1/{}",
            100 * found_share(all), scale));
  report.json = Object{{"run", run.name}, {"scale", scale}, {"found", found_share(all)}, {"places", json_of(report.table)}};
  return report;
}

}  // namespace ricci::apps
