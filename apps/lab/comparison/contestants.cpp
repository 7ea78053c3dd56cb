// The models of a comparison, from its file and the lists of the command line.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>

#include "apps/lab/comparison/matching.h"
#include "apps/run/config.h"
#include "apps/run/init.h"
#include "core/error.h"
#include "core/files/file.h"

namespace ricci::apps {
namespace {

namespace fs = std::filesystem;

std::string place_of(const std::string& path, const YAML::Node& value) { return path + ":" + std::to_string(value.Mark().line + 1); }

void check_name(const std::string& name, const std::string& place, const std::vector<Contestant>& before) {
  if (name.empty() || name.size() > 60 || name.find('/') != name.npos || name.starts_with('.') || one_line(name) != name)
    fail("{}: '{}' cannot be a part of the name of a run", {place, one_line(name)});
  if (std::any_of(before.begin(), before.end(), [&](const Contestant& other) { return other.name == name; }))
    fail("{}: {} is there twice", {place, name});
}

bool takes_list(const Field& field) {
  const auto has_elements = []<class Member>(const Member& member) {
    return requires { member->front(); };
  };
  return !std::holds_alternative<std::string*>(field.value) && std::visit(has_elements, field.value);
}

// The models with one more word each; a list for a key that takes one value makes a model for each of its values. A key such as
// model.layers, which takes a list in some families, keeps it. `place`: of the word,
// for errors.
std::vector<Contestant> with_word(const std::vector<Contestant>& models, const std::string& word, const std::string& place) {
  const std::string key = word.substr(0, word.find('=')), text = word.substr(std::min(word.size(), key.size() + 1));
  TrainConfig config;
  const std::vector<Field> fields = fields_of(config);
  const auto is_it = [&](const Field& field) { return field.key == key; };
  const bool may_be_grid =
      text.starts_with('[') && std::any_of(fields.begin(), fields.end(), is_it) &&
      std::none_of(fields.begin(), fields.end(), [&](const Field& field) { return is_it(field) && takes_list(field); });
  const YAML::Node value = may_be_grid ? parse_yaml(text, place, false) : YAML::Node();
  std::vector<Contestant> all;
  for (const Contestant& model : models) {
    if (!value.IsSequence() || value.size() == 0) {
      all.push_back(model);
      all.back().overrides.push_back(word);
      continue;
    }
    for (const YAML::Node& item : value) {
      if (!item.IsScalar() && !item.IsNull()) fail("{}: {}: expected a list of values", {place, key});
      const std::string one = item.IsNull() ? "null" : yaml_text(item.Scalar());
      Contestant& row = all.emplace_back(model);
      row.overrides.push_back(key + "=" + one);
      row.grid.emplace_back(key, one);
      row.name += "_" + key.substr(key.rfind('.') + 1) + "_" + one;
      check_name(row.name, place, {all.begin(), all.end() - 1});
    }
  }
  return all;
}

std::vector<Contestant> contestants_of(const std::string& name, const YAML::Node& value, const std::string& path) {
  const std::vector<YAML::Node> words = value.IsSequence() ? std::vector<YAML::Node>(value.begin(), value.end()) : std::vector{value};
  if (words.empty() || !words[0].IsScalar())
    fail("{}: {}: expected a run file, or a list of a run file and KEY=VALUE", {place_of(path, value), name});
  std::vector<Contestant> all{{name, name, (fs::path(path).parent_path() / words[0].Scalar()).string()}};
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string word = words[i].IsScalar() ? words[i].Scalar() : "";
    if (word.find('=') == word.npos && !word.starts_with('~'))
      fail("{}: {}: '{}', expected KEY=VALUE or ~KEY", {place_of(path, words[i]), name, one_line(word)});
    all = with_word(all, word, place_of(path, words[i]));
  }
  return all;
}

}  // namespace

std::vector<std::string> Contestant::overrides_and(const std::vector<std::string>& more) const {
  std::vector<std::string> all = overrides;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TrainConfig Contestant::config(const std::vector<std::string>& more) const { return load_run_file(file, overrides_and(more)); }

std::vector<Contestant> read_contestants(const std::string& path) {
  const YAML::Node document = parse_yaml(read_text(path, kMaxYaml), path, true);
  if (!document.IsMap() || document.size() == 0) fail("{}: expected models as NAME: RUN FILE, or NAME: [RUN FILE, KEY=VALUE, ...]", {path});
  std::vector<Contestant> all;
  for (const auto& entry : document) {
    const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "";
    check_name(name, place_of(path, entry.first), all);
    const std::vector<Contestant> some = contestants_of(name, entry.second, path);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::vector<Contestant> with_grid(std::vector<Contestant> contestants, std::vector<std::string>& common) {
  for (const std::string& word : std::exchange(common, {})) {
    std::vector<Contestant> more = with_word(contestants, word, word);
    if (more.back().grid.size() > contestants.back().grid.size()) contestants = std::move(more);
    else common.push_back(word);
  }
  for (const Contestant& each : contestants) {
    const std::vector<std::string> words = each.overrides_and(common);
    for (const auto& [key, value] : each.grid) {
      const std::string begin = key + "=";
      const auto last = std::find_if(words.rbegin(), words.rend(), [&](const std::string& word) { return word.starts_with(begin); });
      if (*last != begin + value) fail("{}: {}: a list of values, and then {}", {each.model, key, *last});
    }
  }
  return contestants;
}

}  // namespace ricci::apps
