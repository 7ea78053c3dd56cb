// The documents of text files, JSONL or TSV, in pieces of bounded length, from any place on.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/documents/members.h"
#include "data/documents/records.h"
#include "data/shards/shard_header.h"

namespace ricci {

// A document, or a part of a long one. Where a document is divided depends on its text alone.
struct DocumentPiece {
  std::string text;
  bool starts = false, ends = false;  // the document
  int32_t label = -1;
  InputPlace end;          // behind this piece
  std::string place;       // for messages: "a.jsonl:17", "a.txt: document 3"
  int64_t first_byte = 0;  // of the document, with which the piece starts
};

class DocumentReader {
 public:
  // Bytes of the text that encode to the same ids whatever follows (Tokenizer::complete_prefix).
  using CompletePrefix = std::function<size_t(std::string_view)>;
  static constexpr size_t kPiece = 256 << 10;   // bytes of a piece, at most
  static constexpr size_t kMaxLine = 64 << 20;  // of a line of JSONL or TSV

  // The files in their order; from: where an earlier reader of the same files ended. Earlier documents are read but skipped.
  // Errors: those of check(options).
  DocumentReader(
      std::vector<TextSource> files, const DocumentOptions& options, CompletePrefix complete_prefix, const InputPlace& from = {});

  // Nothing at the end. Errors: unreadable files, text that is not in its encoding, and those of the records.
  bool next(DocumentPiece& piece);

  int64_t bytes_of_files() const;  // read so far, with those in front of `from`

 private:
  bool next_anywhere(DocumentPiece& piece);
  bool next_text(DocumentPiece& piece);
  bool next_record(DocumentPiece& piece);
  bool next_line();
  void read_more();
  size_t cut_piece(DocumentPiece& piece, std::string_view document, bool whole);

  std::vector<TextSource> files_;
  DocumentOptions options_;
  CompletePrefix complete_prefix_;
  InputPlace from_, at_;
  std::string separator_;         // empty: a document ends with its file
  bool keeps_separator_ = false;  // in the document
  std::unique_ptr<MemberStream> members_;
  std::unique_ptr<TextDecoder> decoder_;
  int64_t closed_ = 0;  // bytes on disk of the files that are done
  std::string text_;    // decoded and not returned yet: from used_ on
  size_t used_ = 0, searched_ = 0;
  bool in_member_ = false, member_ended_ = false;
  int64_t line_ = 0;  // of the member, for messages
  Record record_;     // of the last line
  std::string record_place_;
};

}  // namespace ricci
