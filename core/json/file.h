// Small files of JSON that other programs write next to weights.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/files/file.h"
#include "core/json/value.h"

namespace ricci {

// One object. Each call gives the value of a key, or nothing where the key is missing or null. Error: a value of another type.
class JsonFile {
 public:
  // Errors: unreadable, more than 16 MiB, nested too deeply, not JSON, no object; each names the file.
  explicit JsonFile(const std::string& path) : path_(path), object_(parse_json(read_text(path, kLimits.bytes), path.c_str(), kLimits)) {
    if (!object_.is_object()) fail("{}: expected a JSON object", {path});
  }
  // An object inside of a file, or null, which has no keys. The path is for messages.
  JsonFile(const std::string& path, JsonValue object) : path_(path), object_(std::move(object)) {}
  // A file that does not exist has no keys.
  static JsonFile if_there(const std::string& path) { return ricci::is_there(path) ? JsonFile(path) : JsonFile(path, JsonValue()); }

  const std::string& path() const { return path_; }
  bool is_there() const { return object_.is_object(); }
  std::optional<bool> flag(const char* key) const { return get<bool>(key); }
  std::optional<int64_t> integer(const char* key) const { return get<int64_t>(key); }
  std::optional<double> number(const char* key) const { return get<double>(key); }
  std::optional<std::string> text(const char* key) const { return get<std::string>(key); }
  const JsonValue& value(const char* key) const { return object_[key]; }  // any type; null if it is missing
  const JsonValue& object() const { return object_; }
  auto texts(const char* key) const { return get<std::vector<std::string>>(key); }
  auto texts_by_name(const char* key) const { return get<std::map<std::string, std::string>>(key); }

 private:
  static constexpr JsonLimits kLimits{.bytes = 16 << 20, .depth = 32};
  template <class T> std::optional<T> get(const char* key) const {
    return object_.member<T>(key, path_ + ": ", (": " + one_line(object_[key].to_json()) + ", expected ").c_str());
  }

  std::string path_;
  JsonValue object_;
};

}  // namespace ricci
