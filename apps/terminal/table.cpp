#include "apps/terminal/table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "apps/terminal/numbers.h"
#include "apps/terminal/progress.h"
#include "core/error.h"
#include "core/memory/memory.h"
#include "data/text/utf8.h"

namespace ricci::apps {
namespace {

std::string cell_text(const Column& column, const Json& cell) {
  if (cell.is_null()) return column.missing;
  if (cell.is_string()) return one_line(cell.get<std::string>(), cell.get<std::string>().size());
  const double number = cell.is_boolean() ? cell.get<bool>() : cell.get<double>();
  const auto whole = static_cast<int64_t>(number);
  if (column.format == ",") return with_commas(whole);
  if (column.format == "bytes") return show_bytes(whole);
  const char* const pattern = column.format.empty() ? "{}" : column.format.c_str();
  const bool is_whole = !cell.is_number_float() && column.factor == 1;
  return is_whole ? format_message(pattern, {whole}) : show_number(pattern, number * column.factor);
}

}  // namespace

std::vector<Cells> cells_of(const ResultTable& table) {
  std::vector<Cells> cells(table.rows() + 1);
  for (const Column& column : table.columns) {
    if (column.heading.empty()) continue;
    cells[0].push_back(column.heading);
    for (size_t i = 0; i < table.rows(); ++i) cells[i + 1].push_back(cell_text(column, column.values[i]));
  }
  return cells;
}

std::string text_of(const ResultTable& table) {
  constexpr size_t kColumns = 80;
  const std::vector<Cells> rows = cells_of(table);
  const auto width_of = [](const std::string& cell) { return static_cast<size_t>(count_characters(cell)); };
  std::vector<bool> left;
  for (const Column& column : table.columns)
    if (!column.heading.empty()) left.push_back(column.left);
  std::vector<size_t> widths(left.size());
  for (const Cells& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  std::string text;
  // Columns that do not fit follow below, with the first column repeated.
  for (size_t first = 1, end = 1; !widths.empty(); first = end) {
    size_t width = widths[0];
    for (; end < widths.size() && (end == first || width + 2 + widths[end] <= kColumns); ++end) width += 2 + widths[end];
    if (!text.empty()) text += "\n";
    for (const Cells& row : rows) {
      std::string line;
      for (size_t i = 0; i < end; i = i ? i + 1 : first) {
        const std::string blanks(widths[i] - width_of(row[i]), ' ');
        line += (i ? "  " : "") + (left[i] ? row[i] + blanks : blanks + row[i]);
      }
      text += (text.empty() ? "" : "\n") + line.substr(0, line.find_last_not_of(' ') + 1);
    }
    if (end == widths.size()) break;
  }
  return text;
}

Json json_of(const ResultTable& table) {
  Json rows = Json::array();
  for (size_t i = 0; i < table.rows(); ++i) {
    Json row = Json::object();
    for (const Column& column : table.columns) {
      std::string path = "/" + column.key;  // "ms.median" as a JSON pointer
      std::replace(path.begin(), path.end(), '.', '/');
      if (!column.key.empty() && !column.values[i].is_null()) row[Json::json_pointer(path)] = column.values[i];
    }
    rows.push_back(row);
  }
  return rows;
}

void print(const std::string& text) {
  std::string safe;
  for (size_t from = 0, end = 0; from <= text.size(); from = end + 1) {
    end = std::min(text.find('\n', from), text.size());
    safe += one_line(std::string_view(text).substr(from, end - from), end - from) + "\n";
  }
  std::fputs(safe.c_str(), stdout);
}

}  // namespace ricci::apps
