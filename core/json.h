// JSON. Values have nlohmann/json's types. Texts from outside are parsed with limits. Even a small text could need much memory or deep
// recursion. Members are read by type, and an error names the file, the member and the value found:
//   const Json config = read_json("config.json");
//   const auto heads = read_member<int64_t>(config, "n_head", "config.json");   // config.json: n_head: "12", expected an integer
// Only this header includes nlohmann/json.hpp. No header that a .cu file uses includes this one.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/error.h"

namespace ricci {

using Json = nlohmann::ordered_json;  // members stay in the order of the text, or in insertion order

struct JsonLimits {
  int64_t bytes = 64 << 20;
  int depth = 16;            // levels of nested arrays and objects
  int64_t values = 1 << 22;  // strings, numbers, arrays and objects together
};
// Integers beyond 64 bits become doubles. Errors start with the name: the bytes, levels or values exceed the limits; an object has a
// duplicate key; the text is not JSON (with the byte of the fault).
Json parse_json(std::string_view text, const std::string& name, const JsonLimits& limits = {});
// Reads a file with one object, at most 16 MiB and 32 levels deep. Errors start with the path.
Json read_json(const std::string& path);

// The member at this path of keys: member(root, "model", "merges"). Null if one of the keys is missing.
const Json& member(const Json& object, std::string_view key);
template <class... Keys> const Json& member(const Json& object, std::string_view key, const Keys&... further) {
  return member(member(object, key), further...);
}

// JSON that is safe to print: control characters are escaped, and bytes outside UTF-8 become U+FFFD. One line if `indent` is negative.
// Files with a checksum, such as tokenizer.json, use value.dump() to keep their bytes.
std::string to_text(const Json& value, int indent = -1, bool ascii = false);
std::string quoted_json(std::string_view text);

// Returns whether the value is a T, and the name of T for errors. T is bool, int64_t, double, std::string, std::vector<std::string> or
// std::map<std::string, std::string>.
template <class T> std::pair<bool, const char*> check_type(const Json& value) {
  const auto are_texts = [&] { return std::all_of(value.begin(), value.end(), [](const Json& item) { return item.is_string(); }); };
  if constexpr (std::is_same_v<T, bool>) return {value.is_boolean(), "true or false"};
  else if constexpr (std::is_same_v<T, int64_t>) return {value.is_number_integer(), "an integer"};
  else if constexpr (std::is_same_v<T, double>) return {value.is_number(), "a number"};
  else if constexpr (std::is_same_v<T, std::string>) return {value.is_string(), "a string"};
  else if constexpr (std::is_same_v<T, std::vector<std::string>>) return {value.is_array() && are_texts(), "a list of strings"};
  else return {value.is_object() && are_texts(), "an object with string members"};
}
// The value as T, or nothing if it has a different type.
template <class T> std::optional<T> as(const Json& value) {
  return check_type<T>(value).first ? std::optional<T>(value.get<T>()) : std::nullopt;
}
// The member as T, or nothing if it is missing or null. Error: it has a different type. `where` is the file name.
template <class T> std::optional<T> read_member(const Json& object, const char* key, const std::string& where) {
  const Json& value = member(object, key);
  if (const auto [fits, expected] = check_type<T>(value); !fits && !value.is_null())
    fail("{}: {}: {}, expected {}", {where, key, one_line(to_text(value)), expected});
  return as<T>(value);
}

}  // namespace ricci
