// Run files: YAML, and key=value from the command line, into structs that list their keys (core/fields.h).
//   TrainConfig config = load_config<TrainConfig>("run.yaml", {"model.layers=6", "lr=3e-4"});
// Keys of a struct inside a struct are dotted: model.layers is the key `layers` of the mapping `model`.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/fields.h"

namespace ricci::apps {

using TextsByKey = std::map<std::string, std::string>;  // by key

// Stores what a file (none if the path is empty) and then the overrides, "model.layers=6" with the value in YAML, say of the
// fields; the last word on a key counts. "~model.layers" takes back what was said of the key before it, "~model" of all its keys.
// Keys that decide about others come first. inherited() then gives further assignments, of the lowest rank: those that nothing
// reads are passed over. after_deciding() gives the keys that are left their defaults, and returns the fields again, as it is
// known now which of them are read; then come the rest. Returns the keys that follow the choices (Field::follows_choices): nothing
// was said of them, or null, and they have the default of the chosen preset and family.
// Errors: an unreadable file, not YAML, a key twice in the file, an unknown key (with the nearest known one), a key that
// nothing reads as the config stands (with who does), a value of the wrong type or not allowed. Each names file and line:
//   run.yaml:3: model.d: expected integer, got 'abc'
// Only in the config.yaml of a run folder that was made before such files told the version (apps/run/config/builds.h), keys that
// nothing reads are passed over: it lists every key that there was.
std::vector<std::string> store(const std::vector<Field>& fields, const std::string& path, const std::vector<std::string>& overrides,
    const std::function<std::vector<std::string>()>& inherited, const std::function<std::vector<Field>()>& after_deciding);

// As YAML that load_config reads back to the same config: the keys that are read, in the order of visit_fields. What was said of the
// keys in `following` is written in the place of their values, which come behind it as a comment:  ff: null  # 512
std::string to_yaml(const std::vector<Field>& fields, const TextsByKey& following);
// Every key with its description as a comment: what --help-config prints, and a run file to start from. A key that is not
// read as the config stands is a comment as a whole; one that follows the choices is null.
std::string describe(const std::vector<Field>& fields);

struct YamlValue;
// True if the node is a value of the field, which is stored then. What is expected completes "expected ...".
bool parse_value(const YamlValue& node, const Field& field);
std::string expected_value(const Field& field);

// The value of a field as an assignment to its key has it.
std::string value_text(const Field& field);
// The same for a file: YAML 1.1 takes 20:48 for the number 1248, so that ranges need quotes.
std::string value_yaml(const Field& field);
// The values of the keys that are read.
TextsByKey value_texts(const std::vector<Field>& fields);
// The text as YAML, quoted where a reader could take it for something else.
std::string yaml_text(const std::string& text);

template <class Config> std::string to_yaml(Config config) {
  if constexpr (requires { config.following; }) return to_yaml(fields_of(config), config.following);
  else return to_yaml(fields_of(config), {});
}
template <class Config> std::string describe(Config config) { return describe(fields_of(config)); }

// Defaults, then what the presets give, then what is inherited, then the file, then the overrides; checked and resolved.
// inherited(config) is asked once the keys that decide are known. Errors: those of store and of the config's check.
template <class Config>
Config load_config(const std::string& path, const std::vector<std::string>& overrides = {},
    const std::function<std::vector<std::string>(const Config&)>& inherited = {}) {
  Config config;
  const auto inherit = [&] { return inherited ? inherited(config) : std::vector<std::string>(); };
  const std::vector<std::string> following = store(fields_of(config), path, overrides, inherit, [&] {
    apply_preset(config);
    return fields_of(config);
  });
  check(config);
  [[maybe_unused]] const TextsByKey said = value_texts(fields_of(config));
  resolve(config);
  if constexpr (requires { config.following; }) {
    for (const auto& [key, value] : value_texts(fields_of(config)))
      if (said.at(key) != value) config.following[key] = said.at(key);
    for (const std::string& key : following) config.following[key] = "null";
  }
  return config;
}

}  // namespace ricci::apps
