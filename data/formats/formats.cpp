#include "data/formats/formats.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "data/text/text.h"
#include "data/text/utf8.h"

namespace ricci {
const FormatTraits kPlainText{.name = "text"};

std::string list_of_formats(bool (FormatTraits::*property)() const, const std::string& before_last) {
  std::vector<std::string> names;
  for (const FormatTraits* format : kFormats)
    if ((format->*property)()) names.emplace_back(format->name);
  return join(names, ", ", before_last);
}

std::string describe_formats(const char* FormatTraits::*description) {
  std::string all;
  for (const FormatTraits* format : kFormats)
    if (*(format->*description) != '\0') all += (all.empty() ? "" : "; ") + std::string(format->name) + ": " + format->*description;
  return all;
}

std::string join(std::span<const std::string> parts, const std::string& between, const std::string& before_last) {
  std::string all;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) all += i + 1 < parts.size() ? between : before_last;
    all += parts[i];
  }
  return all;
}

DocumentFormat format_of_name(std::string name) {
  for (char& letter : name)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  for (const std::string_view packed : {".gz", ".zst", ".xz", ".bz2"})
    if (name.ends_with(packed)) name.resize(name.size() - packed.size());
  for (const FormatTraits* format : kFormats)
    for (const char* suffix : format->suffixes)
      if (suffix && name.ends_with(suffix)) return format_of(*format);
  return format_of(kPlainText);
}

NamedFormat format_of_names(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (path.empty()) continue;  // under $RICCI_DATA, an empty path would mean all files
    const auto found = look_for_data(path);
    for (const std::filesystem::path& file : files_at(found.value_or(path)))
      if (const DocumentFormat format = format_of_name(file.string()); !traits_of(format).is_text())
        return {format, file.filename().string()};
  }
  return {};
}

void check(const DocumentOptions& o) {
  const FormatTraits& format = traits_of(o.format);
  if (o.documents.empty()) fail("documents: is empty, expected file, line, blank_line, or the text between two documents");
  if (!format.is_text() && o.documents != "file") fail("documents: applies only to text; in {} each line is a document", {format.name});
  if (!format.has_fields() && !(o.text_field.empty() && o.label_field.empty()))
    fail("{}: only {} have fields",
        {o.text_field.empty() ? "label_field" : "text_field", list_of_formats(&FormatTraits::has_fields, " and ")});
  if (o.label_field.empty() && o.classes > 0) fail("classes, labels: require the key label_field");
  if (!o.label_field.empty() && o.classes == 0) fail("label_field: requires the key classes or labels");
  if (!o.labels.empty() && std::ssize(o.labels) != o.classes)
    fail("labels: has {} names, expected one for each of {} classes", {o.labels.size(), o.classes});
  if (o.classes < 0 || o.classes > INT32_MAX) fail("classes: {}, expected 1 to {}", {o.classes, INT32_MAX});
  if (!format.check_field) return;
  format.check_field("text_field", o.text_field);
  format.check_field("label_field", o.label_field);
}

bool is_integer(std::string_view text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

int32_t read_label(std::string_view text, const DocumentOptions& options, const std::string& place) {
  const std::vector<std::string>& names = options.labels;
  const auto named = std::find(names.begin(), names.end(), text);
  if (named != names.end()) return static_cast<int32_t>(named - names.begin());
  int64_t label = 0;
  const bool is_number = is_integer(text, label);
  if (!is_number && !names.empty()) fail("{}: label '{}' is not one of {}", {place, one_line(text), one_line(join(names, ", ", ", "))});
  if (!is_number)
    fail("{}: label '{}' is not an integer from 0 to {}; list words in the key labels, such as [no, yes]",
        {place, one_line(text), options.classes - 1});
  if (label < 0 || label >= options.classes)
    fail("{}: label {} is out of range for {} classes, expected 0 to {}; set more classes, or list all labels in the key labels, such as "
         "[1, 2, 5]",
        {place, label, options.classes, options.classes - 1});
  return static_cast<int32_t>(label);
}

}  // namespace ricci
