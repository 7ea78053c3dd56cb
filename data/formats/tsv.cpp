// Tab-separated columns. The text is the last column by default.
#include <algorithm>

#include "core/error.h"
#include "data/formats/formats.h"
#include "data/text/utf8.h"

namespace ricci {
namespace {

// Returns the column number, counted from 1, or 0 if the field is empty.
int64_t parse_column(const char* key, const std::string& field) {
  int64_t column = 0;
  if (!field.empty() && (!is_integer(field, column) || column < 1 || column > 1'000'000))
    fail("{}: '{}' is not a column number (the first column is 1)", {key, one_line(field)});
  return column;
}

std::string_view find_column(const Line& line, const char* key, const std::string& field) {
  const int64_t number = parse_column(key, field);
  const std::string_view text = line.text;
  if (number == 0) return text.substr(text.rfind('\t') + 1);
  size_t start = 0;
  for (int64_t i = 1; i < number; ++i) {
    start = text.find('\t', start);
    if (start == text.npos)
      fail("{}: has {} columns, but {} is column {}", {line.place, std::count(text.begin(), text.end(), '\t') + 1, key, number});
    ++start;
  }
  return text.substr(start, text.find('\t', start) - start);
}

Record read_columns(const Line& line, const DocumentOptions& options) {
  Record record{std::string(find_column(line, "text_field", options.text_field))};
  if (!options.label_field.empty()) record.label = read_label(find_column(line, "label_field", options.label_field), options, line.place);
  return record;
}

}  // namespace

const FormatTraits kTsv{.name = "tsv",
    .suffixes = {".tsv"},
    .lines = "tab-separated columns",
    .fields = "a column number from 1 (default: the last)",
    .read = read_columns,
    .check_field = [](const char* key, const std::string& field) { parse_column(key, field); }};

}  // namespace ricci
