#include "apps/interop/json_file.h"

#include <algorithm>

#include "core/error.h"
#include "core/files/file.h"

namespace ricci::apps {
namespace {

constexpr JsonLimits kLimits{.bytes = 16 << 20, .depth = 32};

bool all_texts(const JsonValue& v) {
  return std::all_of(v.items().begin(), v.items().end(), [](const JsonValue& item) { return item.is_text(); });
}

}  // namespace

JsonFile::JsonFile(const std::string& path) : path_(path), object_(parse_json(read_text(path, kLimits.bytes), path.c_str(), kLimits)) {
  if (!object_.is_object()) fail("{}: expected a JSON object", {path});
}

const JsonValue* JsonFile::find(const char* key, bool (*fits)(const JsonValue&), const char* expected) const {
  const JsonValue& value = object_[key];
  if (value.is_null()) return nullptr;
  if (!fits(value)) fail("{}: {}: expected {}", {path_, key, expected});
  return &value;
}

std::optional<bool> JsonFile::flag(const char* key) const {
  const JsonValue* v = find(
      key, [](const JsonValue& of) { return of.is_bool(); }, "true or false");
  return v ? std::optional(v->boolean()) : std::nullopt;
}

std::optional<int64_t> JsonFile::integer(const char* key) const {
  const JsonValue* v = find(
      key, [](const JsonValue& of) { return of.is_integer(); }, "an integer");
  return v ? std::optional(v->integer()) : std::nullopt;
}

std::optional<double> JsonFile::number(const char* key) const {
  const JsonValue* v = find(
      key, [](const JsonValue& of) { return of.is_number(); }, "a number");
  return v ? std::optional(v->number()) : std::nullopt;
}

std::optional<std::string> JsonFile::text(const char* key) const {
  const JsonValue* v = find(
      key, [](const JsonValue& of) { return of.is_text(); }, "a text");
  return v ? std::optional(v->text()) : std::nullopt;
}

std::optional<std::vector<std::string>> JsonFile::texts(const char* key) const {
  const JsonValue* v = find(
      key, [](const JsonValue& of) { return of.is_list() && all_texts(of); }, "a list of texts");
  if (!v) return {};
  std::vector<std::string> all;
  for (const JsonValue& item : v->items()) all.push_back(item.text());
  return all;
}

std::optional<std::map<std::string, std::string>> JsonFile::texts_by_name(const char* key) const {
  const JsonValue* v = find(
      key, [](const JsonValue& of) { return of.is_object() && all_texts(of); }, "names with texts");
  if (!v) return {};
  std::map<std::string, std::string> all;
  for (size_t i = 0; i < v->items().size(); ++i) all[v->keys()[i]] = v->items()[i].text();
  return all;
}

}  // namespace ricci::apps
