// Columns between tabs. The text is the last one if none is asked for.
#include <algorithm>

#include "core/error.h"
#include "data/formats/formats.h"
#include "data/text/utf8.h"

namespace ricci {
namespace {

// Number of the column, from 1, or 0 if the field is empty.
int64_t column_of(const char* key, const std::string& field) {
  int64_t column = 0;
  if (!field.empty() && (!is_integer(field, column) || column < 1 || column > 1'000'000))
    fail("{}: '{}' is not the number of a column, counted from 1", {key, one_line(field)});
  return column;
}

std::string_view column(std::string_view line, const char* key, const std::string& field, const std::string& place) {
  const int64_t number = column_of(key, field);
  if (number == 0) return line.substr(line.rfind('\t') + 1);
  size_t start = 0;
  for (int64_t i = 1; i < number; ++i) {
    start = line.find('\t', start);
    if (start == line.npos) fail("{}: has {} columns, but {} is {}", {place, std::count(line.begin(), line.end(), '\t') + 1, key, number});
    ++start;
  }
  return line.substr(start, line.find('\t', start) - start);
}

Record read_columns(std::string_view line, const DocumentOptions& options, const std::string& place) {
  Record record{std::string(column(line, "text_field", options.text_field, place)), -1};
  if (!options.label_field.empty()) record.label = label_in(column(line, "label_field", options.label_field, place), options, place);
  return record;
}

}  // namespace

const FormatTraits kTsv{.name = "tsv",
    .suffix = ".tsv",
    .lines = "columns between tabs",
    .fields = "a column from 1, empty: the last",
    .read = read_columns,
    .check_field = [](const char* key, const std::string& field) { column_of(key, field); }};

}  // namespace ricci
