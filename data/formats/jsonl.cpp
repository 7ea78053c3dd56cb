// An object per line, with the text and the label as members.
#include "core/error.h"
#include "core/json/value.h"
#include "data/formats/formats.h"
#include "data/text/utf8.h"

namespace ricci {
namespace {

constexpr JsonLimits kLineLimits = {.depth = 64, .values = int64_t{1} << 28};

Record read_object(std::string_view line, const DocumentOptions& options, const std::string& place) {
  const std::string field = options.text_field.empty() ? "text" : options.text_field;
  const JsonValue object = parse_json(line, place.c_str(), kLineLimits);
  if (!object.is_object()) fail("{}: is not a JSON object", {place});
  const JsonValue &text = object[field], &label = object[options.label_field];
  std::string others;
  if (object["messages"].is_list()) others = "; format messages reads conversations";
  if (object["prompt"].is_text() && object["answer"].is_text()) others = "; format pairs reads prompts and answers";
  if (!text.is_text()) fail("{}: has no text \"{}\"{}", {place, one_line(field), others});
  Record record{text.text(), -1};
  if (options.label_field.empty()) return record;
  if (label.is_null()) fail("{}: has no label \"{}\"", {place, one_line(options.label_field)});
  const bool is_word = label.is_text() && !options.labels.empty();
  if (!is_word && !label.is_integer())
    fail("{}: label {} is not an integer from 0 to {}", {place, one_line(label.to_json()), options.classes - 1});
  record.label = label_in(is_word ? label.text() : label.to_json(), options, place);
  return record;
}

}  // namespace

const FormatTraits kJsonl{
    .name = "jsonl", .suffix = ".jsonl", .lines = "an object per line", .fields = "a name, empty: text", .read = read_object};

}  // namespace ricci
