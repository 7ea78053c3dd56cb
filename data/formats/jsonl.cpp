// A JSON object per line, with the text and the label as members.
#include "core/error.h"
#include "core/json.h"
#include "data/formats/formats.h"
#include "data/text/utf8.h"

namespace ricci {
namespace {

constexpr JsonLimits kLineLimits = {.depth = 64, .values = int64_t{1} << 28};

Record read_object(const Line& line, const DocumentOptions& options) {
  const std::string& place = line.place;
  const std::string field = options.text_field.empty() ? "text" : options.text_field;
  const Json object = parse_json(line.text, place, kLineLimits);
  if (!object.is_object()) fail("{}: is not a JSON object", {place});
  const Json &text = member(object, field), &label = member(object, options.label_field);
  std::string others;
  if (member(object, "messages").is_array()) others = "; format messages reads conversations";
  if (member(object, "prompt").is_string() && member(object, "answer").is_string()) others = "; format pairs reads prompts and answers";
  if (!text.is_string()) fail("{}: has no text \"{}\"{}", {place, one_line(field), others});
  Record record{text.get<std::string>(), -1};
  if (options.label_field.empty()) return record;
  if (label.is_null()) fail("{}: has no label \"{}\"", {place, one_line(options.label_field)});
  const bool is_word = label.is_string() && !options.labels.empty();
  if (!is_word && !label.is_number_integer())
    fail("{}: label {} is not an integer from 0 to {}{}",
        {place, one_line(label.dump()), options.classes - 1, label.is_string() ? "; list words in the key labels, such as [no, yes]" : ""});
  record.label = read_label(is_word ? label.get<std::string>() : label.dump(), options, place);
  return record;
}

}  // namespace

const FormatTraits kJsonl{.name = "jsonl",
    .suffixes = {".jsonl", ".ndjson", ".jsonlines"},
    .lines = "an object per line",
    .fields = "a member's name (default: text)",
    .read = read_object};

}  // namespace ricci
