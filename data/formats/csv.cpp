// Comma-separated fields, as in RFC 4180. A quoted field can contain commas, line ends and doubled quotes. The first record names the
// columns.
#include <algorithm>

#include "core/error.h"
#include "data/formats/formats.h"

namespace ricci {
namespace {

// Removes and returns the first field of `rest`. Errors: a quote is inside an unquoted field, is not closed, or is followed by text.
std::string take_field(std::string_view& rest, const std::string& place, size_t column) {
  std::string field;
  if (!rest.starts_with('"')) {
    field = rest.substr(0, rest.find(','));
    if (field.find('"') != field.npos) fail("{}: column {} contains a quote, but does not begin with a quote", {place, column});
    rest.remove_prefix(field.size());
    return field;
  }
  do {
    const size_t end = rest.find('"', 1);
    if (end == rest.npos) fail("{}: the quote that begins column {} is not closed", {place, column});
    field += rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    if (rest.starts_with('"')) field += '"';
  } while (rest.starts_with('"'));
  if (!rest.empty() && rest[0] != ',') fail("{}: text follows the closing quote of column {}", {place, column});
  return field;
}

std::vector<std::string> split_record(const Line& line) {
  std::vector<std::string> fields;
  for (std::string_view rest = line.text;; rest.remove_prefix(1)) {
    fields.push_back(take_field(rest, line.place, fields.size() + 1));
    if (rest.empty()) return fields;
  }
}

Record read_fields(const Line& line, const DocumentOptions& options) {
  const std::vector<std::string> fields = split_record(line);
  const std::span<const std::string> names = line.header;
  if (fields.size() != names.size()) fail("{}: has {} columns, expected {} as in the header", {line.place, fields.size(), names.size()});
  const auto field = [&](const std::string& name) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      fail("{}: has no column '{}', only {}", {line.place, one_line(name), one_line(join(names, ", ", " and "), 200)});
    return fields[static_cast<size_t>(found - names.begin())];
  };
  Record record{field(options.text_field.empty() ? "text" : options.text_field)};
  if (!options.label_field.empty()) record.label = read_label(field(options.label_field), options, line.place);
  return record;
}

}  // namespace

const FormatTraits kCsv{.name = "csv",
    .suffixes = {".csv"},
    .lines = "comma-separated fields below a line of names",
    .fields = "a column's name (default: text)",
    .quote = '"',
    .read_header = split_record,
    .read = read_fields};

}  // namespace ricci
