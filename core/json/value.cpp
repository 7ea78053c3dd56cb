#include "core/json/value.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace ricci {

// Takes what nlohmann's parser meets, one after the other.
class JsonBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonBuilder(const char* what, std::string_view text, int64_t values) : what_(what), text_(text), most_(values) {}
  JsonValue take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override {
    return value <= INT64_MAX ? number_integer(static_cast<number_integer_t>(value)) : put(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open<JsonValue::Object>(); }
  bool start_array(size_t) override { return open<JsonValue::List>(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    std::get<JsonValue::Object>(open_.back()->value_).keys.push_back(std::move(name));
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    std::string known;  // what Python writes
    for (const char* word : {"NaN", "Infinity", "None", "True", "False"})
      if (position <= text_.size() && text_.substr(position - 1).starts_with(word)) known = std::string("; JSON has no ") + word;
    fail("{}: not JSON: fault at byte {} of {}{}", {what_, position, text_.size(), known});
  }

 private:
  JsonValue& place() {
    if (++values_ > most_) fail("{}: more than {} values", {what_, most_});
    if (open_.empty()) return root_;
    JsonValue& parent = *open_.back();
    return parent.is_object() ? std::get<JsonValue::Object>(parent.value_).values.emplace_back()
                              : std::get<JsonValue::List>(parent.value_).emplace_back();
  }
  template <class Value> bool put(Value value) {
    place().value_.emplace<Value>(std::move(value));
    return true;
  }
  template <class Value> bool open() {
    JsonValue& target = place();
    target.value_.emplace<Value>();
    open_.push_back(&target);  // stays where it is: its parent gets no other child before it is closed
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  const char* what_;
  std::string_view text_;
  int64_t most_, values_ = 0;
  JsonValue root_;
  std::vector<JsonValue*> open_;
};

const std::vector<std::string>& JsonValue::keys() const {
  static const std::vector<std::string> none;
  return is_object() ? std::get<Object>(value_).keys : none;
}

const JsonValue::List& JsonValue::items() const {
  static const List none;
  if (is_object()) return std::get<Object>(value_).values;
  return is_list() ? std::get<List>(value_) : none;
}

const JsonValue& JsonValue::operator[](std::string_view key) const {
  static const JsonValue none;
  for (size_t i = keys().size(); i-- > 0;)
    if (keys()[i] == key) return items()[i];
  return none;
}

template <> std::optional<bool> JsonValue::as() const { return is_bool() ? std::optional(boolean()) : std::nullopt; }
template <> std::optional<int64_t> JsonValue::as() const { return is_integer() ? std::optional(integer()) : std::nullopt; }
template <> std::optional<double> JsonValue::as() const { return is_number() ? std::optional(number()) : std::nullopt; }
template <> std::optional<std::string> JsonValue::as() const { return is_text() ? std::optional(text()) : std::nullopt; }

template <> std::optional<std::vector<std::string>> JsonValue::as() const {
  std::vector<std::string> texts;
  for (const JsonValue& item : items())
    if (item.is_text()) texts.push_back(item.text());
  return is_list() && texts.size() == items().size() ? std::optional(texts) : std::nullopt;
}

template <> std::optional<std::map<std::string, std::string>> JsonValue::as() const {
  std::map<std::string, std::string> texts;
  for (size_t i = 0; i < keys().size(); ++i) {
    if (!items()[i].is_text()) return {};
    texts[keys()[i]] = items()[i].text();
  }
  return is_object() ? std::optional(texts) : std::nullopt;
}

void JsonValue::fail_member(const std::string& key, const std::string& before, const char* between, const char* expected) {
  fail("{}{}{}{}", {before, key, between, expected});
}

std::string JsonValue::to_json() const {
  std::string json;
  append_json(json);
  return json;
}

void JsonValue::append_json(std::string& json) const {
  if (is_null()) json += "null";
  if (is_bool()) json += boolean() ? "true" : "false";
  if (is_integer()) json += std::to_string(integer());
  if (is<double>()) json += nlohmann::json(std::get<double>(value_)).dump();
  if (is_text()) json += quoted_json(text());
  if (!is_list() && !is_object()) return;
  json += is_list() ? '[' : '{';
  for (size_t i = 0; i < items().size(); ++i) {
    if (i > 0) json += ',';
    if (is_object()) json += quoted_json(keys()[i]) + ":";
    items()[i].append_json(json);
  }
  json += is_list() ? ']' : '}';
}

int json_depth(std::string_view text) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') ++i;
    if (c == '"') in_string = !in_string;
    if (in_string) continue;
    if (c == '{' || c == '[') deepest = std::max(deepest, ++depth);
    if (c == '}' || c == ']') --depth;
  }
  return deepest;
}

JsonValue parse_json(std::string_view text, const char* what, const JsonLimits& limits) {
  if (static_cast<int64_t>(text.size()) > limits.bytes) fail("{}: {} bytes, at most {} are read", {what, text.size(), limits.bytes});
  if (const int depth = json_depth(text); depth > limits.depth)
    fail("{}: the JSON is nested {} levels deep, at most {} are read", {what, depth, limits.depth});
  if (const size_t zero = text.find('\0'); zero != text.npos)  // to the parser it is the end
    fail("{}: not JSON: fault at byte {} of {}", {what, zero + 1, text.size()});
  JsonBuilder builder(what, text, limits.values);
  if (!nlohmann::json::sax_parse(text, &builder)) fail("{}: these {} bytes are not JSON", {what, text.size()});
  return builder.take();
}

std::string quoted_json(std::string_view text, bool ascii) { return nlohmann::json(text).dump(-1, ' ', ascii); }

}  // namespace ricci
