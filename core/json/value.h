// A JSON text as a value, with the members of objects in the order of the text. For files from outside: their size and their nesting are
// bounded, and errors name what was found.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ricci {

class JsonValue {
 public:
  using List = std::vector<JsonValue>;
  struct Object {
    std::vector<std::string> keys;  // a key that occurs twice is here twice
    List values;
  };

  bool is_null() const { return is<std::nullptr_t>(); }
  bool is_object() const { return is<Object>(); }
  bool is_list() const { return is<List>(); }
  bool is_text() const { return is<std::string>(); }
  bool is_integer() const { return is<int64_t>(); }
  bool is_number() const { return is<int64_t>() || is<double>(); }
  bool is_bool() const { return is<bool>(); }

  // The value, which must be of that type.
  const std::string& text() const { return std::get<std::string>(value_); }
  int64_t integer() const { return std::get<int64_t>(value_); }
  double number() const { return is_integer() ? static_cast<double>(integer()) : std::get<double>(value_); }
  bool boolean() const { return std::get<bool>(value_); }
  // The keys of an object; empty where this is none.
  const std::vector<std::string>& keys() const;
  // The values of a list, or of an object in the order of its keys; empty where this is neither.
  const List& items() const;

  // The member of this key, the last of several; null where this is no object or has no such member.
  const JsonValue& operator[](std::string_view key) const;

  // The member of this key as a value of type T; nothing where it is missing or null. Error where it is of another type: `before`, the
  // key, `between` and what T is. ("a.json: ", ": expected ") make "a.json: n: expected an integer".
  template <class T> std::optional<T> member(std::string_view key, const std::string& before, const char* between) const {
    const JsonValue& value = (*this)[key];
    if (value.is_null()) return {};
    if (std::optional<T> typed = value.as<T>()) return typed;
    fail_member(std::string(key), before, between, expected(T()));
  }

  // As JSON on one line.
  std::string to_json() const;

 private:
  friend class JsonBuilder;
  // Nothing where this is of another type. T: a type that expected() has.
  template <class T> std::optional<T> as() const;
  static const char* expected(bool) { return "true or false"; }
  static const char* expected(int64_t) { return "an integer"; }
  static const char* expected(double) { return "a number"; }
  static const char* expected(const std::string&) { return "a text"; }
  static const char* expected(const std::vector<std::string>&) { return "a list of texts"; }
  static const char* expected(const std::map<std::string, std::string>&) { return "names with texts"; }
  [[noreturn]] static void fail_member(const std::string& key, const std::string& before, const char* between, const char* expected);
  template <class T> bool is() const { return std::holds_alternative<T>(value_); }
  void append_json(std::string& json) const;
  std::variant<std::nullptr_t, bool, int64_t, double, std::string, List, Object> value_ = nullptr;
};

template <> std::optional<bool> JsonValue::as() const;
template <> std::optional<int64_t> JsonValue::as() const;
template <> std::optional<double> JsonValue::as() const;
template <> std::optional<std::string> JsonValue::as() const;
template <> std::optional<std::vector<std::string>> JsonValue::as() const;
template <> std::optional<std::map<std::string, std::string>> JsonValue::as() const;

struct JsonLimits {
  int64_t bytes = 64 << 20;
  int depth = 16;
  int64_t values = 1 << 22;  // strings, numbers, lists, objects
};

// Errors, each with `what` in front: too long, nested too deeply, too many values, not JSON and at which byte.
JsonValue parse_json(std::string_view text, const char* what, const JsonLimits& limits = {});

// The depth of lists and objects in a text of JSON, to be asked before it is parsed: code that walks through a parsed value calls
// itself for every level, and the stack ends at some. Brackets inside strings do not count.
int json_depth(std::string_view text);

// The text as a JSON string, quotes included. It must be valid UTF-8. In ASCII, other characters are written as \u escapes.
std::string quoted_json(std::string_view text, bool ascii = false);

}  // namespace ricci
