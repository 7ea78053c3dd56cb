#include "apps/lab/comparison/contestants.h"

#include <algorithm>
#include <filesystem>

#include "apps/run/config/config.h"
#include "apps/run/init/init.h"
#include "core/error.h"
#include "core/files/file.h"

namespace ricci::apps {
namespace {

namespace fs = std::filesystem;

// Which tokens are read in training and evaluation, and in which order. model.vocab decides what a token is where the tokenizer is made
// from the text.
constexpr const char* kDataKeys[] = {"data", "validation", "train_fraction", "sort_symbols", "sort_length", "format", "text_field",
    "label_field", "order", "weights", "shuffle_buffer", "tokenizer", "model.vocab", "eos", "batch", "accumulation", "context", "steps",
    "eval_every", "eval_batches"};

std::string place_of(const std::string& path, const YamlValue& value) { return path + ":" + std::to_string(value.line); }

void check_name(const std::string& name, const std::string& place, const std::vector<Contestant>& before) {
  if (name.empty() || name.size() > 60 || name.find('/') != name.npos)
    fail("{}: '{}' cannot be a part of the name of a run", {place, one_line(name)});
  if (std::any_of(before.begin(), before.end(), [&](const Contestant& other) { return other.name == name; }))
    fail("{}: {} stands there twice", {place, name});
}

Contestant contestant_of(const std::string& name, const YamlValue& value, const std::string& path) {
  std::vector<YamlValue> words = value.kind == YamlValue::Kind::list ? value.items : std::vector{value};
  if (words.empty() || words[0].kind != YamlValue::Kind::text)
    fail("{}: {}: expected a run file, or a list of a run file and KEY=VALUE", {place_of(path, value), name});
  Contestant one{name, (fs::path(path).parent_path() / words[0].text).string(), {}};
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i].text;
    if (words[i].kind != YamlValue::Kind::text || (word.find('=') == word.npos && !word.starts_with('~')))
      fail("{}: {}: '{}', expected KEY=VALUE or ~KEY", {place_of(path, words[i]), name, one_line(word)});
    one.overrides.push_back(word);
  }
  return one;
}

std::string value_of(TrainConfig& config, const char* key) {
  for (const Field& field : fields_of(config))
    if (field.key == key) return value_text(field);
  fail("comparison: no run has a key {}", {key});
}

// What the loss is the mean of. A coarse model's is of another question where its cells are larger.
std::string unit_of_loss(const TrainConfig& config) {
  if (is_classifier(config)) return "labels of documents";
  return config.model.traits().objective == Objective::next_cell
             ? format_message("the tokens of the next cell of {}", {config.model.of<Coarse>().scale})
             : "the next token";
}

}  // namespace

std::vector<std::string> Contestant::overrides_and(const std::vector<std::string>& more) const {
  std::vector<std::string> all = overrides;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TrainConfig Contestant::config(const std::vector<std::string>& more) const {
  return load_config<TrainConfig>(file, overrides_and(more), keys_of_init);
}

std::vector<Contestant> read_contestants(const std::string& path) {
  const YamlValue document = parse_yaml(read_text(path, kMaxYaml), path, true);
  if (document.kind != YamlValue::Kind::keys || document.items.empty())
    fail("{}: expected models as NAME: RUN FILE, or NAME: [RUN FILE, KEY=VALUE, ...]", {path});
  std::vector<Contestant> all;
  for (size_t i = 0; i + 1 < document.items.size(); i += 2) {
    const std::string& name = document.items[i].text;
    check_name(name, place_of(path, document.items[i]), all);
    all.push_back(contestant_of(name, document.items[i + 1], path));
  }
  return all;
}

void check_same_data(const std::vector<Contestant>& contestants, const std::vector<TrainConfig>& configs) {
  for (const char* key : kDataKeys)
    for (size_t i = 1; i < configs.size(); ++i) {
      TrainConfig first = configs[0], other = configs[i];
      const std::string expected = value_of(first, key), found = value_of(other, key);
      if (found != expected)
        fail("{}: {}: {}, but {} has {}: they would not read the same tokens",
            {contestants[i].name, key, one_line(found), contestants[0].name, one_line(expected)});
    }
}

void check_same_loss(const std::vector<Contestant>& contestants, const std::vector<TrainConfig>& configs) {
  for (size_t i = 1; i < configs.size(); ++i)
    if (const std::string first = unit_of_loss(configs[0]), other = unit_of_loss(configs[i]); first != other)
      fail("{}: model.family: {}, whose loss is of {}, but that of {} is of {}",
          {contestants[i].name, name_of(configs[i].model.family), other, contestants[0].name, first});
}

}  // namespace ricci::apps
