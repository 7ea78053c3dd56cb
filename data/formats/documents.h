// Reads the documents of files in any format, in pieces of bounded length, starting at any piece.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/formats/formats.h"
#include "data/text/text.h"

namespace ricci {

// The position in the files up to which documents were read.
struct InputPlace {
  int64_t input = 0;     // index of the file
  int64_t document = 0;  // complete documents read
  int64_t byte = 0;      // bytes of the next document that were read
  auto operator<=>(const InputPlace&) const = default;
};

// A document, or a part of a long one. The division depends only on the document's text. In formats with a mask, a document is one
// line and is not divided; the format's encoder reads it.
struct DocumentPiece {
  std::string text;
  bool starts = false, ends = false;  // true for the first and the last piece of a document
  int32_t label = -1;
  InputPlace end = {};     // position after this piece
  bool after_cut = false;  // true for the validation part
  std::string place = {};  // for messages: "a.jsonl:17", "a.txt: document 3"
  int64_t first_byte = 0;  // position of the piece in the document, or in the file if it is split
};

// The documents of files. Cheap to copy. In plain text, each file and each archive member is a document. If no end token follows documents,
// line ends separate them: a line end is added to each document without one, except the last. (With Encoding::bytes, none is added.)
struct Documents {
  TextSource files;
  DocumentOptions options = {};
  // Plain text: the validation part and a new document start at this character, counted over all files; 0 without a cut.
  int64_t cut = 0;
  bool stops_at_cut = false;  // only the training part is read
  int64_t limit = INT64_MAX;  // maximum number of documents

  bool is_text() const { return traits_of(options.format).is_text(); }
};

// Returns the length of a prefix of the text that can be encoded separately from the rest, as Tokenizer::complete_prefix does.
using CompletePrefix = std::function<size_t(std::string_view text)>;

class DocumentReader {
 public:
  static constexpr size_t kPiece = 256 << 10;   // maximum bytes in a piece
  static constexpr size_t kMaxLine = 64 << 20;  // maximum bytes in a line that is a document

  // from: DocumentPiece::end of an earlier reader of the same documents. A piece ends where complete_prefix allows, unless it is the last
  // of its document or contains no such position. Errors: check(options)'s.
  DocumentReader(const Documents& documents, CompletePrefix complete_prefix, const InputPlace& from = {});

  // Reads the next piece. Returns false at the end. Errors: TextStream's; the format's; the files end before the cut.
  bool next(DocumentPiece& piece);
  int64_t bytes_of_files() const { return stream_.bytes_of_files(); }  // including those before `from`
  // False for the start of an empty document, unless an end token follows the document.
  bool has_tokens(const DocumentPiece& piece) const { return !piece.text.empty() || !documents_.options.keep_line_ends; }

 private:
  bool next_text(DocumentPiece& piece);
  bool next_record(DocumentPiece& piece);
  bool next_line();
  std::pair<std::string_view, bool> next_document();
  size_t find_end(std::string_view rest);
  bool start_part();
  bool part_ended() const { return member_ended_ || !rest_.empty(); }
  void read_more();
  size_t find_cut(std::string_view block);
  void append_paragraphs(std::string_view block);
  size_t cut_piece(DocumentPiece& piece, std::string_view document, bool whole);

  Documents documents_;
  CompletePrefix complete_prefix_;
  InputPlace from_, at_ = {.input = from_.input};
  TextStream stream_;
  const FormatTraits& format_;
  std::string separator_;  // between two documents; empty if a document ends with its file
  bool keeps_separator_ = documents_.options.documents == "line" && documents_.options.keep_line_ends;  // in the document
  bool ends_lines_ = documents_.is_text() && documents_.options.documents == "file" && documents_.options.keep_line_ends &&
                     documents_.files.encoding() != Encoding::bytes;   // adds a missing line end before the next document
  bool is_paragraphs_ = documents_.options.documents == "blank_line";  // any number of blank lines separates documents
  // A part is a member, or the text of a member before or after the cut. has_next_: the stream is already at the next member.
  bool member_ended_ = true, has_next_ = false;
  std::string name_;       // name of the member
  std::string text_;       // decoded text; the first used_ bytes were returned
  std::string_view rest_;  // the text that follows text_, after the cut
  size_t used_ = 0, searched_ = 0;
  bool in_quotes_ = false;                    // true if searched_ is inside quotes
  bool starts_line_ = true;                   // paragraphs: the line so far contains only blanks_
  std::string blanks_;                        // white space after text_; dropped at a line end
  int64_t line_ = 0;                          // line number in the member
  std::vector<std::string> header_;           // field names of the member, if the format has a header
  Record record_;                             // the last record
  std::string record_place_;                  // for messages
  int64_t first_byte_ = 0;                    // position of the next piece
  int64_t characters_left_ = documents_.cut;  // characters before the cut
  bool after_cut_ = false;
};

// Cuts a plain text before the character floor(train_fraction * characters). Error: a part would be empty.
void cut_text(Documents& text, double train_fraction, int64_t characters);
// Counts the characters of a plain text, and cuts it.
void cut_text(Documents& text, double train_fraction);

// The length of a text in units that do not depend on a tokenizer.
struct TextSize {
  int64_t bytes = 0;
  int64_t words = 0;
};

// The size of all documents, without the bytes before from_byte. Words are counted as in lm-eval, by Python's re.split(r"\s+", document):
// white space at the start or end of a document adds an empty word.
TextSize size_of_text(const Documents& documents, int64_t from_byte = 0);

// A warning about keys without effect in the first lines or, unless the format was named, about a text that looks like JSON; empty if
// neither applies.
std::string note_on(const Documents& documents, bool is_named);

// Calls `use` for each text that trains a vocabulary: the pieces of the documents or, if the format defines `texts`, the texts of each
// line.
void for_each_text(const Documents& documents, const CompletePrefix& complete_prefix, const std::function<void(const DocumentPiece&)>& use);

// Returns the distinct labels, sorted, if labels are words; nothing if the first label is an integer. The search ends at the first line
// that its format cannot read; the error is reported when the documents are read. Errors: TextStream's.
std::vector<std::string> word_labels(const Documents& documents);

}  // namespace ricci
