#include "apps/lab/comparison/matching.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "apps/run/config/config.h"
#include "apps/run/config/nearest.h"
#include "apps/run/corpus/corpus.h"
#include "apps/run/corpus/micro_batches.h"
#include "core/error.h"
#include "core/memory/dry_run.h"
#include "models/inference/evaluation.h"

namespace ricci::apps {
namespace {

constexpr int64_t kMaxWidth = 1 << 16, kMaxOfLayers = 1 << 10;

// A key of the model that the chosen one reads; empty where it reads none of that name.
std::string read_value(TrainConfig config, const std::string& key) {
  for (const Field& field : fields_of(config))
    if (field.key == key && field.is_read) return value_text(field);
  return {};
}

bool has_stacks(const ModelConfig& model) { return model.traits().reads_stacks; }

std::vector<int64_t> layers_of(const ModelConfig& model) {
  return has_stacks(model) ? model.stack_layers.per_scale(model.scales) : std::vector<int64_t>{model.layers};
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
    const std::vector<int64_t> layers = layers_of(model);
    return {[layers](int64_t n) { return "model.layers=" + layers_text(layers, n); },
        std::accumulate(layers.begin(), layers.end(), int64_t{0}), kMaxOfLayers};
  }
  const std::string heads = read_value(config, "model.heads");
  const int64_t unit = heads.empty() ? 1 : std::stoll(heads);
  return {[unit](int64_t n) { return "model.d=" + std::to_string(n * unit); }, model.d / unit, kMaxWidth / unit};
}

class Matcher {
 public:
  Matcher(std::vector<std::string> common, int64_t vocab) : common_(std::move(common)), vocab_(vocab) {}

  Matched with_key(const Contestant& contestant, const std::string& changed) const {
    Matched result{contestant.name, contestant.file, {}, contestant.overrides_and(common_), changed, {}};
    if (!changed.empty()) result.overrides.push_back(changed);
    result.config = contestant.config(changed.empty() ? common_ : with(changed));
    TrainConfig known = result.config;
    known.model.vocab = vocab_;
    result.plan = plan_step(known.model, known.optimizer, step_shape_of(known));
    return result;
  }

  Matched closest_to(const Contestant& contestant, const Matched& first, Equal equal, Change change) const {
    const Choices choices = choices_of(contestant.config(common_), change);
    std::map<int64_t, double> known;
    const auto amount = [&](int64_t n) {
      const auto found = known.find(n);
      return found != known.end() ? found->second : known[n] = amount_of(with_key(contestant, choices.text(n)).plan, equal);
    };
    const double target = amount_of(first.plan, equal);
    if (const double min = amount(1); min > target)
      fail("{}: {} {} even with {}, more than the {} of {}", {contestant.name, min, name_of(equal), choices.text(1), target, first.name});
    return with_key(contestant, choices.text(closest(amount, target, choices.current, choices.max)));
  }

 private:
  std::vector<std::string> with(const std::string& changed) const {
    std::vector<std::string> all = common_;
    all.push_back(changed);
    return all;
  }
  std::vector<std::string> common_;
  int64_t vocab_;
};

// The first position of a sequence that a model's loss counts.
int64_t first_counted(TrainConfig config, int64_t vocab) {
  if (!config.model.traits().writes_text()) return 0;
  config.model.vocab = vocab;
  const DryRun dry(Device::cpu);  // weights without memory
  const Model model(config.model);
  const OutsideDryRun counting;
  return first_scored(model, *config.context);
}

// The first position that evaluations are to score, so that the losses of all models are of the same tokens. Errors: a model whose loss
// counts no token of a window; models that count other positions of generated rows, of which evaluations leave none out.
int64_t common_eval_from(const std::vector<Contestant>& contestants, const std::vector<TrainConfig>& configs, int64_t vocab) {
  int64_t last = 0, first = 0;
  for (size_t i = 0; i < configs.size(); ++i) {
    const int64_t sorted = is_sorting(configs[i]) ? configs[i].sorting.length - 1 : 0;  // in front of it no row has a target
    const int64_t counted = std::max(sorted, first_counted(configs[i], vocab));
    if (counted >= *configs[i].context)
      fail("{}: context: {}, too short: its loss counts no token of it", {contestants[i].name, *configs[i].context});
    if (i == 0) first = counted;
    if (is_sorting(configs[i]) && counted != first)
      fail("{}: its loss counts the positions of a row from {} on, but that of {} from {} on",
          {contestants[i].name, counted, contestants[0].name, first});
    last = std::max({last, counted, configs[i].eval_from});
  }
  return is_sorting(configs[0]) ? 0 : last;
}

// Error: a name that no model has.
void check_names(const std::vector<Contestant>& contestants, const std::vector<std::string>& only) {
  std::vector<std::string> names;
  for (const Contestant& one : contestants) names.push_back(one.name);
  for (const std::string& name : only)
    if (std::find(names.begin(), names.end(), name) == names.end())
      fail("--only: no model is called '{}'{}", {one_line(name), nearest_note(name, names)});
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
  check_names(contestants, only);
  std::vector<TrainConfig> configs;
  for (const Contestant& contestant : contestants) configs.push_back(contestant.config(common));
  check_same_data(contestants, configs);
  check_same_loss(contestants, configs);
  const int64_t vocab = configs[0].model.vocab ? configs[0].model.vocab : vocab_of(configs[0], *open_corpus(configs[0], nullptr).tokenizer);
  std::vector<std::string> all_common = common;
  const int64_t from = common_eval_from(contestants, configs, vocab);
  if (std::any_of(configs.begin(), configs.end(), [&](const TrainConfig& config) { return config.eval_from != from; }))
    all_common.push_back("eval_from=" + std::to_string(from));
  const Matcher matcher(all_common, vocab);
  const Matched first = matcher.with_key(contestants[0], "");
  std::vector<Matched> all;
  for (size_t i = 0; i < contestants.size(); ++i) {
    if (!only.empty() && std::find(only.begin(), only.end(), contestants[i].name) == only.end()) continue;
    const bool as_it_is = i == 0 || equal == Equal::nothing;
    all.push_back(as_it_is ? matcher.with_key(contestants[i], "") : matcher.closest_to(contestants[i], first, equal, change));
    all.back().beside_first = amount_of(all.back().plan, equal) / amount_of(first.plan, equal);
  }
  return all;
}

}  // namespace ricci::apps
