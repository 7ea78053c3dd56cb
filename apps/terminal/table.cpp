#include "apps/terminal/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "apps/terminal/progress.h"
#include "core/error.h"
#include "core/memory/memory.h"
#include "data/text/utf8.h"

namespace ricci::apps {
namespace {

using json = nlohmann::ordered_json;

json to_json(const Value& value) {
  return std::visit(
      []<class T>(const T& held) -> json {
        if constexpr (std::same_as<T, std::monostate>) return nullptr;
        else if constexpr (std::same_as<T, Value::List>) {
          json list = json::array();
          for (const Value& each : held) list.push_back(to_json(each));
          return list;
        } else if constexpr (std::same_as<T, Object>) {
          json object = json::object();
          for (const auto& [key, member] : held)
            if (!std::holds_alternative<std::monostate>(member.any())) object[key] = to_json(member);
          return object;
        } else return held;
      },
      value.any());
}

// Sets the member of a row's object that a path such as "ms.median" names.
void set(Object& object, std::string_view path, const Value& value) {
  const size_t dot = path.find('.');
  const std::string key(path.substr(0, dot));
  auto member = std::find_if(object.begin(), object.end(), [&](const auto& each) { return each.first == key; });
  if (dot == path.npos) {
    object.emplace_back(key, value);
    return;
  }
  Object inner = member == object.end() ? Object() : std::get<Object>(member->second.any());
  set(inner, path.substr(dot + 1), value);
  if (member == object.end()) object.emplace_back(key, std::move(inner));
  else member->second = Value(std::move(inner));
}

}  // namespace

double Value::number() const {
  return std::visit(
      []<class T>(const T& held) {
        if constexpr (std::is_arithmetic_v<T>) return static_cast<double>(held);
        else return std::numeric_limits<double>::quiet_NaN();
      },
      value_);
}

std::string text_of(const Column& column, size_t row) {
  const Value& value = column.values[row];
  if (value.is_missing()) return column.missing;
  if (const auto* const text = std::get_if<std::string>(&value.any())) return one_line(*text, text->size());
  const bool is_whole = !std::holds_alternative<double>(value.any()) && column.factor == 1;
  const auto whole = [&] { return static_cast<int64_t>(value.number()); };
  if (column.format == ",") return with_commas(whole());
  if (column.format == "bytes") return show_bytes(whole());
  const char* const pattern = column.format.empty() ? "{}" : column.format.c_str();
  return is_whole ? format_message(pattern, {whole()}) : format_message(pattern, {value.number() * column.factor});
}

std::vector<Cells> cells_of(const ResultTable& table) {
  std::vector<Cells> cells(table.rows() + 1);
  for (const Column& column : table.columns) {
    if (column.heading.empty()) continue;
    cells[0].push_back(column.heading);
    for (size_t i = 0; i < column.values.size(); ++i) cells[i + 1].push_back(text_of(column, i));
  }
  return cells;
}

std::string text_of(const ResultTable& table) {
  const std::vector<Cells> rows = cells_of(table);
  const auto width_of = [](const std::string& cell) { return static_cast<size_t>(count_characters(cell)); };
  std::vector<bool> left;
  for (const Column& column : table.columns)
    if (!column.heading.empty()) left.push_back(column.left);
  std::vector<size_t> widths(left.size());
  for (const Cells& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  std::string text;
  for (const Cells& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - width_of(row[i]), ' ');
      line += (i ? "  " : "") + (left[i] ? row[i] + blanks : blanks + row[i]);
    }
    text += (text.empty() ? "" : "\n") + line.substr(0, line.find_last_not_of(' ') + 1);
  }
  return text;
}

Value json_of(const ResultTable& table) {
  std::vector<Object> objects(table.rows());
  for (const Column& column : table.columns)
    for (size_t i = 0; !column.key.empty() && i < objects.size(); ++i)
      if (!std::holds_alternative<std::monostate>(column.values[i].any())) set(objects[i], column.key, column.values[i]);
  return Value(objects);
}

std::string json_text(const Value& value, int indent) {
  const std::string all = to_json(value).dump(indent, ' ', false, json::error_handler_t::replace);
  std::string text;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto byte = static_cast<unsigned char>(all[i]), next = static_cast<unsigned char>(all.c_str()[i + 1]);
    const bool is_c1 = byte == 0xc2 && next < 0xa0;  // U+0080 to U+009F
    if (byte == 0x7f || is_c1) text += fmt::format("\\u{:04x}", is_c1 ? next : byte);
    else text += all[i];
    i += is_c1;
  }
  return text;
}

void print(const std::string& text) { std::puts(text.c_str()); }

}  // namespace ricci::apps
