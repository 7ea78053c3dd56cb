#include "apps/lab/analysis/text_runs.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <set>

#include "apps/run/corpus/corpus.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "data/text/utf8.h"

namespace ricci::apps {
namespace {

std::string folder_name(const std::string& path) {
  std::error_code ignored;
  const std::string name = std::filesystem::weakly_canonical(path, ignored).filename().string();
  return name.empty() ? path : name;
}

std::string list_of(const std::vector<Family>& families) {
  std::string list;
  for (const Family family : families) list += (list.empty() ? "" : ", ") + std::string(name_of(family));
  return list;
}

// What is wrong is told before the weights are read.
RunFolder open_folder(const std::string& path, const std::vector<Family>& families) {
  RunFolder run = RunFolder::open(path);
  const TrainConfig& config = run.config();
  if (std::find(families.begin(), families.end(), config.model.family) == families.end())
    fail("{}: model.family: {}, expected {}", {path, name_of(config.model.family), list_of(families)});
  if (is_sorting(config)) fail("{}: learns to sort, and reads no text", {path});
  if (!config.model.causal) fail("{}: model.causal: false, expected a model that predicts the next token", {path});
  return run;
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

TextRun open_text_run(const std::string& path, const TextRunOptions& options, const std::vector<Family>& families) {
  const RunFolder run = open_folder(path, families);
  const TrainConfig& config = run.config();
  if (config.data.empty() && config.validation.empty() && options.data.empty())
    fail("--data: {} was imported and has no text of its own; name one", {path});
  OpenModel open = open_model(path, options.model);
  Tokens tokens =
      options.data.empty() ? open_validation(config, open.run.tokenizer()) : open_tokens(config, options.data, open.run.tokenizer());
  return {folder_name(path), std::move(open), std::move(tokens)};
}

Tokens training_text(const TextRun& run) {
  const TrainConfig& config = run.open.run.config();
  if (config.data.empty()) fail("{}: has no training text whose tokens could be counted: data is empty, as in imported runs", {run.name});
  return open_corpus(config, run.open.run.tokenizer()).train;
}

std::vector<TextRun> open_text_runs(const TextRunOptions& options, const std::vector<Family>& families) {
  std::vector<TextRun> all;
  std::multiset<std::string> names;
  for (const std::string& path : options.runs) names.insert(all.emplace_back(open_text_run(path, options, families)).name);
  for (size_t i = 0; i < all.size(); ++i)
    if (names.count(all[i].name) > 1) all[i].name = options.runs[i];
  return all;
}

std::string shown(const Tokenizer& tokenizer, int64_t id) {
  const std::string text = shown(tokenizer, std::vector{id});
  return text.empty() ? "id " + std::to_string(id) : text;
}

std::string shown(const Tokenizer& tokenizer, const std::vector<int64_t>& ids) {
  const auto sign_of = [&](char c) -> std::string {
    if (c == ' ' && ids.size() == 1) return "␣";
    if (c == '\n') return "↵";
    if (c == '\t') return "⇥";
    return static_cast<unsigned char>(c) < 32 ? "\uFFFD" : std::string(1, c);
  };
  std::string result;
  for (const char c : replace_invalid_utf8(tokenizer.decode(ids))) result += sign_of(c);
  return result;
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
