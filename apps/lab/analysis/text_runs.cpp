// Opens runs with their texts and computes the losses of windows in nats, for all text analyses.
#include <algorithm>
#include <set>

#include "apps/lab/analysis/analyses.h"
#include "apps/run/corpus.h"
#include "apps/terminal/progress.h"
#include "core/error.h"
#include "core/random.h"
#include "cuda/device/device.h"
#include "data/text/utf8.h"
#include "models/inference/evaluation.h"

namespace ricci::apps {

std::vector<TextRun> open_text_runs(const AnalysisOptions& options, const std::vector<Family>& families) {
  std::vector<TextRun> all;
  std::multiset<std::string> names;
  std::string expected;
  for (const Family family : families) expected += (expected.empty() ? "" : ", ") + std::string(name_of(family));
  for (const std::string& path : options.run.files) {
    const RunFolder folder = RunFolder::open(path);  // reports folder errors before the weights are read
    const TrainConfig config = with_text(folder.config(), options.text);
    if (std::find(families.begin(), families.end(), config.model.family) == families.end())
      fail("{}: model.family: {}, expected {}", {path, name_of(config.model.family), expected});
    if (!config.model.causal) fail("{}: model.causal: false, expected a model that predicts the next token", {path});
    if (config.data.empty() && config.validation.empty()) fail("--data: {} was imported without a text; give a text file", {path});
    if (has_mask(config)) fail("{}: learns answers (format: {}), expected a run on plain text", {path, name_of(config.format)});
    OpenModel open = open_model(path, options.model);
    Tokens tokens = open_validation(config, open.run.tokenizer(), open.context).tokens;
    const std::string name = *names.insert(open.run.weights().label());
    all.push_back({std::move(open), name, std::move(tokens)});
  }
  for (size_t i = 0; i < all.size(); ++i)
    if (names.count(all[i].name) > 1) all[i].name = options.run.files[i];
  return all;
}

Ids spread_over(const Tokens& tokens, int64_t size, int64_t length, int64_t max, int64_t least) {
  const int64_t all = size / length, count = std::min(max, all);
  if (count < least) fail("{}: has {} tokens, expected {} for {} windows of {}", {tokens.name(), size, least * length, least, length});
  Ids starts;
  for (int64_t i = 0; i < count; ++i) starts.push_back(i * all / count * length);
  return starts;
}

void in_batches(const TextRun& run, const Ids& starts, const std::function<void(const Ids& starts)>& use) {
  Progress progress({.steps = std::ssize(starts), .unit = "window", .out = stderr});
  for (auto next = starts.begin(); next != starts.end();) {
    const auto first = next;
    next += std::min<ptrdiff_t>(rows_at_once(run.model, run.context), starts.end() - first);
    use({first, next});
    progress.update(next - starts.begin(), 0, run.name);
  }
}

Ids ids_at(const Tokens& tokens, const Ids& starts, int64_t count) {
  Ids ids(starts.size() * static_cast<size_t>(count));
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t there = std::min(count, tokens.size() - starts[i]);
    tokens.read(starts[i], std::span(ids).subspan(i * static_cast<size_t>(count), static_cast<size_t>(there)));
  }
  return ids;
}

Tensor ids_tensor(const Ids& ids, int64_t sequences, Device device) {
  const Tensor ids_bc({sequences, static_cast<int64_t>(ids.size()) / sequences}, Dtype::i64);
  std::copy(ids.begin(), ids.end(), ids_bc.data<int64_t>());
  return to(ids_bc, device);
}

void shuffle(std::span<int64_t> ids, uint64_t seed, uint64_t window) {
  const Philox random{seed, window};
  for (size_t left = ids.size(); left > 1; --left)  // Fisher-Yates
    std::swap(ids[left - 1], ids[index_below(left, random, left - 1)]);
}

std::vector<double> window_nats(const TextRun& run, const Ids& starts, std::optional<uint64_t> seed) {
  const auto context = static_cast<size_t>(run.context);
  std::vector<double> all;
  in_batches(run, starts, [&](Ids batch) {
    const auto windows = std::ssize(batch);
    Ids ids = ids_at(run.tokens, batch, run.context);
    if (seed)
      for (size_t first = 0; first < ids.size(); first += context)
        shuffle(std::span(ids).subspan(first, context / 2), *seed, (all.size() + first) / context);
    for (int64_t& start : batch) ++start;
    const Tensor targets = ids_tensor(ids_at(run.tokens, batch, run.context), windows, run.device);
    const std::vector<double> nats = token_nats(run.model, {ids_tensor(ids, windows, run.device), targets});
    all.insert(all.end(), nats.begin(), nats.end());
  });
  return all;
}

std::string shown(const Tokenizer& tokenizer, const Ids& ids, bool with_blanks) {
  std::string result;
  for (const char c : replace_invalid_utf8(tokenizer.decode(ids))) {
    if (c == ' ' && with_blanks) result += "␣";
    else if (c == '\n') result += "↵";
    else if (c == '\t') result += "⇥";
    else result += static_cast<unsigned char>(c) < 32 ? "\uFFFD" : std::string(1, c);
  }
  return result.empty() && ids.size() == 1 ? "id " + std::to_string(ids[0]) : result;
}

void hide_repeats(Column& column) {
  const std::vector<Json> all = column.values;
  for (size_t i = 1; i < all.size(); ++i)
    if (all[i] == all[i - 1]) column.values[i] = {};
}

void add_note(Report& report, const std::string& run, const std::string& note) {
  for (std::string& each : report.notes)
    if (each.ends_with(": " + note)) {
      each.insert(each.size() - note.size() - 2, ", " + run);
      return;
    }
  report.notes.push_back(run + ": " + note);
}

}  // namespace ricci::apps
