// Statistics of generated texts. Repetition and BLEU show faults that the loss hides.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <utility>

#include "apps/lab/analysis/analyses.h"
#include "apps/terminal/progress.h"

namespace ricci::apps {
namespace {

template <class T> std::map<std::vector<T>, int64_t> grams_of(std::span<const T> units, size_t n) {
  std::map<std::vector<T>, int64_t> grams;
  for (size_t i = 0; i + n <= units.size(); ++i) {
    const auto gram = units.subspan(i, n);
    ++grams[{gram.begin(), gram.end()}];
  }
  return grams;
}

std::vector<Ids> complete(const TextRun& run, const Ids& prompt, const AnalysisOptions& options, uint64_t place) {
  std::vector<Ids> texts(static_cast<size_t>(options.completions));
  Sampling sampling = options.sampling.among(run.tokenizer().vocab_size());
  sampling.seed += place;
  const auto use = [&](int64_t sample, int64_t token, auto) {
    texts[static_cast<size_t>(sample)].push_back(token);
    return true;
  };
  Continuation completions(run.model, options.completions, sampling, run.device, run.context);
  completions.append(prompt);
  completions.draw(options.tokens, use);
  return texts;
}

}  // namespace

Shares repeated_shares(const std::vector<Ids>& texts) {
  Shares means{};
  for (size_t n = 1; n <= means.size(); ++n) {
    for (const Ids& text : texts)
      if (text.size() >= n)
        means[n - 1] += 1 - static_cast<double>(grams_of(std::span(text), n).size()) / static_cast<double>(text.size() - n + 1);
    means[n - 1] /= static_cast<double>(texts.size());
  }
  return means;
}

Words words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

double bleu(const std::vector<std::pair<Words, std::vector<Words>>>& corpus) {
  constexpr size_t kMax = 4;
  double logs = 0, length = 0, reference_length = 0;
  for (size_t n = 1; n <= kMax; ++n) {
    double matched = 0, all = 0;
    for (const auto& [candidate, references] : corpus) {
      std::map<Words, int64_t> most;  // the largest count in any reference
      for (const Words& reference : references)
        for (const auto& [gram, count] : grams_of(std::span(reference), n)) most[gram] = std::max(most[gram], count);
      for (const auto& [gram, count] : grams_of(std::span(candidate), n)) {
        matched += static_cast<double>(std::min(count, most[gram]));
        all += static_cast<double>(count);
      }
    }
    if (matched == 0) return 0;
    logs += std::log(matched / all) / kMax;
  }
  for (const auto& [candidate, references] : corpus) {
    std::pair<int64_t, size_t> nearest{INT64_MAX, 0};  // distance and length; on a tie, the shorter length
    for (const Words& each : references) nearest = std::min(nearest, {std::abs(std::ssize(each) - std::ssize(candidate)), each.size()});
    length += static_cast<double>(candidate.size());
    reference_length += static_cast<double>(nearest.second);
  }
  return 100 * std::exp(logs + (length >= reference_length ? 0 : 1 - reference_length / length));
}

Report analyse_samples(const AnalysisOptions& options) {
  check(options.sampling);
  Report report{
      .title = fmt::format("{} samples of {} tokens after each of {} prompts", options.completions, options.tokens, options.prompts),
      .notes = {fmt::format("prompts: {} tokens; temperature {}, top-k {}, top-p {}, min-p {}", options.prompt,
                    options.sampling.temperature, options.sampling.top_k, options.sampling.top_p, options.sampling.min_p),
          "BLEU compares the words of the text with the completions. 1-grams to 4-grams: the share of repeated ones."},
      .json = Json::array()};
  for (const char* heading : {"run", "BLEU", "1-grams", "2-grams", "3-grams", "4-grams"})
    report.table.columns.push_back({.heading = heading, .format = "{:.3f}", .left = report.table.columns.empty()});
  report.table.columns[1].format = "{:.2f}";
  Chart chart{.x_name = "n", .whole_x = true, .panels = {{"repeated n-grams", "share of all in a sequence"}}};
  const auto add_row = [&](const std::string& name, const Json& bleu, const Shares& shares) {
    report.table.add_row({name, bleu, shares[0], shares[1], shares[2], shares[3]});
  };
  const auto add_curve = [&](const std::string& name, const Shares& shares) {
    add_curves(chart, name, {{{1, shares[0]}, {2, shares[1]}, {3, shares[2]}, {4, shares[3]}}});
  };
  const int64_t length = options.prompt + options.tokens;
  std::vector<Shares> truths;  // the text itself, in a row above its runs
  for (const TextRun& run : open_text_runs(options, text_writers())) {
    const Ids starts = spread_over(run.tokens, run.tokens.size(), length, options.prompts, options.prompts);
    std::vector<Ids> written, truth;
    std::vector<std::pair<Words, std::vector<Words>>> corpus;
    Json texts = Json::array();
    Progress progress({.steps = options.prompts, .unit = "prompt", .out = stderr});
    for (const int64_t start : starts) {
      const Ids prompt = ids_at(run.tokens, {start}, options.prompt);
      const std::vector<Ids> completions = complete(run, prompt, options, truth.size());
      written.insert(written.end(), completions.begin(), completions.end());
      truth.push_back(ids_at(run.tokens, {start + options.prompt}, options.tokens));
      const std::string text = run.tokenizer().decode(truth.back());
      corpus.push_back({words_of(text), {}});
      Json list = Json::array();
      for (const Ids& each : completions) {
        const std::string completion = run.tokenizer().decode(each);
        corpus.back().second.push_back(words_of(completion));
        list.push_back(completion);
      }
      texts.push_back(Json{{"prompt", run.tokenizer().decode(prompt)}, {"text", text}, {"completions", list}});
      progress.update(std::ssize(truth), 0, run.name);
    }
    const double score = bleu(corpus);
    const Shares repeats = repeated_shares(written), of_text = repeated_shares(truth);
    if (truths.empty() || truths.back() != of_text) add_row("the text", {}, truths.emplace_back(of_text));
    add_row(run.name, score, repeats);
    add_curve(run.name, repeats);
    report.json.push_back(Json{
        {"run", run.name}, {"samples", {{"repeated", repeats}}}, {"text", {{"repeated", of_text}}}, {"bleu", score}, {"texts", texts}});
    if (run.context < length)
      add_note(report, run.name,
          fmt::format(
              "the context of {} tokens is shorter than the sequences; when it is full, its later half is read again", run.context));
  }
  add_curve("the text itself", truths[0]);
  report.add(chart);
  return report;
}

}  // namespace ricci::apps
