// Formats of documents: how a line of a file becomes a document, perhaps with a label. Readers of files and programs know a format only by
// its properties, so a new one is a file with its row, such as tsv.cpp, and its name in the list below.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ricci {

class Tokenizer;

// The choice of a format at run time: its number in the list.
enum class DocumentFormat : uint8_t {};

// The options that make documents out of texts.
struct DocumentOptions {
  DocumentFormat format = {};            // text
  std::string documents = "file";        // in text: one per file, line, or paragraph (blank_line); any other text separates two
  bool keep_line_ends = true;            // in documents that are lines
  std::string text_field = {};           // as the format has fields; its default if empty
  std::string label_field = {};          // the field with the label; empty if documents have none
  int64_t classes = 0;                   // labels are 0 ... classes - 1
  std::vector<std::string> labels = {};  // names of the classes, if they have some; a label may be one of them
  std::vector<std::string> chat = {};    // the template of messages (data/tokenizers/chat.h)
};

// Error: options that do not belong together.
void check(const DocumentOptions& options);

struct Record {
  std::string text;
  int32_t label = -1;
};

// The ids of a document, and which of them count, because only an answer is to be learned.
struct EncodedDocument {
  std::vector<int64_t> ids;
  std::vector<bool> counts = {};  // one for each id; empty if all count
};

// A line as ids. Errors have no place: the caller names it.
using DocumentEncoder = std::function<EncodedDocument(std::string_view line)>;

struct FormatTraits {
  const char* name;
  const char* suffix = "";  // files that end so have this format if none is asked for
  const char* lines = "";   // for the help: "an object per line"; empty if lines are not documents
  const char* fields = "";  // for the help, how text_field names one: "a name, empty: text"; nothing if lines have none
  // A line without its end as a document. `place` is for messages: "a.jsonl:17". Errors: the line is not of this format; no such field;
  // a field that is not a text; label_in's.
  Record (*read)(std::string_view line, const DocumentOptions& options, const std::string& place) = nullptr;
  void (*check_field)(const char* key, const std::string& field) = nullptr;  // error: no line can have this field
  // Documents of this format have ids that count and ids that do not. Null: the text is encoded as it is.
  DocumentEncoder (*encoder)(const std::shared_ptr<const Tokenizer>& tokenizer, const DocumentOptions& options) = nullptr;
  // With an encoder: the texts of a line that a vocabulary can be trained on. Errors have no place.
  std::vector<std::string> (*texts)(std::string_view line) = nullptr;
  bool has_template = false;  // a chat template writes the documents

  bool is_text() const { return !read && !encoder; }
  bool is_documents() const { return !encoder; }
  bool has_mask() const { return encoder; }
  bool has_fields() const { return *fields != '\0'; }
  bool has_suffix() const { return *suffix != '\0'; }
};

// ---- The list
extern const FormatTraits kPlainText, kJsonl, kTsv, kMessages, kPairs;
inline constexpr std::array kFormats = {&kPlainText, &kJsonl, &kTsv, &kMessages, &kPairs};

constexpr const FormatTraits& traits_of(DocumentFormat format) { return *kFormats[static_cast<size_t>(format)]; }
constexpr DocumentFormat format_of(const FormatTraits& row) {
  size_t number = 0;
  while (kFormats[number] != &row) ++number;
  return static_cast<DocumentFormat>(number);
}
inline auto choices(DocumentFormat) {
  std::array<const char*, kFormats.size()> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kFormats[i]->name;
  return names;
}

// "jsonl and tsv": the formats for which the property is true; before_last: " and ".
std::string list_of_formats(bool (FormatTraits::*property)() const, const std::string& before_last);
// "jsonl: a name, empty: text; tsv: ...": a description of each format that has it.
std::string describe_formats(const char* FormatTraits::*description);

// The format that the names of files ask for, also below a folder or compressed; text if they do not ask for one.
DocumentFormat format_of_names(const std::vector<std::string>& paths);

// ---- For the files of formats
bool is_integer(std::string_view text, int64_t& value);
// A label: a name of a class, or its number. Errors: neither; a number out of range.
int32_t label_in(std::string_view text, const DocumentOptions& options, const std::string& place);

}  // namespace ricci
