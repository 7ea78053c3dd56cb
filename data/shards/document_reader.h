// The documents of files of every format, in pieces of bounded length, from any place on. A line of messages is one piece, which a
// ChatTokenizer encodes (data/tokenizers/chat.h).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/formats/formats.h"
#include "data/shards/pieces.h"
#include "data/text/file_stream.h"
#include "data/text/utf8.h"

namespace ricci {

// The labels of documents, where they are words: each once, sorted. The list is empty if the first is an integer or cannot be read.
// The first line that cannot be read ends the search; it is reported when the documents are read.
std::vector<std::string> word_labels(const TextSource& files, const DocumentOptions& options);

// The documents, or the first of them, as texts to train on. Of messages: each role and each content, as a template has them.
Texts documents_of(const TextSource& files, const DocumentOptions& options, int64_t most = INT64_MAX);

class DocumentReader final : public PieceReader {
 public:
  using CompletePrefix = TextPieces::CompletePrefix;
  static constexpr size_t kPiece = TextPieces::kLongest;  // bytes in a piece, at most
  static constexpr size_t kMaxLine = 64 << 20;            // in a line that is a document

  // The files in their order; from: where an earlier reader of the same files ended. Earlier documents are read but skipped.
  // Errors: check(options)'s.
  DocumentReader(const TextSource& files, const DocumentOptions& options, CompletePrefix complete_prefix, const InputPlace& from = {});

  // Errors: MemberStream's and the records'.
  bool next(DocumentPiece& piece) override;
  int64_t bytes_of_files() const override;  // with those before `from`

 private:
  bool next_anywhere(DocumentPiece& piece);
  bool next_text(DocumentPiece& piece);
  bool next_record(DocumentPiece& piece);
  bool next_line();
  std::pair<std::string_view, bool> next_part(std::string_view separator, size_t most);
  void read_more();
  size_t cut_piece(DocumentPiece& piece, std::string_view document, bool whole);

  TextSource files_;
  DocumentOptions options_;
  CompletePrefix complete_prefix_;
  InputPlace from_, at_;
  std::string separator_;         // empty if a document ends with its file
  bool keeps_separator_ = false;  // in the document
  bool is_paragraphs_ = false;    // any number of empty lines separates them
  std::unique_ptr<MemberStream> members_;
  int64_t closed_ = 0;  // bytes on disk of the files that are done
  std::string text_;    // decoded and not returned yet: from used_ on
  size_t used_ = 0, searched_ = 0;
  bool in_member_ = false, member_ended_ = false;
  int64_t line_ = 0;  // in the member, for messages
  Record record_;     // the last line
  std::string record_place_;
};

}  // namespace ricci
