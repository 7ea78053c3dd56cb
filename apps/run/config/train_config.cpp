// What the config of a training run may hold.
#include "apps/run/config/train_config.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "data/tokenizers/kinds.h"
#include "data/tokenizers/open.h"

namespace ricci::apps {
namespace {

void at_least(const char* key, int64_t value, int64_t lowest) {
  if (value < lowest) fail("{}: {}, expected {} or more", {key, value, lowest});
}

void more_than_0(const char* key, double value) {
  if (!(value > 0 && std::isfinite(value))) fail("{}: {}, expected more than 0", {key, value});
}

void not_negative(const char* key, double value) {
  if (!(value >= 0 && std::isfinite(value))) fail("{}: {}, expected 0 or more", {key, value});
}

void below_1(const char* key, double value) {
  if (!(value >= 0 && value < 1)) fail("{}: {}, expected 0 or more and less than 1", {key, value});
}

void check_schedule(const Schedule& c) {
  more_than_0("lr", c.lr);
  not_negative("min_lr", c.min_lr);
  if (c.kind != Schedule::Kind::constant && c.min_lr > c.lr) fail("min_lr: {} exceeds lr = {}", {c.min_lr, c.lr});
  at_least("warmup", c.warmup, 0);
  if (!(c.decay_fraction >= 0 && c.decay_fraction <= 1)) fail("decay_fraction: {}, expected 0 to 1", {c.decay_fraction});
}

void check_optimizer(const OptimizerConfig& c) {
  below_1("beta1", c.beta1);
  below_1("beta2", c.beta2);
  more_than_0("eps", c.eps);
  below_1("momentum", c.momentum);
  if (c.nesterov && c.kind == OptimizerConfig::Kind::sgd && c.momentum == 0) fail("nesterov: needs a momentum above 0");
  not_negative("weight_decay", c.weight_decay);
}

void check_data(const TrainConfig& c) {
  for (const std::string& path : c.data)
    if (path.empty()) fail("data: an empty path");
  if (!find_tokenizer_kind(c.tokenizer) && !names_tokenizer_file(c.tokenizer))
    fail("tokenizer: expected one of {} or a file, got '{}'", {list_of_tokenizers(), one_line(c.tokenizer)});
  if (!(c.train_fraction > 0 && c.train_fraction < 1)) fail("train_fraction: {}, expected more than 0 and less than 1", {c.train_fraction});
  if (!c.weights.empty() && c.weights.size() != c.data.size())
    fail("weights: {} of them, but data has {} entries", {c.weights.size(), c.data.size()});
  for (const double weight : c.weights) more_than_0("weights", weight);
  at_least("shuffle_buffer", c.shuffle_buffer, 1);
  if (c.shuffle_buffer > 1 << 24) fail("shuffle_buffer: {}, expected {} or less", {c.shuffle_buffer, 1 << 24});
  at_least("batch", c.batch, 1);
  at_least("accumulation", c.accumulation, 1);
  constexpr int64_t most = INT32_MAX;  // their numbers are half of what a crop is drawn from
  if (c.batch > most || c.accumulation > most || c.batch * c.accumulation > most)
    fail("batch: {} times accumulation: {} is more than {} sequences per step", {c.batch, c.accumulation, most});
  if (!c.context) return;
  at_least("context", *c.context, 1);
  if (*c.context > c.model.ctx) fail("context: {} exceeds model.ctx = {}", {*c.context, c.model.ctx});
}

void check_sorting(const TrainConfig& c) {
  if (is_classifier(c)) fail("data: sorter, but model.family: classifier learns from labelled documents");
  if (c.model.traits().objective == Objective::next_cell)
    fail("data: sorter, but model.family: {} does not say in which order tokens come", {name_of(c.model.family)});
  at_least("sort_length", c.sorting.length, 1);
  const int64_t positions = 2 * c.sorting.length - 1, context = c.context.value_or(c.model.ctx);
  if (context != positions) fail("model.ctx: {}, but sort_length: {} takes {} positions", {context, c.sorting.length, positions});
}

void check_classifier(const TrainConfig& c) {
  if (c.format != DocumentFormat::text && c.label_field.empty())
    fail("label_field: not given, but model.family: classifier learns from labelled documents");
  if (c.format == DocumentFormat::text && !c.label_field.empty()) fail("label_field: only jsonl and tsv have fields, but format: text");
}

// The folder of the run is runs/NAME, not a path out of runs/, and of a name that can be typed.
void check_name(const std::string& name) {
  const auto control = [](unsigned char c) { return c < 32 || c == 127; };
  if (std::any_of(name.begin(), name.end(), control)) fail("name: a control character cannot be in the name of a folder");
  if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos || name.starts_with(' ') || name.ends_with(' ') ||
      name.size() > 200)
    fail("name: '{}' cannot be the name of a folder", {name.size() > 60 ? name.substr(0, 57) + "..." : name});
}

}  // namespace

bool names_vocabulary_file(const std::string& text) { return !find_tokenizer_kind(text); }

bool has_pieces(const TrainConfig& config) {
  const TokenizerKind* const kind = find_tokenizer_kind(config.tokenizer);
  return !kind || kind->has_pieces;
}

void check(const TrainConfig& config) {
  ModelConfig model = config.model;
  if (model.vocab == 0) model.vocab = 1;
  check(model);
  if (is_classifier(config)) check_classifier(config);
  if (!is_classifier(config) && !model.causal)
    fail("model.causal: false, but a language model must not see the tokens that it is to predict");
  check_name(config.name);
  check_data(config);
  if (is_sorting(config)) check_sorting(config);
  if (config.init.empty() && !config.init_changes.empty()) fail("init_changes: there is no init that this run could differ from");
  at_least("steps", config.steps, 1);
  check_schedule(config.schedule);
  check_optimizer(config.optimizer);
  not_negative("clip", config.clip);
  if (config.cuda_graph && config.device == Device::cpu) fail("cuda_graph: device cpu has no graphs, expected cuda");
  at_least("threads", config.threads, 0);
  if (config.threads > 1024) fail("threads: {}, expected 1024 or less", {config.threads});
  at_least("eval_every", config.eval_every, 0);
  at_least("eval_batches", config.eval_batches, 0);
  at_least("eval_from", config.eval_from, 0);
  if (const int64_t context = config.context.value_or(config.model.ctx); config.eval_from >= context)
    fail("eval_from: {}, but a window has {} positions, counted from 0", {config.eval_from, context});
  at_least("patience", config.patience, 0);
  at_least("log_every", config.log_every, 1);
  at_least("checkpoint_every", config.checkpoint_every, 0);
  at_least("keep_checkpoints", config.keep_checkpoints, 1);
  at_least("sample.tokens", config.sample.tokens, 0);
  if (config.sample.tokens > 0 && !model.traits().writes_text())
    fail("sample.tokens: {}, but model.family: {} writes no text", {config.sample.tokens, name_of(model.family)});
  at_least("sample.every", config.sample.every, 0);
  check(config.sample.sampling);
}

TrainStepOptions step_options(const TrainConfig& c) { return {.seed = c.seed, .clip = c.clip, .cuda_graph = c.cuda_graph}; }

void resolve(TrainConfig& config) {
  resolve(config.model);
  config.context = config.context.value_or(config.model.ctx);
}

}  // namespace ricci::apps
