// Reads the models of a comparison from its file and the command line, and makes them equal in size.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "apps/lab/comparison/comparison.h"
#include "apps/run/batches.h"
#include "apps/run/config.h"
#include "apps/run/init.h"
#include "apps/run/places.h"
#include "apps/run/run_folder.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/memory/dry_run.h"
#include "core/nearest.h"
#include "models/inference/evaluation.h"

namespace ricci::apps {
namespace {

void check_name(const std::string& name, const std::string& place, const std::vector<Contestant>& before) {
  if (name.empty() || name.size() > 60 || name.find('/') != name.npos || name.starts_with('.') || one_line(name) != name)
    fail("{}: '{}' cannot be part of a run name", {place, one_line(name)});
  if (std::any_of(before.begin(), before.end(), [&](const Contestant& other) { return other.name == name; }))
    fail("{}: {} is given twice", {place, name});
}

enum class Takes : uint8_t { one_value, list, ranges };

// The kind of value that a key expects; nothing for an unknown key.
std::optional<Takes> kind_of_key(const std::string& key) {
  TrainConfig config;
  std::optional<Takes> takes;
  for (const Field& field : fields_of(config)) {
    if (field.key != key) continue;
    const bool takes_list = expected_value(field).find("list of") != std::string::npos;
    takes = std::max(takes.value_or(Takes::one_value), takes_list ? Takes::list : Takes::one_value);
    if (std::holds_alternative<std::vector<Range>*>(field.value)) takes = Takes::ranges;
  }
  return takes;
}

// The values of a grid, or empty. A grid is a list for a key with a single value, and a list of lists for a key with a list.
std::vector<YAML::Node> grid_of(const std::string& key, const std::string& text, const std::string& place) {
  const std::optional<Takes> takes = kind_of_key(key);
  if (!text.starts_with('[') || !takes || takes == Takes::ranges) return {};
  const YAML::Node list = parse_yaml(text, place, false);
  std::vector<YAML::Node> all(list.begin(), list.end());
  const bool has_list = std::ranges::any_of(all, [](const YAML::Node& item) { return item.IsSequence(); });
  if (takes == Takes::list && !has_list) return {};
  for (const YAML::Node& item : all)
    if (item.IsMap() || (item.IsSequence() && takes == Takes::one_value)) fail("{}: {}: expected a list of values", {place, key});
  return all;
}

// Returns the text of a grid value, and its part of a model name, such as {"[sdp, metric]", "sdp-metric"}.
std::pair<std::string, std::string> value_and_name(const YAML::Node& item) {
  if (item.IsNull()) return {"null", "null"};
  if (item.IsScalar()) return {yaml_text(item.Scalar()), yaml_text(item.Scalar())};
  std::string list, name;
  for (const YAML::Node& each : item) {
    list += (list.empty() ? "" : ", ") + yaml_text(each.IsScalar() ? each.Scalar() : "");
    name += (name.empty() ? "" : "-") + each.Scalar();
  }
  return {"[" + list + "]", name};
}

// Adds a word to each model. A grid becomes one model per value. `place`: for errors.
std::vector<Contestant> with_word(const std::vector<Contestant>& models, const std::string& word, const std::string& place) {
  const std::string key = word.substr(0, word.find('=')), text = word.substr(std::min(word.size(), key.size() + 1));
  const std::vector<YAML::Node> grid = grid_of(key, text, place);
  std::vector<Contestant> all;
  for (const Contestant& model : models) {
    if (model.grid.contains(key)) fail("{}: {} already has a list of values", {place, key});
    if (grid.empty()) all.emplace_back(model).overrides.push_back(word);
    for (const YAML::Node& item : grid) {
      const auto [value, name] = value_and_name(item);
      Contestant row = model;
      row.overrides.push_back(key + "=" + value);
      row.grid[key] = value;
      row.name += (row.name.empty() ? "" : "_") + key.substr(key.rfind('.') + 1) + "_" + name;
      check_name(row.name, place, all);
      all.push_back(row);
    }
  }
  return all;
}

// ---- Models that can be compared
// Keys that determine the tokens of training and evaluation and their order. model.vocab determines them if the tokenizer is trained on the
// text.
constexpr const char* kDataKeys[] = {"data", "validation", "train_fraction", "format", "text_field", "label_field", "order", "weights",
    "shuffle_buffer", "pack", "tokenizer", "model.vocab", "eos", "batch", "accumulation", "context", "steps", "eval_every", "eval_batches"};

void check_comparable(const std::vector<Contestant>& all) {
  TrainConfig first = resolved(all[0].config);
  const std::vector<Field> expected_fields = fields_of(first);
  for (const Contestant& each : all) {
    TrainConfig other = resolved(each.config);
    const std::vector<Field> found_fields = fields_of(other);
    for (const char* key : kDataKeys) {
      const bool is_left_open = std::string_view(key) == "model.vocab" && (first.model.vocab == 0 || other.model.vocab == 0);
      const std::string found = value_text(found_fields, key), expected = value_text(expected_fields, key);
      if (found != expected && !is_left_open)
        fail("{}: {}: {}, but {} has {}; models must read the same tokens",
            {each.name, key, one_line(found), all[0].name, one_line(expected)});
    }
    // The losses of coarse models with different cells are not comparable.
    const Objective objective = first.model.traits().objective;
    const bool has_other_cells =
        objective == Objective::next_cell && first.model.settings<Coarse>().scale != other.model.settings<Coarse>().scale;
    if (objective != other.model.traits().objective || has_other_cells)
      fail("{}: model.family: {} does not predict the same targets as {}", {each.name, name_of(other.model.family), all[0].name});
  }
}

// The first position that a model scores.
int64_t first_counted(TrainConfig config, int64_t vocab) {
  if (!config.model.traits().writes_text()) return 0;
  config.model.vocab = vocab;
  const DryRun dry(Device::cpu);  // allocates no weights
  const Model model(config.model);
  const OutsideDryRun counting;
  return first_scored(model, config.sequence_length());
}

// The first position that all models score. Error: models score documents with a mask from different positions.
int64_t common_eval_from(const std::vector<Contestant>& all, int64_t vocab) {
  const int64_t first = first_counted(all[0].config, vocab);
  int64_t last = 0;
  for (const Contestant& each : all) {
    const TrainConfig& config = each.config;
    const int64_t counted = first_counted(config, vocab);
    if (counted >= config.sequence_length()) fail("{}: context: {} is too short to score a token", {each.name, config.sequence_length()});
    if (has_mask(config) && counted != first)
      fail("{}: scores a document from position {} on, but {} from position {} on", {each.name, counted, all[0].name, first});
    last = std::max({last, counted, config.eval_from});
  }
  return has_mask(all[0].config) ? 0 : last;
}

// ---- Models of one size
// `count` layers in total, in the proportion of `layers`, at least one of each.
std::string layers_text(const std::vector<int64_t>& layers, int64_t count) {
  const double all = static_cast<double>(std::accumulate(layers.begin(), layers.end(), int64_t{0}));
  std::string text;
  for (const int64_t n : layers)
    text += (text.empty() ? "" : ", ") + std::to_string(std::max<int64_t>(1, std::llround(static_cast<double>(n * count) / all)));
  return layers.size() > 1 ? "[" + text + "]" : text;
}

// The n-th model size, as an override.
std::string size_text(TrainConfig config, Change change, int64_t n) {
  const ModelConfig& model = config.model;
  if (change == Change::ff) return "model.ff=" + std::to_string(n);
  if (change == Change::layers && !model.traits().reads_stacks) return "model.layers=" + std::to_string(n);
  if (change == Change::layers) return "model.layers=" + layers_text(model.stack_layers.per_scale(model.scales), n);
  int64_t heads = 1;  // divisible by the heads of every mixer
  for (const Field& field : fields_of(config))
    if (field.is_read && field.key == "model.heads") heads = std::lcm(heads, *std::get<int64_t*>(field.value));
  const bool turns = model.embedding.positions == PositionKind::rope;  // pairs of columns
  const auto columns = turns ? static_cast<int64_t>(std::ceil(2 / model.embedding.rope_fraction)) : int64_t{1};
  return "model.d=" + std::to_string(n * columns * heads);
}

// Adds the key `changed`, unless empty, and the plan of a step.
Contestant planned(Contestant model, const std::string& changed, int64_t vocab) {
  model.changed = changed;
  if (!changed.empty()) model.overrides.push_back(changed);
  model.config = load_run_file(model.file, model.overrides);
  TrainConfig known = model.config;
  known.model.vocab = vocab;
  model.plan = plan_step(known.model, known.optimizer, step_shape_of(known));
  return model;
}

Contestant closest_to(const Contestant& first, const Contestant& model, int64_t vocab, Equal equal, Change change) {
  const auto with = [&](int64_t n) { return planned(model, size_text(model.config, change, n), vocab); };
  const auto amount = [&](int64_t n) { return amount_of(with(n).plan, equal); };
  const double target = amount_of(first.plan, equal);
  if (const double min = amount(1); min > target)
    fail("{}: has {} {} even with {}, more than the {} of {}", {model.name, min, name_of(equal), with(1).changed, target, first.name});
  return with(closest(amount, target));
}

// ---- Files
// True for the values of a comparison file, such as small.yaml or [small.yaml, lr=1e-3].
bool names_run_file(const YAML::Node& value) {
  const YAML::Node file = value.IsSequence() && value.size() > 0 ? value[0] : value;
  return file.IsScalar() && (file.Scalar().ends_with(".yaml") || file.Scalar().ends_with(".yml"));
}

// True for a file with a key of a run file. `base` can name a run file in both kinds of files. Error: the file has both such a key and a
// model.
bool is_run_file(const YAML::Node& document, const std::string& path) {
  if (!document.IsMap()) return false;
  TrainConfig config;
  const std::vector<Field> fields = fields_of(config);
  std::string key, model;
  for (const auto& entry : document) {
    const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "";
    const auto is_here = [&](const Field& field) { return field.key == name || field.key.starts_with(name + "."); };
    if (names_run_file(entry.second) && name != "base") model = name;
    else if (std::any_of(fields.begin(), fields.end(), is_here)) key = name;
  }
  if (!key.empty() && !model.empty())
    fail("{}: {} is a key of a run file, but {} is a model of a comparison file; keys for all models belong on the command line",
        {path, one_line(key), one_line(model)});
  return !key.empty();
}

// The models of a comparison file.
std::vector<Contestant> read_models(const YAML::Node& document, const std::string& path) {
  const auto place_of = [&](const YAML::Node& value) { return path + ":" + std::to_string(value.Mark().line + 1); };
  if (!document.IsMap() || document.size() == 0)
    fail("{}: expected a run file, or models as NAME: RUN FILE, or NAME: [RUN FILE, KEY=VALUE, ...]", {path});
  std::vector<Contestant> all;
  for (const auto& entry : document) {
    const YAML::Node value = entry.second;
    const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "";
    check_name(name, place_of(entry.first), all);
    const std::vector<YAML::Node> words = value.IsSequence() ? std::vector<YAML::Node>(value.begin(), value.end()) : std::vector{value};
    if (words.empty() || !words[0].IsScalar())
      fail("{}: {}: expected a run file, or a list of a run file and KEY=VALUE", {place_of(value), name});
    std::vector<Contestant> models{{name, name, (std::filesystem::path(path).parent_path() / words[0].Scalar()).string()}};
    for (size_t i = 1; i < words.size(); ++i) {
      const std::string word = words[i].IsScalar() ? words[i].Scalar() : "", place = place_of(words[i]);
      if (word.find('=') == word.npos && !word.starts_with('~'))
        fail("{}: {}: '{}', expected KEY=VALUE or ~KEY", {place, name, one_line(word)});
      models = with_word(models, word, place);
    }
    all.insert(all.end(), models.begin(), models.end());
  }
  return all;
}

}  // namespace

std::vector<Contestant> read_contestants(const std::string& path_or_run, const std::vector<std::string>& common) {
  const std::string path = find_run_file(find_weights(path_or_run));
  const YAML::Node document = path.empty() ? YAML::Node() : parse_yaml(read_text(path, kMaxYaml), path, true);
  std::vector<Contestant> all;
  if (path.empty() || is_run_file(document, path)) all.push_back({"", "", path});
  else all = read_models(document, path);
  for (const std::string& word : common) all = with_word(all, word, word);
  return all;
}

double amount_of(const Plan& plan, Equal equal) {
  if (equal == Equal::flops) return plan.flops();
  return static_cast<double>(equal == Equal::memory ? plan.peak : plan.parameters);
}

int64_t closest(const std::function<double(int64_t)>& value, double target) {
  int64_t above = 2;
  while (above < 1 << 16 && value(above) < target) above *= 2;
  int64_t below = above / 2;
  while (above - below > 1) {
    const int64_t middle = (below + above) / 2;
    if (value(middle) < target) below = middle;
    else above = middle;
  }
  return std::abs(value(above) - target) < std::abs(target - value(below)) ? above : below;
}

std::vector<Contestant> matched(std::vector<Contestant> models, Equal equal, Change change, const std::vector<std::string>& only) {
  std::vector<std::string> names;
  for (Contestant& model : models) {
    names.insert(names.end(), {model.model, model.name});
    model.config = load_run_file(model.file, model.overrides);
  }
  const auto is_in = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (const std::string& name : only)
    if (!is_in(names, name)) fail("--only: no model is called '{}'{}", {one_line(name), nearest_note(name, names)});
  check_comparable(models);
  const int64_t vocab = planned_model(models[0].config, models[0].file).vocab, from = common_eval_from(models, vocab);
  if (std::any_of(models.begin(), models.end(), [&](const Contestant& model) { return model.config.eval_from != from; }))
    for (Contestant& model : models) model.overrides.push_back("eval_from=" + std::to_string(from));
  const Contestant first = planned(models[0], "", vocab);
  std::vector<Contestant> all;
  for (const Contestant& model : models) {
    if (!only.empty() && !is_in(only, model.model) && !is_in(only, model.name)) continue;
    const bool as_it_is = model.name == first.name || equal == Equal::nothing;
    all.push_back(as_it_is ? planned(model, "", vocab) : closest_to(first, model, vocab, equal, change));
    all.back().vs_first = amount_of(all.back().plan, equal) / amount_of(first.plan, equal);
  }
  return all;
}

}  // namespace ricci::apps
