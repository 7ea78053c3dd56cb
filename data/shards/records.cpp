#include "data/shards/records.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json/depth.h"

namespace ricci {
namespace {

constexpr int kDeepest = 64;
constexpr const char *kText = "text_field", *kLabel = "label_field";

// 0: none is named.
int64_t column_of(const char* key, const std::string& field) {
  int64_t column = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), column);
  if (!field.empty() && (error != std::errc() || end != field.data() + field.size() || column < 1 || column > 1'000'000))
    fail("{}: '{}' is not the number of a column, counted from 1", {key, one_line(field)});
  return column;
}

int32_t label_in_range(int64_t label, const DocumentOptions& options, const std::string& place) {
  if (label < 0 || label >= options.classes)
    fail("{}: label {} is out of range: {} classes have 0 to {}", {place, label, options.classes, options.classes - 1});
  return static_cast<int32_t>(label);
}

int32_t label_of(std::string_view text, const DocumentOptions& options, const std::string& place) {
  int64_t label = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), label);
  if (error != std::errc() || end != text.data() + text.size())
    fail("{}: label '{}' is not an integer from 0 to {}", {place, one_line(text), options.classes - 1});
  return label_in_range(label, options, place);
}

// The column that an option names; the last where it names none.
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

}  // namespace

void check(const DocumentOptions& o) {
  if (o.documents.empty()) fail("documents: is empty; expected file, line, blank_line, or the text between two documents");
  if (o.format != DocumentFormat::text && o.documents != "file")
    fail("documents: a line of {} is a document; only format: text asks what is one", {name_of(o.format)});
  if (o.format == DocumentFormat::text && !(o.text_field.empty() && o.label_field.empty()))
    fail("text_field, label_field: only jsonl and tsv have fields");
  if (o.label_field.empty() != (o.classes == 0)) fail("label_field and classes: expected both or neither");
  if (o.classes < 0 || o.classes > INT32_MAX) fail("classes: {}, expected 1 to {}", {o.classes, INT32_MAX});
  if (o.format != DocumentFormat::tsv) return;
  column_of(kText, o.text_field);
  column_of(kLabel, o.label_field);
}

Record record_of_json(std::string_view line, const DocumentOptions& options, const std::string& place) {
  const std::string field = options.text_field.empty() ? "text" : options.text_field;
  if (json_depth(line) > kDeepest) fail("{}: the JSON is nested deeper than {} levels", {place, kDeepest});
  nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object()) fail("{}: is not a JSON object", {place});
  const auto text = object.find(field);
  if (text == object.end() || !text->is_string()) fail("{}: has no text \"{}\"", {place, one_line(field)});
  Record record{std::move(text->get_ref<std::string&>()), -1};
  if (options.label_field.empty()) return record;
  const auto label = object.find(options.label_field);
  if (label == object.end()) fail("{}: has no label \"{}\"", {place, one_line(options.label_field)});
  const bool fits = label->is_number_integer() && !(label->is_number_unsigned() && label->get<uint64_t>() > INT64_MAX);
  if (!fits) {
    const std::string written = label->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    fail("{}: label {} is not an integer from 0 to {}", {place, one_line(written), options.classes - 1});
  }
  record.label = label_in_range(label->get<int64_t>(), options, place);
  return record;
}

Record record_of_tsv(std::string_view line, const DocumentOptions& options, const std::string& place) {
  Record record{std::string(column(line, kText, options.text_field, place)), -1};
  if (!options.label_field.empty()) record.label = label_of(column(line, kLabel, options.label_field, place), options, place);
  return record;
}

}  // namespace ricci
