#include <fmt/format.h>

#include <cmath>
#include <map>
#include <numeric>
#include <sstream>

#include "apps/lab/analysis/analyses.h"
#include "apps/lab/analysis/sample_metrics.h"
#include "apps/lab/report/statistics.h"
#include "apps/terminal/progress.h"
#include "core/cpu/available.h"
#include "core/error.h"
#include "data/text/utf8.h"
#include "models/inference/evaluation.h"

namespace ricci::apps {
namespace {

using Ids = std::vector<int64_t>;

constexpr size_t kOrder = 4;  // longest n-grams

// A prompt, the text after it, and what the model writes there.
struct Place {
  Ids prompt, truth;
  std::vector<Ids> completions = {};
};

// Means over sequences.
struct TextNumbers {
  double repeats[kOrder] = {}, ngram_perplexity = 0;
  std::optional<double> judge_perplexity = {};
  bool operator==(const TextNumbers&) const = default;
};

struct Samples {
  std::string name;
  std::vector<Place> places = {};
  std::vector<double> seconds = {};      // for each sequence that was written alone
  TextNumbers written = {}, truth = {};  // the model's continuations, and the text's own
  double bleu = 0;
};

std::vector<Ids> write(const TextRun& run, const Ids& prompt, int64_t samples, const SamplesOptions& options, int64_t place) {
  std::vector<Ids> texts(static_cast<size_t>(samples));
  Sampling sampling = options.sampling;
  sampling.seed += static_cast<uint64_t>(place);
  const auto use = [&](int64_t sample, int64_t token, auto) {
    texts[static_cast<size_t>(sample)].push_back(token);
    return true;
  };
  generate_samples(run.model, prompt, samples, options.tokens, sampling.among(run.tokenizer().vocab_size()), run.device, use, run.context);
  return texts;
}

Ids joined(const Ids& a, const Ids& b) {
  Ids both = a;
  both.insert(both.end(), b.begin(), b.end());
  return both;
}

using Continuations = std::vector<std::pair<Ids, Ids>>;  // prompts and the texts after them

// The tokenizer of the judge may be another one: then the texts are written out and read again.
TextNumbers measure(const Continuations& texts, const Tokenizer& writer, const KneserNey& ngrams, const OpenModel* judge) {
  const auto mean = [&](const auto& value) {
    double sum = 0;
    for (const auto& [prompt, text] : texts) sum += value(prompt, text);
    return sum / static_cast<double>(texts.size());
  };
  TextNumbers metrics;
  for (size_t n = 1; n <= kOrder; ++n) metrics.repeats[n - 1] = mean([&](const Ids&, const Ids& text) { return repeated_share(text, n); });
  metrics.ngram_perplexity =
      std::exp(mean([&](const Ids& prompt, const Ids& text) { return ngrams.nats_per_token(joined(prompt, text), std::ssize(prompt)); }));
  if (!judge) return metrics;
  const Tokenizer& reader = *judge->run.tokenizer();
  const bool same = writer.hash() == reader.hash();
  const auto read = [&](const Ids& ids) { return same ? ids : reader.encode(writer.decode(ids)); };
  metrics.judge_perplexity = std::exp(mean([&](const Ids& prompt, const Ids& text) {
    const Ids before = read(prompt);
    const std::vector<double> nats =
        nats_of_text(judge->model, joined(before, read(text)), std::max<int64_t>(1, std::ssize(before)), judge->context, judge->device);
    return std::accumulate(nats.begin(), nats.end(), 0.0) / static_cast<double>(std::max<size_t>(1, nats.size()));
  }));
  return metrics;
}

void measure(Samples& samples, const Tokenizer& tokenizer, const KneserNey& ngrams, const OpenModel* judge) {
  Continuations written, truth;
  Bleu bleu;
  for (const Place& place : samples.places) {
    std::vector<std::vector<std::string>> references;
    for (const Ids& each : place.completions) {
      written.emplace_back(place.prompt, each);
      references.push_back(words_of(tokenizer.decode(each)));
    }
    truth.emplace_back(place.prompt, place.truth);
    bleu.add(words_of(tokenizer.decode(place.truth)), references);
  }
  samples.written = measure(written, tokenizer, ngrams, judge);
  samples.truth = measure(truth, tokenizer, ngrams, judge);
  samples.bleu = bleu.value();
}

// The runs take turns, so that background load affects all equally.
std::vector<Samples> write_all(const std::vector<TextRun>& runs, const SamplesOptions& options) {
  const int64_t length = options.prompt + options.tokens;
  std::vector<Samples> all;
  for (const TextRun& run : runs) {
    Samples& samples = all.emplace_back(Samples{run.name});
    for (const int64_t start : spread_over(run.tokens.size(), length, options.prompts))
      samples.places.push_back({ids_at(run.tokens, start, options.prompt), ids_at(run.tokens, start + options.prompt, options.tokens)});
    if (std::ssize(samples.places) < options.prompts)
      fail("samples: {} has {} tokens, expected {} for {} prompts of {} with {} after each",
          {run.tokens.name(), run.tokens.size(), options.prompts * length, options.prompts, options.prompt, options.tokens});
  }
  Progress progress({.steps = std::ssize(runs) * (options.prompts + options.timed), .unit = "prompt", .out = stderr});
  int64_t done = 0;
  for (int64_t i = 0; i < options.prompts + options.timed; ++i)
    for (size_t r = 0; r < runs.size(); ++r) {
      const bool is_timed = i >= options.prompts;
      Place& place = all[r].places[is_timed ? 0 : static_cast<size_t>(i)];
      const double started = seconds_now();
      std::vector<Ids> texts = write(runs[r], place.prompt, is_timed ? 1 : options.completions, options, is_timed ? 0 : i);
      if (is_timed) all[r].seconds.push_back(seconds_now() - started);
      else place.completions = std::move(texts);
      progress.update(++done, 0, all[r].name);
    }
  return all;
}

// A row for what each run wrote, and one for the text itself: once where its numbers are the same for all runs.
ResultTable table_of(const std::vector<Samples>& runs) {
  ResultTable table;
  for (const char* heading : {"run", "4-gram", "judge", "BLEU", "1-grams", "2-grams", "3-grams", "4-grams", "s/text"})
    table.columns.push_back({.heading = heading, .format = table.columns.size() < 4 ? "{:.2f}" : "{:.3f}", .left = table.columns.empty()});
  const auto add = [&](const std::string& name, const TextNumbers& m, const Json& bleu, const Json& seconds) {
    table.add_row(
        {name, m.ngram_perplexity, cell_of(m.judge_perplexity), bleu, m.repeats[0], m.repeats[1], m.repeats[2], m.repeats[3], seconds});
  };
  for (size_t i = 0; i < runs.size(); ++i) {
    const Samples& run = runs[i];
    add(run.name, run.written, run.bleu, run.seconds.empty() ? Json() : Json(spread_of(run.seconds).median));
    const bool is_last = i + 1 == runs.size();
    if (is_last || !(runs[i + 1].truth == run.truth))
      add(is_last && runs[0].truth == run.truth ? "the text" : "  the text", run.truth, {}, {});
  }
  return table;
}

// Line by line, so that nothing moves the cursor of a terminal.
std::string lines_of(const Tokenizer& tokenizer, const Ids& ids) {
  std::istringstream text(replace_invalid_utf8(tokenizer.decode(ids)));
  std::string lines;
  for (std::string line; std::getline(text, line);) lines += (lines.empty() ? "" : "\n") + one_line(line, SIZE_MAX);
  return lines;
}

// The first prompts, each with its continuation in the text and the first one of every run. Prompts of runs whose tokenizers or texts
// differ are not the same: then each run has passages of its own.
std::vector<Passage> passages_of(const std::vector<Samples>& all, const std::vector<TextRun>& runs, int64_t count) {
  std::vector<Passage> passages;
  for (size_t i = 0; i < all[0].places.size() && static_cast<int64_t>(i) < count; ++i)
    for (size_t r = 0; r < all.size(); ++r) {
      const Tokenizer& tokenizer = runs[r].tokenizer();
      const Place& place = all[r].places[i];
      const std::string heading = fmt::format("prompt {}: {}", i + 1, shown(tokenizer, place.prompt, false));
      if (passages.empty() || passages.back().heading != heading)
        passages.push_back({heading, {{"the text itself", lines_of(tokenizer, place.truth)}}});
      passages.back().texts.emplace_back(all[r].name, lines_of(tokenizer, place.completions[0]));
    }
  return passages;
}

Json as_json(const Samples& run, const Tokenizer& tokenizer) {
  const auto text = [&](const Ids& ids) { return tokenizer.decode(ids); };
  const auto metrics = [](const TextNumbers& m) {
    Json numbers{{"repeated", m.repeats}, {"ngram_perplexity", m.ngram_perplexity}};
    if (m.judge_perplexity) numbers["judge_perplexity"] = *m.judge_perplexity;
    return numbers;
  };
  ResultTable texts;
  texts.add({.key = "prompt"}, run.places, [&](const Place& place) { return text(place.prompt); });
  texts.add({.key = "text"}, run.places, [&](const Place& place) { return text(place.truth); });
  texts.add({.key = "completions"}, run.places, [&](const Place& place) { return values_of(place.completions, text); });
  return {{"run", run.name}, {"samples", metrics(run.written)}, {"text", metrics(run.truth)}, {"bleu", run.bleu}, {"seconds", run.seconds},
      {"texts", json_of(texts)}};
}

Chart chart_of(const std::vector<Samples>& runs, const std::string& title) {
  Chart chart{.title = title, .x_name = "n", .whole_x = true, .panels = {{"repeated n-grams", "share of all in a sequence"}}};
  const auto add = [&](const std::string& name, const TextNumbers& metrics) {
    std::vector<Point> points;
    for (const double share : metrics.repeats) points.push_back({static_cast<double>(points.size() + 1), share});
    add_curves(chart, name, {points});
  };
  for (const Samples& run : runs) add(run.name, run.written);
  add("the text itself", runs[0].truth);
  return chart;
}

std::vector<std::string> explanations(const SamplesOptions& options) {
  return {fmt::format("prompts: {} tokens; temperature {}, top-k {}, top-p {}, min-p {}", options.prompt, options.sampling.temperature,
              options.sampling.top_k, options.sampling.top_p, options.sampling.min_p),
      "4-gram: perplexity under a Kneser-Ney model of the run's training text. BLEU: of words, the text itself against the completions.",
      "1-grams to 4-grams: the share of repeated ones in the tokens that were written. s/text: the seconds of one text, median."};
}

}  // namespace

Report analyse_samples(const SamplesOptions& options) {
  check(options.sampling);
  ModelOptions of_judge = options.text.model;
  of_judge.checkpoint = "last";
  of_judge.context = 0;
  std::optional<OpenModel> judge;
  if (!options.judge.empty()) judge.emplace(open_language_model(options.judge, of_judge, text_writers()));
  const std::vector<TextRun> runs = open_text_runs(options.text, text_writers());
  std::vector<Tokens> training;  // opened before anything is written, so that a missing text is reported first
  for (const TextRun& run : runs) training.push_back(training_text(run));
  std::vector<Samples> all = write_all(runs, options);
  std::map<std::pair<uint64_t, uint64_t>, KneserNey> ngrams;  // runs that share tokenizer and training text share the model
  Report report{
      .title = fmt::format("{} samples of {} tokens after each of {} prompts", options.completions, options.tokens, options.prompts)};
  report.notes = explanations(options);
  Json json = Json::array();
  for (size_t r = 0; r < runs.size(); ++r) {
    const Tokenizer& tokenizer = runs[r].tokenizer();
    const std::pair key(tokenizer.hash(), training[r].hash());
    if (!ngrams.contains(key)) {
      const Ids text = ids_at(training[r], 0, std::min(options.training_tokens, training[r].size()));
      ngrams.emplace(key, KneserNey(text, kOrder, runs[r].model.config().vocab));
    }
    measure(all[r], tokenizer, ngrams.at(key), judge ? &*judge : nullptr);
    json.push_back(as_json(all[r], tokenizer));
    if (runs[r].context < options.prompt + options.tokens)
      report.notes.push_back(
          fmt::format("{}: its context of {} tokens is shorter than the sequences; when it is full, its later half is read again.",
              runs[r].name, runs[r].context));
  }
  if (judge)
    report.notes.push_back(
        "judge: perplexity under " + options.judge + ", its last checkpoint at its own context, per token of its own tokenizer.");
  report.table = table_of(all);
  report.passages = passages_of(all, runs, options.shown);
  report.json = json;
  report.chart = chart_of(all, report.title);
  return report;
}

}  // namespace ricci::apps
