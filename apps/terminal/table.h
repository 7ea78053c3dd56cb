// A table of results. One declaration of a column gives its values their form in text and in JSON:
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

// A value as a cell. Null: there is none.
template <class T> Json cell_of(const T& value) { return value; }
template <class T> Json cell_of(const std::optional<T>& value) { return value ? Json(*value) : Json(); }

// A list with value(row) for each element of `rows`, or a member of it.
template <class Rows, class Get> Json values_of(const Rows& rows, const Get& value) {
  Json values = Json::array();
  for (const auto& row : rows) values.push_back(cell_of(std::invoke(value, row)));
  return values;
}

// A cell as a number: NaN if it is another value.
double number_of(const Json& cell);

// A column: its form in text and in JSON, and its values, one for each row.
struct Column {
  std::string heading = {};   // if empty, the text leaves the column out
  std::string key = {};       // the member of each row's object; "ms.median" is a member of its member "ms"; if empty, JSON leaves it out
  std::string format = {};    // for numbers in text: "{:.3f}"; "," gives 1,234,567; "bytes" gives 1.21 MiB; if empty, all its digits
  double factor = 1;          // numbers are multiplied by it for text: 1e-6 for bytes in JSON and MB in text
  bool left = false;          // in text it is aligned to the left, as names are
  const char* missing = "-";  // in text, for a null. JSON leaves the member out
  std::vector<Json> values = {};
};

struct ResultTable {
  std::vector<Column> columns = {};

  // A column with value(row) for each element of `rows`.
  template <class Rows, class Get> void add(Column column, const Rows& rows, const Get& value) {
    for (const auto& row : rows) column.values.push_back(cell_of(std::invoke(value, row)));
    columns.push_back(std::move(column));
  }
  // A row with a value for each column.
  void add_row(const std::vector<Json>& row) {
    for (size_t i = 0; i < columns.size(); ++i) columns[i].values.push_back(row.at(i));
  }
  size_t rows() const { return columns.empty() ? 0 : columns[0].values.size(); }
};

// A value as text.
std::string text_of(const Column& column, size_t row);
// The headings, and the rows of a table as text.
using Cells = std::vector<std::string>;
std::vector<Cells> cells_of(const ResultTable& table);
// The same with columns as wide as their widest cell. Columns beyond 80 are below the others. Ends without a line end.
std::string text_of(const ResultTable& table);
// A list with an object for each row.
Json json_of(const ResultTable& table);

// Prints lines, with a line end after the last. Their control characters become blanks, because names could move the cursor with them.
void print(const std::string& text);

}  // namespace ricci::apps
