// The documents of files of every format, in pieces of bounded length, from any place on.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/formats/formats.h"
#include "data/text/text.h"

namespace ricci {

// The place in files up to which documents were read.
struct InputPlace {
  int64_t input = 0;     // which of the files; 0 where all are joined
  int64_t document = 0;  // documents of this file that are complete
  int64_t byte = 0;      // bytes of the next one
  bool operator==(const InputPlace&) const = default;
};

// A document, or a part of a long one. The places of division depend only on its text. A line of a format with a mask is one piece,
// which the format's encoder encodes.
struct DocumentPiece {
  std::string text;
  bool starts = false, ends = false;  // the document
  int32_t label = -1;
  InputPlace end = {};     // after this piece
  std::string place = {};  // for messages: "a.jsonl:17", "a.txt: document 3"
  int64_t first_byte = 0;  // the place in the document where the piece starts; of joined files, in all their text
};

// The documents of files: a small value.
struct Documents {
  TextSource files;
  DocumentOptions options = {};
  bool joined = false;       // all files are one text, joined character to character, and this is the document
  int64_t cut = 0;           // the character of joined files that starts a second document, counted from 0; 0 if there is none
  int64_t most = INT64_MAX;  // documents that are read, at most
};

// The number of bytes of a text that are certain to be complete units, whatever follows it, such as Tokenizer::complete_prefix.
using CompletePrefix = std::function<size_t(std::string_view text)>;

class DocumentReader {
 public:
  static constexpr size_t kPiece = 256 << 10;   // bytes in a piece, at most
  static constexpr size_t kMaxLine = 64 << 20;  // in a line that is a document

  // from: where an earlier reader of the same documents ended. Earlier documents are read but skipped. Only the last piece of a document
  // ends inside a unit, or one that is longer than a piece, which is divided between two characters. Errors: check(options)'s.
  DocumentReader(const Documents& documents, CompletePrefix complete_prefix, const InputPlace& from = {});

  // Nothing at the end. Errors: TextStream's and the records'; files that end before the cut.
  bool next(DocumentPiece& piece);
  int64_t bytes_of_files() const { return stream_.bytes_of_files(); }  // with those before `from`

 private:
  bool next_anywhere(DocumentPiece& piece);
  bool next_text(DocumentPiece& piece);
  bool next_record(DocumentPiece& piece);
  bool next_line();
  std::pair<std::string_view, bool> next_part(std::string_view separator, size_t most);
  void read_more();
  void find_cut(std::string_view block);
  size_t cut_piece(DocumentPiece& piece, std::string_view document, bool whole);
  std::string place_of_text() const;

  Documents documents_;
  CompletePrefix complete_prefix_;
  InputPlace from_, at_ = {.input = from_.input};
  TextStream stream_;
  std::string separator_;  // empty if a document ends with its file
  bool keeps_separator_ = documents_.options.documents == "line" && documents_.options.keep_line_ends;  // in the document
  bool is_paragraphs_ = documents_.options.documents == "blank_line";  // any number of empty lines separates them
  bool in_member_ = false, member_ended_ = false;
  std::string text_;  // decoded and not returned yet: from used_ on
  size_t used_ = 0, searched_ = 0;
  int64_t started_ = 0;                       // documents
  int64_t line_ = 0;                          // in the member, for messages
  Record record_;                             // the last line
  std::string record_place_;                  // for messages
  int64_t joined_byte_ = 0;                   // bytes of joined files that were returned
  int64_t characters_left_ = documents_.cut;  // to be read before the cut
  std::optional<int64_t> second_byte_;        // where the second document of joined files starts, if this was read
};

// Calls use for the texts that a vocabulary is trained on, but empty ones: the pieces of the documents, or where the format has texts of
// its own, each of these whole.
void for_each_text(const Documents& documents, const CompletePrefix& complete_prefix, const std::function<void(const DocumentPiece&)>& use);

// The labels of documents, where they are words: each once, sorted. The list is empty if the first is an integer or cannot be read.
// The first line that cannot be read ends the search; it is reported when the documents are read.
std::vector<std::string> word_labels(const Documents& documents);

}  // namespace ricci
