// Fuzzes changes of other programs to a text: a mark at its start, Windows line ends, empty lines, no last line end. For any text, every
// reader finds the same documents and labels in the clean and in the dirty file. The first byte chooses the dirt, the second the block
// size.
#include <utility>
#include <vector>

#include "data/formats/documents.h"
#include "data/text/utf8.h"
#include "tests/fuzz/input.h"

using namespace ricci;

namespace {

using Found = std::vector<std::pair<std::string, int32_t>>;

// The documents before the first error, and whether it occurred.
std::pair<Found, bool> read(std::string_view text, const DocumentOptions& options) {
  Found documents;
  bool is_whole = false;
  fuzz::attempt([&] {
    DocumentReader reader({TextSource({"input"}, std::array{BuiltInText{"input", text}}), options}, complete_utf8_prefix);
    for (DocumentPiece piece; reader.next(piece);) documents.emplace_back(piece.text, piece.label);
    is_whole = true;
  });
  return {documents, is_whole};
}

std::string decoded(std::string_view bytes, size_t block) {
  std::string text;
  TextDecoder decoder(Encoding::utf8);
  for (size_t at = 0; at < bytes.size(); at += block) decoder.append(bytes.substr(at, block), "input", text);
  decoder.finish("input", text);
  return text;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  std::string clean;
  bool is_text = false;
  fuzz::attempt([&] {
    clean = decoded(bytes, bytes.size());
    is_text = true;
  });
  bool is_text_in_blocks = false;
  fuzz::attempt([&] {
    fuzz::require(decoded(bytes, 1 + data[1] % 8) == clean, "blocks give the same text");
    is_text_in_blocks = true;
  });
  fuzz::require(is_text == is_text_in_blocks, "blocks give the same error");
  if (!is_text || clean.find("\r\n") != clean.npos || clean.starts_with("\xef\xbb\xbf")) return 0;
  const bool has_end = clean.size() > 1 && clean.ends_with('\n') && !clean.ends_with("\n\n");
  for (const DocumentOptions& options : {DocumentOptions{}, {.documents = "line"}, {.documents = "line", .keep_line_ends = false},
           {.documents = "blank_line"}, {.documents = "<end>"}, {.format = format_of(kJsonl), .label_field = "l", .classes = 5},
           {.format = format_of(kTsv), .label_field = "1", .classes = 5}, {.format = format_of(kCsv), .label_field = "l", .classes = 5},
           {.format = format_of(kMessages)}, {.format = format_of(kPairs)}}) {
    std::string dirty = clean;
    const bool is_records = options.format != format_of(kPlainText), is_paragraphs = options.documents == "blank_line";
    if ((data[0] & 1) && has_end && (is_records || is_paragraphs || options.documents == "line")) dirty.pop_back();
    const bool has_quotes = options.format == format_of(kCsv) && clean.find('"') != clean.npos;  // empty lines between them are text
    if ((data[0] & 2) && is_records && !has_quotes) dirty = "\n" + replaced(dirty, "\n", "\n \t\n");
    if ((data[0] & 2) && is_paragraphs) dirty = "\n" + replaced(dirty, "\n\n", "\n\n\n");
    if (data[0] & 4) dirty = replaced(dirty, "\n", "\r\n");
    if (data[0] & 8) dirty = "\xef\xbb\xbf" + dirty;
    fuzz::require(read(dirty, options) == read(clean, options), "dirt changes no document");
  }
  return 0;
}
