// Run files: YAML, and key=value from the command line, into structs that list their keys (core/fields.h).
//   TrainConfig config = load_config<TrainConfig>("run.yaml", {"model.layers=6", "lr=3e-4"});
// Keys of a struct inside a struct are dotted: model.layers is the key `layers` of the mapping `model`.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/fields.h"

namespace ricci::apps {

// ---- YAML
inline constexpr int64_t kMaxYaml = 256 << 10;  // bytes
inline constexpr int kDeepestYaml = 32;         // lists and mappings inside each other

struct YamlValue {
  enum class Kind : uint8_t { nothing, text, list, keys };
  Kind kind = Kind::nothing;
  std::string text = {};              // numbers are texts, too
  std::vector<YamlValue> items = {};  // a list's; for keys: a key, its value, the next key, ...
  int64_t line = 1;                   // where it starts
  bool is_plain = false;              // a text without quotes
};

// The document of a text, nothing where the text is empty. Errors begin with `source`, and a line where the text has
// lines. Errors: not YAML, more than one document, too long, nested too deeply, too many values.
YamlValue parse_yaml(const std::string& text, const std::string& source, bool has_lines);

// ---- Keys
using TextsByKey = std::map<std::string, std::string>;

// The config.yaml of a run that has this key is read without it, because the run can continue; elsewhere the key is unknown.
constexpr const char* kRemovedKey = "max_ranks";

// Stores the values of the fields from a file (none if the path is empty) and then from the overrides, "model.layers=6" with the value
// in YAML. The last setting of a key counts. "~model.layers" drops the earlier settings of the key, "~model" of all its keys.
// Keys that decide about others come first. inherited() then gives further assignments, of the lowest rank; the ones that nothing
// reads are passed over. give_defaults() gives the keys that are left their defaults; settings of deciding keys are stored again.
// fields_now() returns the fields, as it is known now which of them are read; then come the rest. Returns the keys that follow the choices
// (Field::follows_choices): they are unset or null, and have the default of the chosen preset and family. Errors: an unreadable file, not
// YAML, a key twice in the file, a list of texts twice in the overrides, an unknown key (with the nearest known one), a key that nothing
// reads as the config is (with the choices that do), a value of the wrong type or not allowed. Each names file and line:
//   run.yaml:3: model.d: expected integer, got 'abc'
// Only in the config.yaml of a run folder that is older than the version in such files (see below), keys that nothing reads are
// passed over, because it lists every key that there was. kRemovedKey is passed over in every config.yaml of a run.
std::vector<std::string> store(const std::vector<Field>& fields, const std::string& path, const std::vector<std::string>& overrides,
    const std::function<std::vector<std::string>()>& inherited, const std::function<void()>& give_defaults,
    const std::function<std::vector<Field>()>& fields_now);

// Names that nanoGPT and Hugging Face's transformers have for our keys. They complete the error about an unknown key.
struct OtherNames {
  std::string_view here;
  std::vector<std::string_view> there;
};
const std::vector<OtherNames>& other_names();

// As YAML that load_config reads back to the same config: the keys that are read, in the order of visit_fields. The user's settings of
// the keys in `following` are written in place of their values, which follow as a comment:  ff: null  # 512
std::string to_yaml(const std::vector<Field>& fields, const TextsByKey& following);
// Every key with its description as a comment: what --help-config prints, and a run file to start from. A key that is not
// read as the config is, is a comment as a whole; one that follows the choices is null.
std::string describe(const std::vector<Field>& fields);

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
// inherited(config) is asked once the keys that decide are known. Errors: as for store, and for the config's check.
template <class Config>
Config load_config(const std::string& path, const std::vector<std::string>& overrides = {},
    const std::function<std::vector<std::string>(const Config&)>& inherited = {}) {
  Config config;
  const auto inherit = [&] { return inherited ? inherited(config) : std::vector<std::string>(); };
  const std::vector<std::string> following = store(
      fields_of(config), path, overrides, inherit, [&] { apply_preset(config); }, [&] { return fields_of(config); });
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

// ---- Comments on top of the config.yaml of a run, for the builds that trained it:
//   # ricci 0.1.0, commit 1a2b3c4d5e, g++ 12.2.0, device cpu (avx2), threads 2, seed 1337
//   # after step 250: ricci 0.1.0, commit 2b3c4d5e6f, g++ 12.2.0, device cpu (avx2), threads 2, seed 1337
// In older folders the first line has no version: "# commit 1a2b3c4d5e, ...".

// Line by line, without their ends.
inline std::vector<std::string_view> comments_on_top(std::string_view text) {
  std::vector<std::string_view> lines;
  while (text.starts_with('#')) {
    lines.push_back(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(lines.back().size() + 1, text.size()));
  }
  return lines;
}

inline bool has_version(std::string_view comment) {
  return comment.starts_with("# ricci ") || (comment.starts_with("# after step ") && comment.find(": ricci ") != comment.npos);
}

inline bool tells_build(std::string_view comment) {
  return has_version(comment) || comment.starts_with("# commit ") || comment.starts_with("# after step ");
}

// The lines about builds, oldest first, without their "# ".
inline std::vector<std::string> builds_in(std::string_view text) {
  std::vector<std::string> builds;
  for (const std::string_view comment : comments_on_top(text))
    if (tells_build(comment)) builds.emplace_back(comment.substr(2));
  return builds;
}

}  // namespace ricci::apps
