// Run files: YAML, and key=value from the command line, into structs that list their keys in a visit_fields function.
//   TrainConfig config = load_config<TrainConfig>("run.yaml", {"model.layers=6", "lr=3e-4"});
// Keys of a struct inside a struct are dotted: model.layers is the key `layers` of the mapping `model`.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/choice.h"
#include "core/fields.h"
#include "core/range.h"

namespace ricci::apps {

// A member that is an enum with names (core/choice.h), as the number of the name.
struct ChoiceMember {
  uint8_t* number;
  std::vector<const char*> names;
};

// A member of a config. A single value may stand for a list of one; null for an empty list or optional. Ranges are "0:8, 8:256" or
// [[0, 8], [8, 256]].
using FieldValue = std::variant<bool*, int64_t*, uint64_t*, double*, std::string*, std::optional<int64_t>*, std::vector<std::string>*,
    std::vector<double>*, std::vector<int64_t>*, std::vector<Range>*, ChoiceMember>;

struct Field {
  std::string key;  // dotted
  FieldValue value;
  const char* description;
  KeyInfo info;  // core/fields.h
};

// Every key, read or not, in the order of visit_fields. Pointers into the config, which must outlive them.
template <class Config> std::vector<Field> fields_of(Config& config, const std::string& prefix = "") {
  std::vector<Field> fields;
  visit_fields(config, [&]<class Member>(const char* key, Member& member, const char* description, const KeyInfo& info = {}) {
    if constexpr (Choice<Member>) {
      const auto names = choices(Member{});
      fields.push_back({prefix + key, ChoiceMember{reinterpret_cast<uint8_t*>(&member), {names.begin(), names.end()}}, description, info});
    } else if constexpr (std::is_constructible_v<FieldValue, Member*>) {
      fields.push_back({prefix + key, &member, description, info});
    } else {
      for (Field& field : fields_of(member, prefix + key + ".")) fields.push_back(std::move(field));
    }
  });
  return fields;
}

// Stores what a file (none if the path is empty) and then the overrides, "model.layers=6" with the value in YAML, say of the
// fields; the last word on a key counts. "~model.layers" takes back what was said of the key before it, "~model" of all its keys.
// Keys that decide about others come first. inherited() then tells further assignments, of the lowest rank: those that nothing
// reads are passed over. after_deciding() gives the keys that are left their defaults, and returns the fields again, as it is
// known now which of them are read; then come the rest.
// Errors: an unreadable file, not YAML, a key twice in the file, an unknown key (with the nearest known one), a key that
// nothing reads as the config stands (with who does), a value of the wrong type or not allowed. Each names file and line:
//   run.yaml:3: model.d: expected integer, got 'abc'
// Only in the config.yaml of a run folder that was made before such files told the version (apps/run/config/comments.h), keys that
// nothing reads are passed over: it lists every key that there was.
void store(const std::vector<Field>& fields, const std::string& path, const std::vector<std::string>& overrides,
    const std::function<std::vector<std::string>()>& inherited, const std::function<std::vector<Field>()>& after_deciding);

// As YAML that load_config reads back to the same config: the keys that are read, in the order of visit_fields.
std::string to_yaml(const std::vector<Field>& fields);
// Every key with its description as a comment: what --help-config prints, and a run file to start from. A key that is not
// read as the config stands is a comment as a whole.
std::string describe(const std::vector<Field>& fields);

// The value of a field as to_yaml writes it.
std::string value_text(const Field& field);

template <class Config> std::string to_yaml(Config config) { return to_yaml(fields_of(config)); }
template <class Config> std::string describe(Config config) { return describe(fields_of(config)); }

// Defaults, then what the presets give, then what is inherited, then the file, then the overrides; checked and resolved.
// inherited(config) is asked once the keys that decide are known. Errors: those of store and of the config's check.
template <class Config>
Config load_config(const std::string& path, const std::vector<std::string>& overrides = {},
    const std::function<std::vector<std::string>(const Config&)>& inherited = {}) {
  Config config;
  const auto inherit = [&] { return inherited ? inherited(config) : std::vector<std::string>(); };
  store(fields_of(config), path, overrides, inherit, [&] {
    apply_preset(config);
    return fields_of(config);
  });
  check(config);
  resolve(config);
  return config;
}

}  // namespace ricci::apps
