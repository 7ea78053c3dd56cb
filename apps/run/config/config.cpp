// Reading: YAML into members, with the place of every fault.
#include "apps/run/config/config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>
#include <string_view>

#include "apps/run/config/builds.h"
#include "apps/run/config/nearest.h"
#include "apps/run/config/yaml.h"
#include "core/error.h"
#include "core/files/file.h"

namespace ricci::apps {
namespace {

namespace fs = std::filesystem;

std::string shown(const std::string& text) { return one_line(text); }

using Kind = YamlValue::Kind;

std::string shown(const YamlValue& node) {
  if (node.kind == Kind::text) return "'" + shown(node.text) + "'";
  if (node.kind == Kind::list) return "a list";
  return node.kind == Kind::keys ? "keys and values" : "nothing";
}

struct Setting {
  std::string key, place;  // place: "run.yaml:3" or "command line"
  YamlValue value;
  bool may_be_unread = false;
  std::string folder = {};  // of the run file; empty on the command line
  bool takes_back = false;  // what was said of the key before
};

// ---- Values
template <class Number> bool parse_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

// Each parse returns whether the node is a value of the type; `what` of the type completes "expected ...".
bool parse(const YamlValue& node, std::string& value) {
  value = node.text;
  return node.kind == Kind::text;
}
// 2000, and 2e3: a number with an exponent is an integer where it has one and every integer of its size is exact.
template <class Integer> bool parse_integer(const YamlValue& node, Integer& value) {
  if (node.kind != Kind::text) return false;
  if (parse_number(node.text, value)) return true;
  constexpr double most = 1LL << 53;
  double number = 0;
  if (node.text.find_first_of("eE") == std::string::npos || !parse_number(node.text, number)) return false;
  if (number != std::floor(number) || std::abs(number) > most || (number < 0 && std::is_unsigned_v<Integer>)) return false;
  value = static_cast<Integer>(number);
  return true;
}
bool parse(const YamlValue& node, int64_t& value) { return parse_integer(node, value); }
bool parse(const YamlValue& node, uint64_t& value) { return parse_integer(node, value); }
bool parse(const YamlValue& node, double& value) {
  return node.kind == Kind::text && parse_number(node.text, value) && std::isfinite(value);
}
bool parse(const YamlValue& node, bool& value) {
  if (node.kind != Kind::text) return false;
  const std::string& text = node.text;
  value = text == "true" || text == "True" || text == "TRUE";
  return value || text == "false" || text == "False" || text == "FALSE";
}
template <class T> bool parse(const YamlValue& node, std::optional<T>& value) {
  if (node.kind == Kind::nothing) value.reset();
  return node.kind == Kind::nothing || parse(node, value.emplace());
}
template <class T> bool parse(const YamlValue& node, std::vector<T>& values) {
  values.clear();
  if (node.kind == Kind::nothing) return true;
  if (node.kind != Kind::list) return parse(node, values.emplace_back());
  for (const YamlValue& each : node.items)
    if (!parse(each, values.emplace_back())) return false;
  return true;
}
// "0:8, 8:256"
bool parse_ranges(std::string_view text, std::vector<Range>& ranges) {
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    std::string_view one = text.substr(at, comma - at);
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    const size_t colon = one.find(':');
    Range& range = ranges.emplace_back();
    if (colon == one.npos || !parse_number(one.substr(0, colon), range.lo) || !parse_number(one.substr(colon + 1), range.hi)) return false;
    at = comma + 1;
  }
  return true;
}
bool parse(const YamlValue& node, std::vector<Range>& ranges) {
  ranges.clear();
  if (node.kind == Kind::nothing) return true;
  if (node.kind == Kind::text) return parse_ranges(node.text, ranges);
  if (node.kind != Kind::list) return false;
  for (const YamlValue& each : node.items) {
    std::vector<int64_t> ends;
    if (each.kind == Kind::text ? !parse_ranges(each.text, ranges) : !parse(each, ends) || ends.size() != 2) return false;
    if (each.kind != Kind::text) ranges.push_back({ends[0], ends[1]});
  }
  return true;
}

const char* what(const std::string&) { return "text"; }
const char* what(int64_t) { return "integer"; }
const char* what(uint64_t) { return "integer of 0 or more"; }
const char* what(double) { return "number"; }
const char* what(bool) { return "true or false"; }
const char* what(const std::optional<int64_t>&) { return "integer or null"; }
const char* what(const std::vector<std::string>&) { return "text or list of texts"; }
const char* what(const std::vector<double>&) { return "number or list of numbers"; }
const char* what(const std::vector<int64_t>&) { return "integer or list of integers"; }
const char* what(const std::vector<Range>&) { return "ranges as 0:8, 8:256 or [[0, 8], [8, 256]]"; }

void store_choice(const Setting& setting, const Field& field, const ChoiceMember& choice) {
  std::string list;
  for (size_t i = 0; i < choice.names.size(); ++i) {
    if (setting.value.kind == Kind::text && setting.value.text == choice.names[i])
      return static_cast<void>(*choice.number = static_cast<uint8_t>(i));
    list += (i ? ", " : "") + std::string(choice.names[i]);
  }
  fail("{}: {}: expected one of {}, got {}", {setting.place, field.key, list, shown(setting.value)});
}

// A path that a run file gives is looked for beside that file first.
void look_beside(const Setting& setting, const Field& field, std::string& path) {
  if (!field.names_file || setting.folder.empty() || path.empty() || path.starts_with('/') || !field.names_file(path)) return;
  std::error_code ignored;
  if (const fs::path beside = fs::path(setting.folder) / path; fs::exists(beside, ignored)) path = beside.string();
}
void look_beside(const Setting& setting, const Field& field, std::vector<std::string>& paths) {
  for (std::string& path : paths) look_beside(setting, field, path);
}
template <class T> void look_beside(const Setting&, const Field&, const T&) {}

void store(const Setting& setting, const Field& field) {
  std::visit(
      [&]<class Member>(const Member& member) {
        if constexpr (std::is_same_v<Member, ChoiceMember>) {
          store_choice(setting, field, member);
        } else if (!parse(setting.value, *member)) {
          fail("{}: {}: expected {}, got {}", {setting.place, field.key, what(*member), shown(setting.value)});
        } else {
          look_beside(setting, field, *member);
        }
      },
      field.value);
}

// ---- Keys
bool is_known(const std::vector<Field>& fields, const std::string& key) {
  return std::any_of(fields.begin(), fields.end(), [&](const Field& field) { return field.key == key; });
}

// Several choices may have a key of this name; the one that is read gets the value.
void store_where_read(const std::vector<Field>& fields, const Setting& setting) {
  std::string readers;
  for (const Field& field : fields) {
    if (field.key != setting.key) continue;
    if (field.is_read) return store(setting, field);
    readers += (readers.empty() ? "" : ", ") + field.by;
  }
  if (setting.may_be_unread) return;
  fail("{}: {}: nothing reads it here, only {}", {setting.place, setting.key, readers});
}

bool is_section(const std::vector<Field>& fields, const std::string& key) {
  const auto inside = [&](const Field& field) { return field.key.starts_with(key + "."); };
  return std::any_of(fields.begin(), fields.end(), inside);
}

// Turns nodes into settings of known keys.
struct Collector {
  const std::vector<Field>& fields;
  std::string source;  // file, or "command line"
  bool has_lines;
  bool may_be_unread = false;  // keys that nothing reads are passed over
  std::string folder = {};     // of the file
  std::vector<Setting> settings = {};
  std::set<std::string> seen = {};

  std::string place(const YamlValue& node) const { return has_lines ? source + ":" + std::to_string(node.line) : source; }
  void add(const std::string& key, const std::string& where, const YamlValue& value) {
    if (is_section(fields, key)) return add_section(key + ".", where, value);
    if (!is_known(fields, key) && may_be_unread) return;
    if (!is_known(fields, key)) fail("{}: unknown key '{}'{}", {where, shown(key), suggestion_for(key, fields)});
    if (!seen.insert(key).second) fail("{}: {} is given twice", {where, key});
    settings.push_back({key, where, value, may_be_unread, folder});
  }
  void add_section(const std::string& prefix, const std::string& where, const YamlValue& node) {
    if (node.kind == Kind::nothing) return;
    if (node.kind != Kind::keys) {
      const std::string name = prefix.empty() ? "" : prefix.substr(0, prefix.size() - 1) + ": ";
      fail("{}: {}expected keys and values, got {}", {where, name, shown(node)});
    }
    for (size_t i = 0; i + 1 < node.items.size(); i += 2) {
      const YamlValue& key = node.items[i];
      if (key.kind != Kind::text) fail("{}: expected a key, got {}", {place(key), shown(key)});
      add(prefix + key.text, place(key), node.items[i + 1]);
    }
  }
};

// The config.yaml of a run folder that was made before the first line of such files told the version. It lists every key that
// there was.
bool lists_every_key(const std::string& text) {
  const std::vector<std::string_view> comments = comments_on_top(text);
  return !comments.empty() && comments[0].starts_with("# commit ") && std::none_of(comments.begin(), comments.end(), tells_version);
}

// The config.yaml of a run. What lies beside it is the run's own, and no file that it was trained on.
bool is_written_by_training(const std::string& text) {
  const std::vector<std::string_view> comments = comments_on_top(text);
  return !comments.empty() && tells_build(comments[0]);
}

void read_file(const std::string& path, Collector& into) {
  const bool is_yaml = path.ends_with(".yaml") || path.ends_with(".yml");
  std::error_code ignored;
  try {
    const std::string text = read_text(path, kMaxYaml);
    into.may_be_unread = lists_every_key(text);
    if (!is_written_by_training(text)) into.folder = fs::path(path).parent_path().string();
    const YamlValue root = parse_yaml(text, path, true);
    if (!is_yaml && root.kind == Kind::nothing) fail("{}: there is no key in it", {path});
    into.add_section("", into.place(root), root);
  } catch (const Error& error) {
    if (is_yaml || !fs::is_regular_file(path, ignored)) throw;
    fail("{}; {} is read as a run file, data={} trains on it as a text", {error.what(), path, path});
  }
}

void read_override(const std::string& assignment, Collector& into) {
  if (assignment.starts_with('~')) {
    const std::string key = assignment.substr(1, assignment.find('=') - 1);
    if (!is_known(into.fields, key) && !is_section(into.fields, key))
      fail("{}: unknown key '{}'{}", {into.source, shown(key), suggestion_for(key, into.fields)});
    if (key.size() + 1 < assignment.size())
      fail("{}: ~{} takes the key back and has no value, expected ~{}, got '{}'", {into.source, key, key, shown(assignment)});
    into.settings.push_back({.key = key, .place = into.source, .value = {}, .takes_back = true});
    return;
  }
  const size_t equals = assignment.find('=');
  if (equals == assignment.npos || equals == 0) fail("{}: expected key=value, got '{}'", {into.source, shown(assignment)});
  const YamlValue value = parse_yaml(assignment.substr(equals + 1), into.source + ": " + shown(assignment), false);
  into.seen.clear();
  into.add(assignment.substr(0, equals), into.source, value);
}

// Leaves out what is taken back later, a key or a whole section, and the word that does so.
std::vector<Setting> without_taken_back(const std::vector<Setting>& settings) {
  std::vector<Setting> kept;
  for (const Setting& setting : settings) {
    if (setting.takes_back)
      std::erase_if(kept, [&](const Setting& before) { return before.key == setting.key || before.key.starts_with(setting.key + "."); });
    else kept.push_back(setting);
  }
  return kept;
}

void store_deciding(const std::vector<Setting>& settings, const std::vector<Field>& fields) {
  for (const Setting& setting : settings)
    for (const Field& field : fields)
      if (field.key == setting.key && field.is_deciding) store(setting, field);
}

// The defaults of the keys that follow the choices.
Texts defaults_of(const std::vector<Field>& fields) {
  Texts defaults;
  for (const Field& field : fields)
    if (field.is_read && field.follows_choices) defaults[field.key] = value_text(field);
  return defaults;
}

// The keys of which the last word is a value.
std::set<std::string> keys_with_values(const std::vector<Setting>& settings) {
  std::set<std::string> keys;
  for (const Setting& setting : settings) {
    if (setting.value.kind == Kind::nothing) keys.erase(setting.key);
    else keys.insert(setting.key);
  }
  return keys;
}

}  // namespace

std::vector<std::string> store(const std::vector<Field>& fields, const std::string& path, const std::vector<std::string>& overrides,
    const std::function<std::vector<std::string>()>& inherited, const std::function<std::vector<Field>()>& after_deciding) {
  Collector file{fields, path, true}, command_line{fields, "command line", false};
  if (!path.empty()) read_file(path, file);
  for (const std::string& assignment : overrides) read_override(assignment, command_line);

  std::vector<Setting> given = std::move(file.settings);
  given.insert(given.end(), command_line.settings.begin(), command_line.settings.end());
  given = without_taken_back(given);
  store_deciding(given, fields);
  Collector lowest{fields, "inherited", false, true};
  for (const std::string& assignment : inherited()) read_override(assignment, lowest);
  std::vector<Setting> all = std::move(lowest.settings);
  all.insert(all.end(), given.begin(), given.end());
  store_deciding(all, fields);

  const std::vector<Field> read = after_deciding();
  const Texts defaults = defaults_of(read);
  for (Setting& setting : all) {
    const auto found = defaults.find(setting.key);
    if (found != defaults.end() && setting.value.kind == Kind::nothing) setting.value = {Kind::text, found->second};
    store_where_read(read, setting);
  }
  std::vector<std::string> following;
  const std::set<std::string> said = keys_with_values(given);
  for (const auto& [key, value] : defaults_of(read))
    if (value == defaults.at(key) && !said.count(key)) following.push_back(key);
  return following;
}

}  // namespace ricci::apps
