// A line of JSONL or TSV as a document with a label.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "data/text/encoding.h"

namespace ricci {

enum class DocumentFormat : uint8_t { text, jsonl, tsv };
constexpr auto choices(DocumentFormat) { return std::array{"text", "jsonl", "tsv"}; }

// What makes documents out of texts.
struct DocumentOptions {
  DocumentFormat format = DocumentFormat::text;
  Encoding encoding = Encoding::utf8;
  std::string documents = "file";  // in text: one per file, line, or paragraph (blank_line); any other text stands between two
  bool keep_line_ends = true;      // in documents that are lines
  std::string text_field = {};     // of JSONL: its name; of TSV: its column, from 1; empty: "text", or the last column
  std::string label_field = {};    // the same of the label; empty: there is none
  int64_t classes = 0;             // labels are 0 ... classes - 1
};

// Error: options that do not belong together, or a column that is no number.
void check(const DocumentOptions& options);

struct Record {
  std::string text;
  int32_t label = -1;
};

// One line, without its end. `place` for messages: "a.jsonl:17". Errors: not an object, nested too deeply, no such field or column,
// a field that is no text, a label that is no integer or out of range.
Record record_of_json(std::string_view line, const DocumentOptions& options, const std::string& place);
Record record_of_tsv(std::string_view line, const DocumentOptions& options, const std::string& place);

}  // namespace ricci
