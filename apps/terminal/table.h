// A table of results. One declaration of a column gives its values their form in text, in JSON and in a drawing:
//   ResultTable table;
//   table.add({.heading = "mixer", .key = "mixer", .left = true}, rows, &MixerRow::mixer);
//   table.add({.heading = "ms/step", .key = "ms.median", .format = "{:.3f}"}, rows, [](const MixerRow& row) { return row.seconds * 1e3; });
//   std::puts(text_of(table).c_str());
//   std::puts(json_text(json_of(table)).c_str());
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace ricci::apps {

class Value;
using Object = std::vector<std::pair<std::string, Value>>;  // with the members in their order

// A value that JSON can hold, or nothing.
class Value {
 public:
  using List = std::vector<Value>;

  Value() = default;                          // JSON leaves such a member out
  Value(std::nullptr_t) : value_(nullptr) {}  // not known: null in JSON
  Value(bool value) : value_(value) {}
  Value(double value) : value_(value) {}  // null in JSON where it is not finite
  Value(const char* text) : value_(std::string(text)) {}
  Value(std::string text) : value_(std::move(text)) {}
  Value(List list) : value_(std::move(list)) {}
  Value(Object object) : value_(std::move(object)) {}
  template <std::integral Integer> Value(Integer value) {
    if constexpr (std::is_signed_v<Integer>) value_ = int64_t{value};
    else value_ = uint64_t{value};
  }
  template <class T> Value(const std::optional<T>& value) {
    if (value) *this = Value(*value);
  }
  template <class T>
  requires(!std::same_as<T, Value> && std::convertible_to<T, Value>) Value(const std::vector<T>& list)
      : value_(List(list.begin(), list.end())) {}

  using Any = std::variant<std::monostate, std::nullptr_t, bool, int64_t, uint64_t, double, std::string, List, Object>;
  const Any& any() const { return value_; }
  bool is_missing() const { return value_.index() < 2; }
  // As a number; not finite where it is none.
  double number() const;

 private:
  Any value_;
};

// A list with value(row) for each element of `rows`, or a member of it.
template <class Rows, class Get> Value::List values_of(const Rows& rows, const Get& value) {
  Value::List values;
  for (const auto& row : rows) values.emplace_back(std::invoke(value, row));
  return values;
}

// A column: its form in text, in JSON and in a drawing, and its values, one for each row.
struct Column {
  std::string heading = {};   // if empty, the text leaves the column out
  std::string key = {};       // the member of each row's object; "ms.median" is a member of its member "ms"; if empty, JSON leaves it out
  std::string format = {};    // for numbers in text: "{:.3f}"; "," gives 1,234,567; "bytes" gives 1.21 MiB; if empty, all its digits
  double factor = 1;          // numbers are multiplied by it for text and drawing: 1e-6 for bytes in JSON and MB in text
  bool left = false;          // in text it is aligned to the left, as names are
  const char* missing = "-";  // in text, where there is no value
  std::string panel = {}, unit = {};  // the title and the unit of its panel in a drawing; if empty, it is not drawn
  std::vector<Value> values = {};
};

struct ResultTable {
  std::vector<Column> columns = {};

  // A column with value(row) for each element of `rows`.
  template <class Rows, class Get> void add(Column column, const Rows& rows, const Get& value) {
    column.values = values_of(rows, value);
    columns.push_back(std::move(column));
  }
  // A row with a value for each column.
  void add_row(const std::vector<Value>& row) {
    for (size_t i = 0; i < columns.size(); ++i) columns[i].values.push_back(row.at(i));
  }
  size_t rows() const { return columns.empty() ? 0 : columns[0].values.size(); }
};

using Cells = std::vector<std::string>;  // a row

// A value as text.
std::string text_of(const Column& column, size_t row);
// The rows of a table as text, under a row of headings.
std::vector<Cells> cells_of(const ResultTable& table);
// The same with columns as wide as their widest cell. Ends without a line end.
std::string text_of(const ResultTable& table);
// A list with an object for each row.
Value json_of(const ResultTable& table);

// JSON as text, a line for each value and `indent` blanks for each level; all on one line with -1. Bytes that are no UTF-8 become U+FFFD.
// All control characters are escapes, because some of them could move the cursor of a terminal.
std::string json_text(const Value& value, int indent = 1);

// Prints, with a line end.
void print(const std::string& text);

}  // namespace ricci::apps
