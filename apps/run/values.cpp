// Converts values between YAML and members. Each type is parsed, named and written in this file.
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstring>
#include <sstream>
#include <string_view>

#include "apps/run/config.h"

namespace ricci::apps {
namespace {

template <class Number> bool parse_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

// Each parse() returns whether the node is a value of the type; type_name() returns the words after "expected" in an error.
bool parse(const YAML::Node& node, std::string& value) {
  if (node.IsScalar()) value = node.Scalar();
  return node.IsScalar();
}
// Parses an integer such as 2000, or 2e3 if a double represents every integer of this size exactly.
template <std::integral Integer> bool parse(const YAML::Node& node, Integer& value) {
  if (!node.IsScalar()) return false;
  if (parse_number(node.Scalar(), value)) return true;
  constexpr double most = 1LL << 53;
  double number = 0;
  if (node.Scalar().find_first_of("eE") == std::string::npos || !parse_number(node.Scalar(), number)) return false;
  if (number != std::floor(number) || std::abs(number) > most || (number < 0 && std::is_unsigned_v<Integer>)) return false;
  value = static_cast<Integer>(number);
  return true;
}
bool parse(const YAML::Node& node, double& value) { return node.IsScalar() && parse_number(node.Scalar(), value) && std::isfinite(value); }
bool parse(const YAML::Node& node, bool& value) {
  const std::string text = node.IsScalar() ? node.Scalar() : "";
  value = text == "true" || text == "True" || text == "TRUE";
  return value || text == "false" || text == "False" || text == "FALSE";
}
// Parses 0:8 or [0, 8].
bool parse(const YAML::Node& node, Range& range) {
  if (node.IsSequence()) return node.size() == 2 && parse(node[0], range.lo) && parse(node[1], range.hi);
  const std::string_view text = node.IsScalar() ? std::string_view(node.Scalar()) : "", lo = text.substr(0, text.find(':'));
  return lo.size() < text.size() && parse_number(lo, range.lo) && parse_number(text.substr(lo.size() + 1), range.hi);
}
template <class T> bool parse(const YAML::Node& node, std::optional<T>& value) {
  if (node.IsNull()) value.reset();
  return node.IsNull() || parse(node, value.emplace());
}
template <class T> bool parse(const YAML::Node& node, std::vector<T>& values) {
  values.clear();
  if (node.IsNull()) return true;
  if (!node.IsSequence()) return parse(node, values.emplace_back());
  for (const YAML::Node& each : node)
    if (!parse(each, values.emplace_back())) return false;
  return true;
}
// Parses "0:8, 8:256", or a list.
bool parse(const YAML::Node& node, std::vector<Range>& ranges) {
  if (!node.IsScalar()) return parse<Range>(node, ranges);
  ranges.clear();
  std::istringstream parts(node.Scalar() + ",");
  for (std::string one; std::getline(parts, one, ',');) {
    std::erase(one, ' ');
    if (!parse(YAML::Node(one), ranges.emplace_back())) return false;
  }
  return true;
}
// Parses {tok: 0.1, blocks.*.mixer: 0.5}.
bool parse(const YAML::Node& node, NamedNumbers& numbers) {
  numbers.clear();
  if (node.IsNull()) return true;
  if (!node.IsMap()) return false;
  for (const auto& item : node)
    if (!parse(item.first, numbers.emplace_back().first) || !parse(item.second, numbers.back().second)) return false;
  return true;
}
bool parse(const YAML::Node& node, const ChoiceMember& choice) {
  const auto found = std::find(choice.names.begin(), choice.names.end(), node.Scalar());
  if (!node.IsScalar() || found == choice.names.end()) return false;
  *choice.number = static_cast<uint8_t>(found - choice.names.begin());
  return true;
}

bool parse(const YAML::Node& node, const ChoiceListMember& list) {
  list.numbers->clear();
  const auto parse_one = [&](const YAML::Node& one) { return parse(one, ChoiceMember{&list.numbers->emplace_back(), list.names}); };
  return node.IsSequence() ? node.size() > 0 && std::all_of(node.begin(), node.end(), parse_one) : parse_one(node);
}

std::string type_name(const std::string&) { return "text"; }
std::string type_name(int64_t) { return "integer"; }
std::string type_name(uint64_t) { return "integer of 0 or more"; }
std::string type_name(double) { return "number"; }
std::string type_name(bool) { return "true or false"; }
std::string type_name(const std::vector<Range>&) { return "ranges as 0:8, 8:256 or [[0, 8], [8, 256]]"; }
std::string type_name(const NamedNumbers&) { return "numbers by name, as in {tok: 0.1}"; }
template <class T> std::string type_name(const std::optional<T>&) { return type_name(T()) + " or null"; }
template <class T> std::string type_name(const std::vector<T>&) { return type_name(T()) + " or list of " + type_name(T()) + "s"; }
std::string type_name(const ChoiceMember& choice) { return fmt::format("one of {}", fmt::join(choice.names, ", ")); }
std::string type_name(const ChoiceListMember& list) { return fmt::format("one of {}, or a list of them", fmt::join(list.names, ", ")); }

std::string text_of(const std::string& text) { return yaml_text(text); }
std::string text_of(bool value) { return value ? "true" : "false"; }
template <std::integral Integer> std::string text_of(Integer value) { return std::to_string(value); }
std::string text_of(double value) { return fmt::format("{}", value); }  // the fewest digits that represent the same bits
std::string text_of(const Range& range) { return yaml_text(fmt::format("{}:{}", range.lo, range.hi)); }  // YAML 1.1 reads 20:48 as 1248
std::string text_of(const ChoiceMember& choice) { return yaml_text(choice.names[*choice.number]); }
std::string text_of(const NamedNumbers& numbers) {
  std::string text = "{";
  for (const auto& [name, number] : numbers) text += (text.size() > 1 ? ", " : "") + yaml_text(name) + ": " + text_of(number);
  return text + "}";
}
template <class T> std::string text_of(const std::optional<T>& value) { return value ? text_of(*value) : "null"; }
template <class T> std::string text_of(const std::vector<T>& values) {
  if (values.size() == 1) return text_of(values[0]);
  std::string list = "[";
  for (const T& value : values) list += (list.size() > 1 ? ", " : "") + text_of(value);
  return list + "]";
}
std::string text_of(const ChoiceListMember& list) {
  std::vector<std::string> names;
  for (const uint8_t number : *list.numbers) names.emplace_back(list.names[number]);
  return text_of(names);
}

// Calls f with the member of a field or with its ChoiceMember.
template <class F> auto at_member(const Field& field, const F& f) {
  const auto call = [&](const auto& member) {
    if constexpr (requires { *member; }) return f(*member);
    else return f(member);
  };
  return std::visit(call, field.value);
}

}  // namespace

// Unquoted if every YAML parser reads the same text or number, else quoted as in JSON.
std::string yaml_text(const std::string& text) {
  const auto plain = [](unsigned char c) { return c != 0 && c < 128 && (std::isalnum(c) || std::strchr("_./-", c)); };
  const bool reserved = text == "null" || text == "Null" || text == "NULL" || text == "true" || text == "false";
  if (!text.empty() && text[0] != '-' && !reserved && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += std::string("\\") + c;
    else if (c == '\n') quoted += "\\n";
    else if (c == '\t') quoted += "\\t";
    else if (static_cast<unsigned char>(c) < 32 || c == 127) quoted += fmt::format("\\x{:02x}", c);
    else quoted += c;
  }
  return quoted + '"';
}

std::string mixer_of(const Field& field) {
  constexpr std::string_view start = "mixer: ";
  return field.by.starts_with(start) ? field.by.substr(start.size()) : "";
}

YAML::Node value_for(const Field& field, const YAML::Node& node) {
  return node.IsMap() && !mixer_of(field).empty() ? node[mixer_of(field)] : node;
}

bool parse_value(const YAML::Node& node, const Field& field) {
  const YAML::Node value = value_for(field, node);
  return !value || at_member(field, [&](auto& member) { return parse(value, member); });
}

std::string expected_value(const Field& field) {
  return at_member(field, [](const auto& member) { return type_name(member); });
}

std::string value_text(const Field& field) {
  return at_member(field, [](const auto& member) { return text_of(member); });
}

std::string value_text(const std::vector<Field>& fields, std::string_view key) {
  std::string first, each;
  bool differs = false;
  for (const Field& field : fields) {
    if (!field.is_read || field.key != key) continue;
    const std::string text = value_text(field);
    if (first.empty()) first = text;
    differs |= text != first;
    each += fmt::format("{}{}: {}", each.empty() ? "" : ", ", mixer_of(field), text);
  }
  return differs ? "{" + each + "}" : first;
}

}  // namespace ricci::apps
