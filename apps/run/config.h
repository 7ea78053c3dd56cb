// Reads run files (YAML) and KEY=VALUE arguments into structs that list their keys (core/fields.h).
//   TrainConfig config = load_config<TrainConfig>("run.yaml", {"model.layers=6", "lr=3e-4"});
// The last setting of a key wins. model.layers is the key `layers` of the mapping `model`.
#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/fields.h"

namespace YAML {
class Node;
}

namespace ricci::apps {

// ---- YAML
inline constexpr int64_t kMaxYaml = 256 << 10;  // bytes
inline constexpr int kDeepestYaml = 32;         // nesting depth of lists and mappings

// Parses one YAML document; returns null if the text is empty. Errors, with `source` and a line: the text is not YAML, has more than one
// document, contains an alias, is too long or is nested too deeply.
YAML::Node parse_yaml(const std::string& text, const std::string& source, bool has_lines);

// ---- Settings
struct Setting {
  std::string key, place;  // place: "run.yaml:3" or "command line"
  std::shared_ptr<const YAML::Node> value;
  std::string folder = {};   // where files are searched for first; empty on the command line
  bool is_optional = false;  // skipped if the config does not read the key
};
using Settings = std::vector<Setting>;

// The settings of a file (none if the path is empty), then the overrides. "model.layers=6" sets a key; "~model.layers" drops its earlier
// settings, and "~model" drops all keys of the mapping. `base: other.yaml` in a file first reads other.yaml, from the same folder. Errors,
// with file and line: the file is unreadable or not YAML, the file has a duplicate key, the overrides have a duplicate list of texts, a key
// is unknown (the message suggests the nearest).
Settings settings_of(const std::string& path, const std::vector<std::string>& overrides, const std::vector<Field>& fields);

// Returns the settings in a text that to_yaml wrote. Errors start with `source`: the text is not YAML, a key is unknown.
Settings recorded_settings(const std::string& yaml, const std::string& source, const std::vector<Field>& fields);

// The last setting of the key, or null.
const Setting* find_setting(const Settings& settings, std::string_view key);

// Stores only the keys that select other keys or their defaults.
void store_choices(const Settings& settings, const std::vector<Field>& fields);
// Stores all settings and returns the keys that got a value. Null unsets an optional key or a key with a preset's default. Errors: this
// config does not read the key (the message names the choices that do), or the value is wrong:
//   run.yaml:3: model.d: expected integer, got 'abc'
std::set<std::string> store(const Settings& settings, const std::vector<Field>& fields);

// Makes a config from the settings. Errors: as for store and check(config).
template <class Config> Config config_of(const Settings& settings) {
  Config config;
  store_choices(settings, fields_of(config));
  if constexpr (requires { config.given; })
    for (const Setting& setting : settings) config.given.insert(setting.key);  // a preset must not change these keys
  apply_preset(config);
  store_choices(settings, fields_of(config));  // a preset may have changed a choice
  [[maybe_unused]] std::set<std::string> given = store(settings, fields_of(config));
  if constexpr (requires { config.given; }) config.given = std::move(given);
  check(config);
  return config;
}
template <class Config> Config recorded_config(const std::string& yaml, const std::string& source) {
  Config config;
  return config_of<Config>(recorded_settings(yaml, source, fields_of(config)));
}
template <class Config> Config load_config(const std::string& path, const std::vector<std::string>& overrides = {}) {
  Config config;
  return config_of<Config>(settings_of(path, overrides, fields_of(config)));
}

// Our keys, with their names in nanoGPT (train.py, model.py) and transformers (TrainingArguments, model configurations).
extern const std::vector<std::pair<std::string_view, std::vector<std::string_view>>> kOtherNames;

// The build in the first line of a run's config.yaml, "# ricci 0.3.0, commit 1a2b3c4d5e, ..."; empty for other files.
std::string build_line(std::string_view text);

// ---- Printing
std::string value_text(const Field& field);                                      // in YAML, also for KEY=VALUE
std::string value_text(const std::vector<Field>& fields, std::string_view key);  // a mapping if mixers differ
// The text as YAML, in quotes if it could be read as a different type.
std::string yaml_text(const std::string& text);

std::string to_yaml(const std::vector<Field>& fields);
// The keys that the config reads; only the given keys if the config records them.
template <class Config> std::string to_yaml(Config config) {
  std::vector<Field> fields = fields_of(config);
  std::erase_if(fields, [&](const Field& field) {
    if constexpr (requires { config.given; }) return !field.is_read || !config.given.contains(field.key);
    else return !field.is_read;
  });
  return to_yaml(fields);
}

// The output of --help-config: the keys of a group, or all, with their descriptions as comments. A key that this config does not read is
// commented out. A key with a preset's default is printed as null. Error: the group does not exist.
std::string describe(const std::vector<Field>& fields, const std::string& group = "");
template <class Config> std::string describe(Config config, const std::string& group = "") { return describe(fields_of(config), group); }

// ---- Values (values.cpp)
// The mixer that reads a field, such as sdp; empty for other fields.
std::string mixer_of(const Field& field);
// The value for the field's mixer if the node maps mixers to values, as in {sdp: 4, dispatcher: 1}; undefined if the map lacks the mixer.
YAML::Node value_for(const Field& field, const YAML::Node& node);
// Stores the value for the field, and returns whether it has the field's type. expected_value() returns the words after "expected" in an
// error.
bool parse_value(const YAML::Node& node, const Field& field);
std::string expected_value(const Field& field);

}  // namespace ricci::apps
