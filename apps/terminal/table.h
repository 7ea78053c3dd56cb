// A table of results. One declaration of a column defines its text and its JSON:
//   ResultTable table;
//   table.add({.heading = "mixer", .key = "mixer", .left = true}, rows, &MixerRow::mixer);
//   table.add({.heading = "ms/step", .key = "ms.median", .format = "{:.3f}"}, rows, [](const MixerRow& row) { return row.seconds * 1e3; });
//   std::puts(text_of(table).c_str());
//   std::puts(to_text(json_of(table), 1).c_str());
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"

namespace ricci::apps {

// Returns a value as a cell; null if the value is missing.
template <class T> Json cell_of(const T& value) { return value; }
template <class T> Json cell_of(const std::optional<T>& value) { return value ? Json(*value) : Json(); }

// A list with value(row) for each element of `rows`; value can be a member.
template <class Rows, class Get> Json values_of(const Rows& rows, const Get& value) {
  Json values = Json::array();
  for (const auto& row : rows) values.push_back(cell_of(std::invoke(value, row)));
  return values;
}

struct Column {
  std::string heading = {};       // text omits a column without a heading
  std::string key = {};           // the member of the row's JSON object; "ms.median" is a member of "ms"; JSON omits a column without a key
  std::string format = {};        // for numbers in text: "{:.3f}"; "," gives 1,234,567; "bytes" gives 1.21 MiB; by default all digits
  double factor = 1;              // for numbers in text: 1e-9 prints FLOP as GFLOP
  bool left = false;              // aligns the column to the left in text, as for names
  const char* missing = "-";      // shown for null in text; JSON omits the member
  std::vector<Json> values = {};  // one value for each row
};

struct ResultTable {
  std::vector<Column> columns = {};

  // A column with value(row) for each element of `rows`.
  template <class Rows, class Get> void add(Column column, const Rows& rows, const Get& value) {
    for (const auto& row : rows) column.values.push_back(cell_of(std::invoke(value, row)));
    columns.push_back(std::move(column));
  }
  // Adds a row with a value for each column.
  void add_row(const std::vector<Json>& row) {
    for (size_t i = 0; i < columns.size(); ++i) columns[i].values.push_back(row.at(i));
  }
  size_t rows() const { return columns.empty() ? 0 : columns[0].values.size(); }
};

// The headings, then the rows as text.
using Cells = std::vector<std::string>;
std::vector<Cells> cells_of(const ResultTable& table);
// Columns are as wide as their widest cell; columns beyond 80 characters are printed below the others. Does not end with a newline.
std::string text_of(const ResultTable& table);
Json json_of(const ResultTable& table);  // a list with an object for each row

// Prints lines, with a line end after the last. Control characters become blanks.
void print(const std::string& text);

}  // namespace ricci::apps
