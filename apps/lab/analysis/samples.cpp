#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "apps/lab/analysis/analyses.h"
#include "apps/lab/analysis/kneser_ney.h"
#include "apps/lab/analysis/sample_metrics.h"
#include "apps/run/corpus/corpus.h"
#include "apps/terminal/progress.h"
#include "core/cpu/clock.h"
#include "core/error.h"
#include "models/inference/evaluation.h"

namespace ricci::apps {
namespace {

using Ids = std::vector<int64_t>;

constexpr size_t kOrder = 4;  // of the n-gram model

// A prompt, the text behind it, and what the model writes there.
struct Place {
  Ids prompt, truth;
  std::vector<Ids> completions;
};

struct Samples {
  std::string name;
  std::vector<Place> places;
  std::vector<double> seconds;  // of the sequences that were written alone
  double repeats[kOrder] = {}, true_repeats[kOrder] = {}, bleu = 0;
  double ngram_perplexity = 0, true_ngram_perplexity = 0;
  std::optional<double> judge_perplexity = {}, true_judge_perplexity = {};
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::vector<Ids> written(const TextRun& run, const Ids& prompt, int64_t samples, const SamplesOptions& options, uint64_t seed) {
  std::vector<Ids> texts(static_cast<size_t>(samples));
  Sampling sampling = options.sampling;
  sampling.seed = seed;
  const auto use = [&](int64_t sample, int64_t token) {
    texts[static_cast<size_t>(sample)].push_back(token);
    return true;
  };
  generate_samples(run.open.model, prompt, samples, options.tokens, sampling, run.open.device, use, run.open.context);
  return texts;
}

// Places that are spread over the text.
std::vector<Place> places_of(const TextRun& run, const SamplesOptions& options) {
  const int64_t length = options.prompt + options.tokens, there = run.tokens.size() / length;
  if (there < options.prompts)
    fail("samples: {} has {} tokens, expected {} for {} prompts of {} with {} behind each",
        {run.tokens.name(), run.tokens.size(), options.prompts * length, options.prompts, options.prompt, options.tokens});
  std::vector<Place> places;
  for (int64_t i = 0; i < options.prompts; ++i) {
    const int64_t first = i * there / options.prompts * length;
    places.push_back({ids_at(run.tokens, first, options.prompt), ids_at(run.tokens, first + options.prompt, options.tokens), {}});
  }
  return places;
}

Ids joined(const Ids& a, const Ids& b) {
  Ids both = a;
  both.insert(both.end(), b.begin(), b.end());
  return both;
}

// The mean over sequences of value(prompt, continuation), of what is written and of what stands in the text.
template <class Get> std::pair<double, double> means(const Samples& run, const Get& value) {
  double written = 0, truth = 0, count = 0;
  for (const Place& place : run.places) {
    for (const Ids& each : place.completions) written += value(place.prompt, each);
    count += static_cast<double>(place.completions.size());
    truth += value(place.prompt, place.truth);
  }
  return {written / count, truth / static_cast<double>(run.places.size())};
}

void measure_texts(Samples& samples, const TextRun& run) {
  for (size_t n = 1; n <= kOrder; ++n)
    std::tie(samples.repeats[n - 1], samples.true_repeats[n - 1]) =
        means(samples, [&](const Ids&, const Ids& text) { return repeated_share(text, n); });
  const Tokenizer& tokenizer = *run.open.run.tokenizer();
  Bleu bleu;
  for (const Place& place : samples.places) {
    std::vector<std::vector<std::string>> references;
    for (const Ids& each : place.completions) references.push_back(words_of(tokenizer.decode(each)));
    bleu.add(words_of(tokenizer.decode(place.truth)), references);
  }
  samples.bleu = bleu.value();
}

// The 4-gram models, one for each training text in the tokens of a tokenizer: runs that share both share the model.
class NgramModels {
 public:
  const KneserNey& model_of(const TextRun& run, const Tokens& train, int64_t max) {
    const std::pair key(run.open.run.tokenizer()->hash(), train.hash());
    auto found = models_.find(key);
    if (found == models_.end())
      found = models_.emplace(key, KneserNey(ids_at(train, 0, std::min(max, train.size())), kOrder, run.open.model.config().vocab)).first;
    return found->second;
  }

 private:
  std::map<std::pair<uint64_t, uint64_t>, KneserNey> models_;
};

void measure_ngrams(Samples& samples, const KneserNey& model) {
  const auto [nats, true_nats] = means(samples,
      [&](const Ids& prompt, const Ids& text) { return model.nats_per_token(joined(prompt, text), static_cast<int64_t>(prompt.size())); });
  samples.ngram_perplexity = std::exp(nats);
  samples.true_ngram_perplexity = std::exp(true_nats);
}

// Nats per token of the judge, whose tokenizer may be another one: then the texts are written out and read again.
void judge(Samples& samples, const TextRun& run, const OpenModel& judge) {
  const Tokenizer &writer = *run.open.run.tokenizer(), &reader = *judge.run.tokenizer();
  const bool same = writer.hash() == reader.hash();
  const auto read = [&](const Ids& ids) { return same ? ids : reader.encode(writer.decode(ids)); };
  const auto [nats, true_nats] = means(samples, [&](const Ids& prompt, const Ids& text) {
    const Ids before = read(prompt), behind = read(text);
    const auto first = std::max<int64_t>(1, static_cast<int64_t>(before.size()));
    const std::vector<double> all = nats_of_text(judge.model, joined(before, behind), first, judge.context, judge.device);
    return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(std::max<size_t>(1, all.size()));
  });
  samples.judge_perplexity = std::exp(nats);
  samples.true_judge_perplexity = std::exp(true_nats);
}

// The runs take turns, so that what else the machine does falls on all of them.
std::vector<Samples> write_all(const std::vector<TextRun>& runs, const SamplesOptions& options) {
  std::vector<Samples> all;
  for (const TextRun& run : runs) all.push_back({.name = run.name, .places = places_of(run, options), .seconds = {}});
  const auto count = static_cast<int64_t>(runs.size());
  Progress progress({.steps = count * (options.prompts + options.timed), .unit = "prompt", .out = stderr});
  int64_t done = 0;
  for (int64_t i = 0; i < options.prompts; ++i)
    for (size_t r = 0; r < runs.size(); ++r) {
      Place& place = all[r].places[static_cast<size_t>(i)];
      place.completions = written(runs[r], place.prompt, options.completions, options, options.sampling.seed + static_cast<uint64_t>(i));
      progress.update(++done, 0, all[r].name);
    }
  for (int64_t i = 0; i < options.timed; ++i)
    for (size_t r = 0; r < runs.size(); ++r) {
      const double started = seconds_now();
      written(runs[r], all[r].places[0].prompt, 1, options, options.sampling.seed);
      all[r].seconds.push_back(seconds_now() - started);
      progress.update(++done, 0, all[r].name);
    }
  return all;
}

// What is told of what a run wrote, and of the text itself.
void add_row(ResultTable& table, const std::string& name, const double* repeats, Value bleu, double ngram,
    const std::optional<double>& judge, Value seconds) {
  table.add_row({name, ngram, judge, std::move(bleu), repeats[0], repeats[1], repeats[2], repeats[3], std::move(seconds)});
}

ResultTable table_of(const std::vector<Samples>& runs) {
  ResultTable table;
  for (const char* heading :
      {"run", "4-gram perplexity", "judge's perplexity", "BLEU", "repeated 1-grams", "2-grams", "3-grams", "4-grams", "s/sequence"})
    table.columns.push_back({.heading = heading, .format = table.columns.size() < 4 ? "{:.2f}" : "{:.3f}", .left = table.columns.empty()});
  for (const Samples& run : runs) {
    add_row(table, run.name, run.repeats, run.bleu, run.ngram_perplexity, run.judge_perplexity,
        run.seconds.empty() ? Value() : Value(median(run.seconds)));
    add_row(table, "  the text itself", run.true_repeats, {}, run.true_ngram_perplexity, run.true_judge_perplexity, {});
  }
  return table;
}

Value json_of(const double* repeats, double ngram, const std::optional<double>& judge) {
  return Object{{"repeated", std::vector<double>(repeats, repeats + kOrder)}, {"ngram_perplexity", ngram},
      {"judge_perplexity", judge ? Value(*judge) : Value(nullptr)}};
}

Value json_of(const Samples& run, const Tokenizer& tokenizer) {
  const auto text_of_ids = [&](const Ids& ids) { return tokenizer.decode(ids); };
  const auto as_object = [&](const Place& place) {
    return Object{{"prompt", text_of_ids(place.prompt)}, {"text", text_of_ids(place.truth)},
        {"completions", values_of(place.completions, text_of_ids)}};
  };
  return Object{{"run", run.name}, {"samples", json_of(run.repeats, run.ngram_perplexity, run.judge_perplexity)},
      {"text", json_of(run.true_repeats, run.true_ngram_perplexity, run.true_judge_perplexity)}, {"bleu", run.bleu},
      {"seconds", run.seconds}, {"texts", values_of(run.places, as_object)}};
}

Chart chart_of(const std::vector<Samples>& runs, const std::string& title) {
  Chart chart{.title = title, .x_name = "n", .whole_x = true, .panels = {{"repeated n-grams", "share of all in a sequence"}}};
  const auto add = [&](const std::string& name, const double* repeats) {
    std::vector<Point> points;
    for (size_t n = 0; n < kOrder; ++n) points.push_back({static_cast<double>(n + 1), repeats[n]});
    add_curves(chart, name, {points});
  };
  for (const Samples& run : runs) add(run.name, run.repeats);
  add("the text itself", runs[0].true_repeats);
  return chart;
}

}  // namespace

Report analyse_samples(const SamplesOptions& options) {
  check(options.sampling);
  ModelOptions of_judge = options.text.model;
  of_judge.checkpoint = "last";
  of_judge.context = 0;
  std::optional<OpenModel> judge_model;
  if (!options.judge.empty()) judge_model.emplace(open_language_model(options.judge, of_judge, text_writers()));
  const std::vector<TextRun> runs = open_text_runs(options.text, text_writers());
  std::vector<Tokens> training;  // opened before anything is written, so that a missing text is told first
  for (const TextRun& run : runs) training.push_back(training_text(run));
  std::vector<Samples> measured = write_all(runs, options);
  NgramModels ngrams;
  for (size_t r = 0; r < runs.size(); ++r) {
    measure_texts(measured[r], runs[r]);
    measure_ngrams(measured[r], ngrams.model_of(runs[r], training[r], options.training_tokens));
    if (judge_model) judge(measured[r], runs[r], *judge_model);
  }
  Value::List json;
  for (size_t r = 0; r < runs.size(); ++r) json.push_back(json_of(measured[r], *runs[r].open.run.tokenizer()));
  Report report{
      .title = fmt::format("{} samples of {} tokens behind each of {} prompts", options.completions, options.tokens, options.prompts),
      .table = table_of(measured),
      .json = json};
  report.chart = chart_of(measured, report.title);
  report.notes = {fmt::format("prompts: {} tokens; temperature {}, top-k {}, top-p {}", options.prompt, options.sampling.temperature,
                      options.sampling.top_k, options.sampling.top_p),
      "4-gram: Kneser-Ney, of the tokens of the run's training text. BLEU: of words, the text itself against the completions.",
      "repeated: in the tokens that were written. s/sequence: one at a time with a cache, the prompt read, median."};
  for (const TextRun& run : runs)
    if (run.open.context < options.prompt + options.tokens)
      report.notes.push_back(
          fmt::format("{}: its context of {} tokens is shorter than the sequences; when it is full, its later half is read again.",
              run.name, run.open.context));
  if (judge_model)
    report.notes.push_back("judge: " + options.judge + ", its last checkpoint at its own context, per token of its own tokenizer.");
  return report;
}

}  // namespace ricci::apps
