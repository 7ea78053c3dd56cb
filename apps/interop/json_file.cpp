#include "apps/interop/json_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/file.h"
#include "core/files/json_depth.h"

namespace ricci::apps {

using nlohmann::json;

struct JsonFile::Object {
  json value;
};

JsonFile::JsonFile(const std::string& path) : path_(path) {
  constexpr int64_t most = 16 << 20;
  constexpr int deepest = 32;
  const std::string text = read_text(path, most);
  if (const int depth = json_depth(text); depth > deepest) fail("{}: nested {} levels deep, at most {} are read", {path, depth, deepest});
  json object = json::parse(text, nullptr, false);
  if (!object.is_object()) fail("{}: expected a JSON object", {path});
  object_ = std::make_unique<const Object>(Object{std::move(object)});
}

JsonFile::~JsonFile() = default;

template <class T> std::optional<T> JsonFile::value(const char* key, bool (*fits)(const void*), const char* expected) const {
  const auto found = object_->value.find(key);
  if (found == object_->value.end() || found->is_null()) return {};
  if (!fits(&*found)) fail("{}: {}: expected {}", {path_, key, expected});
  return found->get<T>();
}

namespace {

const json& of(const void* value) { return *static_cast<const json*>(value); }
bool all_texts(const json& values) {
  return std::all_of(values.begin(), values.end(), [](const json& v) { return v.is_string(); });
}

// Numbers beyond 63 bits are no integers here.
bool is_integer(const void* v) { return of(v).is_number_integer() && !(of(v).is_number_unsigned() && of(v).get<uint64_t>() > INT64_MAX); }

}  // namespace

std::optional<bool> JsonFile::flag(const char* key) const {
  return value<bool>(key, [](const void* v) { return of(v).is_boolean(); }, "true or false");
}
std::optional<int64_t> JsonFile::integer(const char* key) const { return value<int64_t>(key, is_integer, "an integer"); }
std::optional<double> JsonFile::number(const char* key) const {
  return value<double>(key, [](const void* v) { return of(v).is_number(); }, "a number");
}
std::optional<std::string> JsonFile::text(const char* key) const {
  return value<std::string>(key, [](const void* v) { return of(v).is_string(); }, "a text");
}
std::optional<std::vector<std::string>> JsonFile::texts(const char* key) const {
  return value<std::vector<std::string>>(key, [](const void* v) { return of(v).is_array() && all_texts(of(v)); }, "a list of texts");
}
std::optional<std::map<std::string, std::string>> JsonFile::texts_by_name(const char* key) const {
  return value<std::map<std::string, std::string>>(key, [](const void* v) { return of(v).is_object() && all_texts(of(v)); }, "names with texts");
}

}  // namespace ricci::apps
