// Small files of JSON that other programs write beside weights.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/json/value.h"

namespace ricci::apps {

// One object. Each call gives the value of a key, or nothing where the key is missing or null. Error: a value of another type.
class JsonFile {
 public:
  // Errors: unreadable, more than 16 MiB, nested too deeply, not JSON, no object; each names the file.
  explicit JsonFile(const std::string& path);

  const std::string& path() const { return path_; }
  std::optional<bool> flag(const char* key) const;
  std::optional<int64_t> integer(const char* key) const;
  std::optional<double> number(const char* key) const;
  std::optional<std::string> text(const char* key) const;
  std::optional<std::vector<std::string>> texts(const char* key) const;                    // a list
  std::optional<std::map<std::string, std::string>> texts_by_name(const char* key) const;  // an object

 private:
  // Null where the key is missing or null.
  const JsonValue* find(const char* key, bool (*fits)(const JsonValue&), const char* expected) const;

  std::string path_;
  JsonValue object_;
};

}  // namespace ricci::apps
