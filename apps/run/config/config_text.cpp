// Writing: configs as YAML, with or without the descriptions of their keys.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "apps/run/config/config.h"

namespace ricci::apps {

// Plain where no reader can take it for anything but text or a number, else quoted as in JSON.
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

namespace {

std::string text_of(const std::string& text) { return yaml_text(text); }
std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(int64_t value) { return std::to_string(value); }
std::string text_of(uint64_t value) { return std::to_string(value); }
std::string text_of(double value) { return fmt::format("{}", value); }  // the shortest that reads back to the same bits
std::string text_of(const Range& range) { return fmt::format("{}:{}", range.lo, range.hi); }
template <class T> std::string text_of(const std::optional<T>& value) { return value ? text_of(*value) : "null"; }
template <class T> std::string text_of(const std::vector<T>& values) {
  if (values.size() == 1) return text_of(values[0]);
  std::string list = "[";
  for (const T& value : values) list += (list.size() > 1 ? ", " : "") + text_of(value);
  return list + "]";
}

// "model." of model.layers
std::string section_of(const std::string& key) { return key.substr(0, key.rfind('.') + 1); }

std::string comment_of(const Field& field) {
  std::string text = (field.follows_choices ? value_text(field) + "; " : "") + field.description;
  if (const auto* choice = std::get_if<ChoiceMember>(&field.value))
    for (size_t i = 0; i < choice->names.size(); ++i) text += (i ? " | " : ": ") + std::string(choice->names[i]);
  return field.by.empty() ? text : text + "; only " + field.by;
}

// YAML 1.1 takes 20:48 for the number 1248: there ranges need quotes.
std::string quoted_ranges(const Field& field) {
  const std::vector<Range>* const* const ranges = std::get_if<std::vector<Range>*>(&field.value);
  if (!ranges) return value_text(field);
  std::vector<std::string> texts;
  for (const Range& range : **ranges) texts.push_back(text_of(range));
  return text_of(texts);
}

// The keys that are read, line by line, with their sections; all of them where those that are not read are wanted as comments.
// value(field): what follows the key.
template <class Value> std::string lines(const std::vector<Field>& fields, bool all_keys, const Value& value) {
  std::string all, section;
  for (const Field& field : fields) {
    if (!field.is_read && !all_keys) continue;
    if (section_of(field.key) != section) {
      section = section_of(field.key);
      if (!section.empty()) all += section.substr(0, section.size() - 1) + ":\n";
    }
    const std::string start = (section.empty() ? "" : "  ") + std::string(field.is_read ? "" : "# ") + field.key.substr(section.size());
    all += value(field, start + ": ") + "\n";
  }
  return all;
}

}  // namespace

std::string value_text(const Field& field) {
  if (const auto* choice = std::get_if<ChoiceMember>(&field.value)) return yaml_text(choice->names[*choice->number]);
  return std::visit(
      []<class Member>(const Member& member) {
        if constexpr (std::is_pointer_v<Member>) return text_of(*member);
        return std::string();
      },
      field.value);
}

Texts value_texts(const std::vector<Field>& fields) {
  Texts texts;
  for (const Field& field : fields)
    if (field.is_read) texts[field.key] = value_text(field);
  return texts;
}

std::string to_yaml(const std::vector<Field>& fields, const Texts& following) {
  return lines(fields, false, [&](const Field& field, const std::string& start) {
    const auto found = following.find(field.key);
    return start + (found == following.end() ? quoted_ranges(field) : found->second + "  # " + value_text(field));
  });
}

std::string describe(const std::vector<Field>& fields) {
  constexpr size_t kCommentColumn = 34;
  return lines(fields, true, [&](const Field& field, const std::string& start) {
    return fmt::format("{:<{}} # {}", start + (field.follows_choices ? "null" : value_text(field)), kCommentColumn, comment_of(field));
  });
}

}  // namespace ricci::apps
