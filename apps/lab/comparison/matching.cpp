#include "apps/lab/comparison/matching.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "apps/run/config.h"
#include "apps/run/init.h"
#include "apps/run/micro_batches.h"
#include "core/error.h"
#include "core/memory/dry_run.h"
#include "models/inference/evaluation.h"

namespace ricci::apps {
namespace {

// Keys that decide which tokens are read in training and evaluation, and in which order. model.vocab does where the tokenizer is made
// from the text.
constexpr const char* kDataKeys[] = {"data", "validation", "train_fraction", "format", "text_field", "label_field", "order", "weights",
    "shuffle_buffer", "pack", "tokenizer", "model.vocab", "eos", "batch", "accumulation", "context", "steps", "eval_every", "eval_batches"};

std::string value_of(TrainConfig& config, const char* key) {
  for (const Field& field : fields_of(config))
    if (field.key == key) return value_text(field);
  fail("comparison: no run has a key {}", {key});
}

// The things that the loss is a mean over, in words. Losses are comparable only for the same target: coarse models with other cells
// predict something else.
std::string unit_of_loss(const TrainConfig& config) {
  if (is_classifier(config)) return "labels of documents";
  return config.model.traits().objective == Objective::next_cell
             ? format_message("the tokens of the next cell of {}", {config.model.settings<Coarse>().scale})
             : "the next token";
}

constexpr int64_t kMaxWidth = 1 << 16, kMaxOfLayers = 1 << 10;

// A key of the model that the chosen one reads; empty where it reads none of that name.
std::string read_value(TrainConfig config, const std::string& key) {
  for (const Field& field : fields_of(config))
    if (field.key == key && field.is_read) return value_text(field);
  return {};
}

// `count` layers in all, in the proportion of `layers`, but one at least of each.
std::string layers_text(const std::vector<int64_t>& layers, int64_t count) {
  const double all = static_cast<double>(std::accumulate(layers.begin(), layers.end(), int64_t{0}));
  std::string text;
  for (const int64_t n : layers)
    text += (text.empty() ? "" : ", ") + std::to_string(std::max<int64_t>(1, std::llround(static_cast<double>(n * count) / all)));
  return layers.size() > 1 ? "[" + text + "]" : text;
}

// Number `n` of what may be changed of a model, as an override; and the number that the model has.
struct Choices {
  std::function<std::string(int64_t n)> text;
  int64_t current, max;
};

Choices choices_of(const TrainConfig& config, Change change) {
  const ModelConfig& model = config.model;
  if (change == Change::ff)
    return {[](int64_t n) { return "model.ff=" + std::to_string(n); }, model.block.feed_forward(model.d), 4 * kMaxWidth};
  if (change == Change::layers) {
    const std::vector<int64_t> layers =
        model.traits().reads_stacks ? model.stack_layers.per_scale(model.scales) : std::vector<int64_t>{model.layers};
    return {[layers](int64_t n) { return "model.layers=" + layers_text(layers, n); },
        std::accumulate(layers.begin(), layers.end(), int64_t{0}), kMaxOfLayers};
  }
  const std::string heads = read_value(config, "model.heads");
  // The columns of a head that turn are pairs.
  const bool turns = model.embedding.positions == PositionKind::rope;
  const auto columns = turns ? static_cast<int64_t>(std::ceil(2 / model.embedding.rope_fraction)) : int64_t{1};
  const int64_t unit = columns * (heads.empty() ? 1 : std::stoll(heads));
  return {[unit](int64_t n) { return "model.d=" + std::to_string(n * unit); }, model.d / unit, kMaxWidth / unit};
}

// The model with `common` overrides and `changed`, which may be empty.
Matched with_key(const Contestant& contestant, std::vector<std::string> common, const std::string& changed, int64_t vocab) {
  if (!changed.empty()) common.push_back(changed);
  Matched result{contestant.name, contestant.file, contestant.config(common), contestant.overrides_and(common), contestant.grid, changed};
  TrainConfig known = result.config;
  known.model.vocab = vocab;
  result.plan = plan_step(known.model, known.optimizer, step_shape_of(known));
  return result;
}

Matched closest_to(
    const Contestant& contestant, const std::vector<std::string>& common, int64_t vocab, const Matched& first, Equal equal, Change change) {
  const Choices choices = choices_of(contestant.config(common), change);
  std::map<int64_t, Matched> known;
  const auto with = [&](int64_t n) -> const Matched& {
    const auto found = known.find(n);
    return found != known.end() ? found->second : known.emplace(n, with_key(contestant, common, choices.text(n), vocab)).first->second;
  };
  const auto amount = [&](int64_t n) { return amount_of(with(n).plan, equal); };
  const double target = amount_of(first.plan, equal);
  if (const double min = amount(1); min > target)
    fail("{}: {} {} even with {}, more than the {} of {}", {contestant.name, min, name_of(equal), choices.text(1), target, first.name});
  return with(closest(amount, target, choices.current, choices.max));
}

// The first position of a sequence that a model's loss counts.
int64_t first_counted(TrainConfig config, int64_t vocab) {
  if (!config.model.traits().writes_text()) return 0;
  config.model.vocab = vocab;
  const DryRun dry(Device::cpu);  // weights without memory
  const Model model(config.model);
  const OutsideDryRun counting;
  return first_scored(model, config.sequence_length());
}

// The first position that evaluations score. It is the same for all models, because losses of different tokens cannot be compared. Errors:
// a model that counts no token of a window in its loss; models that count from different positions, if the documents have a mask, because
// evaluations of such documents score every token that counts.
int64_t common_eval_from(const std::vector<Contestant>& contestants, const std::vector<TrainConfig>& configs, int64_t vocab) {
  int64_t last = 0, first = 0;
  for (size_t i = 0; i < configs.size(); ++i) {
    const int64_t counted = first_counted(configs[i], vocab);
    if (counted >= configs[i].sequence_length())
      fail("{}: context: {}, too short: its loss counts no token of it", {contestants[i].name, configs[i].sequence_length()});
    if (i == 0) first = counted;
    if (has_mask(configs[i]) && counted != first)
      fail("{}: its loss counts the positions of a document from {} on, but the loss of {} from {} on",
          {contestants[i].name, counted, contestants[0].name, first});
    last = std::max({last, counted, configs[i].eval_from});
  }
  return has_mask(configs[0]) ? 0 : last;
}

// Error: the first key that decides which tokens are read, and in which order, that is not the same for all of them.
void check_same_data(const std::vector<Contestant>& contestants, const std::vector<TrainConfig>& configs) {
  for (const char* key : kDataKeys)
    for (size_t i = 1; i < configs.size(); ++i) {
      TrainConfig first = resolved(configs[0]), other = resolved(configs[i]);
      const std::string expected = value_of(first, key), found = value_of(other, key);
      const bool is_left_open = std::string_view(key) == "model.vocab" && (first.model.vocab == 0 || other.model.vocab == 0);
      if (found != expected && !is_left_open)
        fail("{}: {}: {}, but {} has {}: they would not read the same tokens",
            {contestants[i].name, key, one_line(found), contestants[0].name, one_line(expected)});
    }
}

// Error: the first model whose loss cannot be compared with the loss of the first one: a classifier beside a language model.
void check_same_loss(const std::vector<Contestant>& contestants, const std::vector<TrainConfig>& configs) {
  for (size_t i = 1; i < configs.size(); ++i)
    if (const std::string first = unit_of_loss(configs[0]), other = unit_of_loss(configs[i]); first != other)
      fail("{}: model.family: {}, whose loss is of {}, but {} has a loss of {}",
          {contestants[i].name, name_of(configs[i].model.family), other, contestants[0].name, first});
}

}  // namespace

double amount_of(const Plan& plan, Equal equal) {
  if (equal == Equal::flops) return plan.flops();
  return static_cast<double>(equal == Equal::memory ? plan.peak : plan.parameters);
}

int64_t closest(const std::function<double(int64_t)>& value, double target, int64_t guess, int64_t max) {
  int64_t below = 1, above = std::clamp<int64_t>(guess, 2, max);
  while (above < max && value(above) < target) {
    below = above;
    above = std::min(max, 2 * above);
  }
  while (above - below > 1) {
    const int64_t middle = (below + above) / 2;
    (value(middle) < target ? below : above) = middle;
  }
  return std::abs(value(above) - target) < std::abs(target - value(below)) ? above : below;
}

std::vector<Matched> matched(const std::vector<Contestant>& contestants, const std::vector<std::string>& common, Equal equal, Change change,
    const std::vector<std::string>& only) {
  std::vector<std::string> names, all_common = common;
  std::vector<TrainConfig> configs;
  for (const Contestant& contestant : contestants) names.insert(names.end(), {contestant.model, contestant.name});
  const auto is_in = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (const std::string& name : only)
    if (!is_in(names, name)) fail("--only: no model is called '{}'{}", {one_line(name), nearest_note(name, names)});
  for (const Contestant& contestant : contestants) configs.push_back(contestant.config(common));
  check_same_data(contestants, configs);
  check_same_loss(contestants, configs);
  const int64_t vocab = planned_vocab(configs[0], contestants[0].file);
  const int64_t from = common_eval_from(contestants, configs, vocab);
  if (std::any_of(configs.begin(), configs.end(), [&](const TrainConfig& config) { return config.eval_from != from; }))
    all_common.push_back("eval_from=" + std::to_string(from));
  const Matched first = with_key(contestants[0], all_common, "", vocab);
  std::vector<Matched> all;
  for (size_t i = 0; i < contestants.size(); ++i) {
    if (!only.empty() && !is_in(only, contestants[i].model) && !is_in(only, contestants[i].name)) continue;
    const bool as_it_is = i == 0 || equal == Equal::nothing;
    all.push_back(
        as_it_is ? with_key(contestants[i], all_common, "", vocab) : closest_to(contestants[i], all_common, vocab, first, equal, change));
    all.back().beside_first = amount_of(all.back().plan, equal) / amount_of(first.plan, equal);
  }
  return all;
}

}  // namespace ricci::apps
