#include "apps/lab/analysis/text_runs.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "apps/lab/plot/records.h"
#include "apps/run/corpus.h"
#include "apps/terminal/progress.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "data/text/utf8.h"
#include "models/inference/evaluation.h"

namespace ricci::apps {
namespace {

std::string list_of(const std::vector<Family>& families) {
  std::string list;
  for (const Family family : families) list += (list.empty() ? "" : ", ") + std::string(name_of(family));
  return list;
}

// An error is reported before the weights are read.
RunFolder open_folder(const std::string& path, const std::vector<Family>& families) {
  RunFolder run = RunFolder::open(path);
  const TrainConfig& config = run.config();
  if (std::find(families.begin(), families.end(), config.model.family) == families.end())
    fail("{}: model.family: {}, expected {}", {path, name_of(config.model.family), list_of(families)});
  if (!config.model.causal) fail("{}: model.causal: false, expected a model that predicts the next token", {path});
  return run;
}

TextRun open_text_run(const std::string& path, const TextRunOptions& options, const std::vector<Family>& families) {
  const RunFolder run = open_folder(path, families);
  const TrainConfig& config = run.config();
  if (config.data.empty() && config.validation.empty() && options.data.empty())
    fail("--data: {} was imported and has no text of its own; name one", {path});
  if (has_mask(config)) fail("{}: learns answers (format: {}), and this analysis reads plain texts", {path, name_of(config.format)});
  OpenModel open = open_model(path, options.model);
  Tokens tokens = open_validation(config, options.data, open.run.tokenizer()).tokens;
  return {std::move(open), folder_name(path), std::move(tokens)};
}

}  // namespace

void add_text_options(CLI::App& app, TextRunOptions& options) {
  app.add_option("--data", options.data, "Files or folders to read; each run's validation text if not given");
  add_model_options(app, options.model, "Tokens that a window holds");
}

OpenModel open_language_model(const std::string& path, const ModelOptions& options, const std::vector<Family>& families) {
  open_folder(path, families);
  return open_model(path, options);
}

Tokens training_text(const TextRun& run) {
  if (run.config().data.empty())
    fail("{}: has no training text whose tokens could be counted: data is empty, as in imported runs", {run.name});
  return open_corpus(run.config(), run.run.tokenizer()).train;
}

std::vector<TextRun> open_text_runs(const TextRunOptions& options, const std::vector<Family>& families) {
  std::vector<TextRun> all;
  std::multiset<std::string> names;
  for (const std::string& path : options.runs) names.insert(all.emplace_back(open_text_run(path, options, families)).name);
  for (size_t i = 0; i < all.size(); ++i)
    if (names.count(all[i].name) > 1) all[i].name = options.runs[i];
  return all;
}

std::string shown(const Tokenizer& tokenizer, const std::vector<int64_t>& ids, bool with_blanks) {
  std::string result;
  for (const char c : replace_invalid_utf8(tokenizer.decode(ids))) {
    if (c == ' ' && with_blanks) result += "␣";
    else if (c == '\n') result += "↵";
    else if (c == '\t') result += "⇥";
    else result += static_cast<unsigned char>(c) < 32 ? "\uFFFD" : std::string(1, c);
  }
  return result.empty() && ids.size() == 1 ? "id " + std::to_string(ids[0]) : result;
}

std::vector<int64_t> spread_over(int64_t size, int64_t length, int64_t max) {
  const int64_t all = size / length, count = std::min(max, all);
  std::vector<int64_t> starts;
  for (int64_t i = 0; i < count; ++i) starts.push_back(i * all / count * length);
  return starts;
}

void in_batches(const TextRun& run, std::span<const int64_t> starts, const std::function<void(std::span<const int64_t> starts)>& use) {
  const auto at_once = static_cast<size_t>(rows_at_once(run.model, run.context));
  Progress progress({.steps = std::ssize(starts), .unit = "window", .out = stderr});
  for (size_t done = 0; done < starts.size();) {
    const size_t count = std::min(at_once, starts.size() - done);
    use(starts.subspan(done, count));
    done += count;
    progress.update(static_cast<int64_t>(done), 0, run.name);
  }
}

std::vector<int64_t> ids_at(const Tokens& tokens, int64_t first, int64_t count) {
  std::vector<int64_t> ids(static_cast<size_t>(count));
  tokens.read(first, ids);
  return ids;
}

Tensor ids_tensor(const std::vector<int64_t>& ids, int64_t sequences, Device device) {
  const Tensor ids_bc({sequences, static_cast<int64_t>(ids.size()) / sequences}, Dtype::i64);
  std::copy(ids.begin(), ids.end(), ids_bc.data<int64_t>());
  return to(ids_bc, device);
}

}  // namespace ricci::apps
