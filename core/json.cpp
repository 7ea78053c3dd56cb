// The JSON parser with limits, and JSON that is safe to print.
#include "core/json.h"

#include <unordered_set>
#include <utility>

#include "core/files/file.h"

namespace ricci {
namespace {

// Builds a value from the parser's events. The library's own builder searches all members of an object whenever it adds one. For a
// vocabulary, this takes minutes.
class JsonBuilder final : public Json::json_sax_t {
 public:
  JsonBuilder(const std::string& name, std::string_view text, const JsonLimits& limits) : name_(name), text_(text), limits_(limits) {}
  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override {
    return value <= INT64_MAX ? add(static_cast<number_integer_t>(value)) : add(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(); }
  bool start_array(size_t) override { return open(); }
  bool key(string_t& name) override {
    open_.back().keys.push_back(std::move(name));
    return true;
  }
  bool end_array() override {
    Open list = close();
    return add(std::move(list.values));
  }
  bool end_object() override {
    Open object = close();
    check_keys(object.keys);
    Json::object_t members;
    members.reserve(object.keys.size());
    for (size_t i = 0; i < object.keys.size(); ++i) members.emplace_back(std::move(object.keys[i]), std::move(object.values[i]));
    return add(std::move(members));
  }
  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    std::string known;  // known Python words
    for (const char* word : {"NaN", "Infinity", "None", "True", "False"})
      if (position <= text_.size() && text_.substr(position - 1).starts_with(word)) known = std::string("; JSON has no ") + word;
    fail("{}: invalid JSON at byte {} of {}{}", {name_, position, text_.size(), known});
  }

 private:
  struct Open {  // an unfinished array or object
    std::vector<std::string> keys;
    Json::array_t values;
  };

  bool open() {
    if (static_cast<int>(open_.size()) == limits_.depth) fail("{}: the JSON is nested more than {} levels deep", {name_, limits_.depth});
    open_.emplace_back();
    return true;
  }
  Open close() {
    Open last = std::move(open_.back());
    open_.pop_back();
    return last;
  }
  bool add(Json value) {
    if (++values_ > limits_.values) fail("{}: more than {} values", {name_, limits_.values});
    if (open_.empty()) root_ = std::move(value);
    else open_.back().values.push_back(std::move(value));
    return true;
  }
  void check_keys(const std::vector<std::string>& keys) const {
    std::unordered_set<std::string_view> seen(keys.size());
    for (const std::string& key : keys)
      if (!seen.insert(key).second) fail("{}: duplicate key {} in one object", {name_, one_line(quoted_json(key))});
  }

  const std::string& name_;
  std::string_view text_;
  JsonLimits limits_;
  int64_t values_ = 0;
  Json root_;
  std::vector<Open> open_;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& name, const JsonLimits& limits) {
  if (static_cast<int64_t>(text.size()) > limits.bytes) fail("{}: has {} bytes, expected at most {}", {name, text.size(), limits.bytes});
  if (const size_t zero = text.find('\0'); zero != text.npos)  // the parser would stop at this character
    fail("{}: invalid JSON at byte {} of {}", {name, zero + 1, text.size()});
  JsonBuilder builder(name, text, limits);
  if (!Json::sax_parse(text, &builder)) fail("{}: these {} bytes are not JSON", {name, text.size()});
  return builder.take();
}

Json read_json(const std::string& path) {
  constexpr JsonLimits limits{.bytes = 16 << 20, .depth = 32};
  Json root = parse_json(read_text(path, limits.bytes), path, limits);
  if (!root.is_object()) fail("{}: expected a JSON object", {path});
  return root;
}

const Json& member(const Json& object, std::string_view key) {
  static const Json none;
  if (!object.is_object()) return none;
  for (const auto& [name, value] : object.get_ref<const Json::object_t&>())
    if (name == key) return value;
  return none;
}

std::string to_text(const Json& value, int indent, bool ascii) {
  const std::string text = value.dump(indent, ' ', ascii, Json::error_handler_t::replace);
  std::string safe;  // the library escapes only up to U+001F, but terminals also obey U+007F and U+0080 to U+009F
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]), next = static_cast<unsigned char>(text[i + 1]);  // 0 at the end
    const bool is_c1 = byte == 0xc2 && next < 0xa0;
    if (byte == 0x7f || is_c1) safe += format_message("\\u{:04x}", {is_c1 ? next : byte});
    else safe += text[i];
    if (is_c1) ++i;
  }
  return safe;
}

std::string quoted_json(std::string_view text) { return to_text(Json(text)); }

}  // namespace ricci
