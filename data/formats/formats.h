// Document formats. A format defines how a record of a file, usually a line, becomes a document, with or without a label. Readers and
// programs use only the properties below. A new format needs one file, such as tsv.cpp, and one name in kFormats.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ricci {

class Tokenizer;

// A format that is chosen at run time: its index in kFormats.
enum class DocumentFormat : uint8_t {};

// The division of files into documents.
struct DocumentOptions {
  DocumentFormat format = {};            // plain text
  std::string documents = "file";        // for plain text: file, line, blank_line (paragraphs), or the text between two documents
  bool keep_line_ends = true;            // in documents that are lines
  std::string text_field = {};           // the text field, by default the format's
  std::string label_field = {};          // the label field; empty without labels
  int64_t classes = 0;                   // labels are 0 ... classes - 1
  std::vector<std::string> labels = {};  // class names; if given, a label is a name or a number
  std::vector<std::string> chat = {};    // the chat template (data/tokenizers/chat.h)
  std::string chosen_by = {};            // for messages: the file name that chose the format; empty if the user named the format
};

// Error: options contradict each other.
void check(const DocumentOptions& options);

// A record of a file.
struct Line {
  std::string_view text;                     // without its line end
  std::span<const std::string> header = {};  // field names, if the format has a header
  std::string place = {};                    // for messages: "a.jsonl:17"
};

struct Record {
  std::string text;
  int32_t label = -1;
};

// The ids of a document. Ids with counts = false are inputs, but not targets: a model learns an answer, not its prompt.
struct EncodedDocument {
  std::vector<int64_t> ids;
  std::vector<bool> counts = {};  // for each id, whether it is scored; empty if all are
};

// Turns a line into ids. The caller adds the line's location to errors.
using DocumentEncoder = std::function<EncodedDocument(std::string_view line)>;

// A format defines `read` if documents are texts to encode unchanged, or `encoder` and `texts` if documents have a mask.
struct FormatTraits {
  const char* name;                          // the value of the key `format`
  std::array<const char*, 3> suffixes = {};  // file name suffixes that choose the format, in lower case
  const char* lines = "";                    // for --help: "an object per line"
  const char* fields = "";                   // for --help: how to specify a field in text_field; empty if lines have no fields
  char quote = '\0';                         // a line end between two quotes is part of the record
  // Reads the field names from the first record of a file; null for formats without a header. Errors begin with line.place.
  std::vector<std::string> (*read_header)(const Line& line) = nullptr;
  // Reads a document. Errors, beginning with line.place: the line has the wrong format or lacks the field; read_label's.
  Record (*read)(const Line& line, const DocumentOptions& options) = nullptr;
  void (*check_field)(const char* key, const std::string& field) = nullptr;  // error: no line can have this field
  DocumentEncoder (*encoder)(const std::shared_ptr<const Tokenizer>& tokenizer, const DocumentOptions& options) = nullptr;
  std::vector<std::string> (*texts)(std::string_view line) = nullptr;     // the texts of a line that train a vocabulary
  std::set<std::string> (*unread_keys)(std::string_view line) = nullptr;  // keys of a line that have no effect, for a warning; or null
  bool has_template = false;                                              // documents are formatted by a chat template

  bool is_text() const { return !read && !encoder; }
  bool is_documents() const { return !encoder; }
  bool has_mask() const { return encoder; }
  bool has_fields() const { return *fields != '\0'; }
  bool has_suffix() const { return suffixes[0]; }
};

// ---- The list
extern const FormatTraits kPlainText, kJsonl, kTsv, kCsv, kMessages, kPairs;
inline constexpr std::array kFormats = {&kPlainText, &kJsonl, &kTsv, &kCsv, &kMessages, &kPairs};

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

// Lists the formats with this property: "jsonl and tsv" if before_last is " and ".
std::string list_of_formats(bool (FormatTraits::*property)() const, const std::string& before_last);
// Lists this description of each format that has one, such as "jsonl: an object per line; tsv: ...".
std::string describe_formats(const char* FormatTraits::*description);

// The format for a file name, in any letter case, compressed or not; plain text if no suffix matches.
DocumentFormat format_of_name(std::string name);

struct NamedFormat {
  DocumentFormat format = {};
  std::string file = {};  // the file name that chose the format
};
// The format of the first file name with a matching suffix, also in folders; plain text and no file if no name matches. All programs choose
// formats with this function.
NamedFormat format_of_names(const std::vector<std::string>& paths);

// ---- For the files that define formats
// Joins parts, as "a, b and c" with ", " and " and ".
std::string join(std::span<const std::string> parts, const std::string& between, const std::string& before_last);
bool is_integer(std::string_view text, int64_t& value);
// Reads the label in a field: a class name or a number. Errors: the field is neither; the number is out of range.
int32_t read_label(std::string_view field, const DocumentOptions& options, const std::string& place);

}  // namespace ricci
