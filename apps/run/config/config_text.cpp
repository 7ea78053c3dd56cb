// Writing: configs as YAML, with or without the descriptions of their keys.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "apps/run/config/config.h"

namespace ricci::apps {
namespace {

// Plain where no reader can take it for anything but text or a number, else quoted as in JSON.
std::string text_of(const std::string& text) {
  const auto plain = [](unsigned char c) { return c != 0 && c < 128 && (std::isalnum(c) || std::strchr("_./-", c)); };
  const bool reserved = text == "null" || text == "Null" || text == "NULL" || text == "true" || text == "false";
  if (!text.empty() && text[0] != '-' && !reserved && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\', quoted += c;
    else if (c == '\n') quoted += "\\n";
    else if (c == '\t') quoted += "\\t";
    else if (static_cast<unsigned char>(c) < 32 || c == 127) quoted += fmt::format("\\x{:02x}", c);
    else quoted += c;
  }
  return quoted + '"';
}
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
  std::string text = field.description;
  if (const auto* choice = std::get_if<ChoiceMember>(&field.value))
    for (size_t i = 0; i < choice->names.size(); ++i) text += (i ? " | " : ": ") + std::string(choice->names[i]);
  return field.info.by.empty() ? text : text + "; only " + field.info.by;
}

}  // namespace

std::string value_text(const Field& field) {
  if (const auto* choice = std::get_if<ChoiceMember>(&field.value)) return text_of(std::string(choice->names[*choice->number]));
  return std::visit(
      []<class Member>(const Member& member) {
        if constexpr (std::is_pointer_v<Member>) return text_of(*member);
        return std::string();
      },
      field.value);
}

namespace {

// With comments: every key; else those that are read.
std::string lines(const std::vector<Field>& fields, bool with_comments) {
  constexpr size_t kCommentColumn = 34;
  std::string all, section;
  for (const Field& field : fields) {
    if (!field.info.is_read && !with_comments) continue;
    if (section_of(field.key) != section) {
      section = section_of(field.key);
      if (!section.empty()) all += section.substr(0, section.size() - 1) + ":\n";
    }
    std::string line =
        (section.empty() ? "" : "  ") + std::string(field.info.is_read ? "" : "# ") + field.key.substr(section.size()) + ": ";
    line += value_text(field);
    if (with_comments) line = fmt::format("{:<{}} # {}", line, kCommentColumn, comment_of(field));
    all += line + "\n";
  }
  return all;
}

}  // namespace

std::string to_yaml(const std::vector<Field>& fields) { return lines(fields, false); }
std::string describe(const std::vector<Field>& fields) { return lines(fields, true); }

}  // namespace ricci::apps
