// A JSON text as a value, with the members of objects in the order of the text. For files from outside: their size and the depth
// of their nesting are bounded, and errors name what was found.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ricci {

class JsonValue {
 public:
  using List = std::vector<JsonValue>;
  struct Object {
    std::vector<std::string> keys;  // where one stands twice, both
    List values;
  };

  bool is_null() const { return is<std::nullptr_t>(); }
  bool is_object() const { return is<Object>(); }
  bool is_list() const { return is<List>(); }
  bool is_text() const { return is<std::string>(); }
  bool is_integer() const { return is<int64_t>(); }
  bool is_number() const { return is<int64_t>() || is<double>(); }
  bool is_bool() const { return is<bool>(); }

  // Of a value of that type.
  const std::string& text() const { return std::get<std::string>(value_); }
  int64_t integer() const { return std::get<int64_t>(value_); }
  double number() const { return is_integer() ? static_cast<double>(integer()) : std::get<double>(value_); }
  bool boolean() const { return std::get<bool>(value_); }
  // The keys of an object; empty where this is none.
  const std::vector<std::string>& keys() const;
  // What a list holds, or the values of an object in the order of its keys; empty where this is neither.
  const List& items() const;

  // The member of this key, the last where it stands several times; null where this is no object or has no such member.
  const JsonValue& operator[](std::string_view key) const;

  // As JSON on one line.
  std::string to_json() const;

 private:
  friend class JsonBuilder;
  template <class T> bool is() const { return std::holds_alternative<T>(value_); }
  void append_json(std::string& json) const;
  std::variant<std::nullptr_t, bool, int64_t, double, std::string, List, Object> value_ = nullptr;
};

struct JsonLimits {
  int64_t bytes = 64 << 20;
  int depth = 16;
  int64_t values = 1 << 22;  // strings, numbers, lists, objects
};

// Errors, each with `what` in front: too long, nested too deeply, too many values, not JSON and at which byte.
JsonValue parse_json(std::string_view text, const char* what, const JsonLimits& limits = {});

// The text as a JSON string, quotes included. It must be valid UTF-8. In ASCII, other characters are written as \u escapes.
std::string quoted_json(std::string_view text, bool ascii = false);

}  // namespace ricci
