// The documents of text files, JSONL or TSV, in pieces of bounded length, from any place on.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/shards/pieces.h"
#include "data/shards/records.h"
#include "data/text/members.h"

namespace ricci {

class DocumentReader final : public PieceReader {
 public:
  using CompletePrefix = TextPieces::CompletePrefix;
  static constexpr size_t kPiece = 256 << 10;   // bytes of a piece, at most
  static constexpr size_t kMaxLine = 64 << 20;  // of a line of JSONL or TSV

  // The files in their order; from: where an earlier reader of the same files ended. Earlier documents are read but skipped.
  // Errors: those of check(options).
  DocumentReader(
      std::vector<TextSource> files, const DocumentOptions& options, CompletePrefix complete_prefix, const InputPlace& from = {});

  // Errors: unreadable files, text that is not in its encoding, and those of the records.
  bool next(DocumentPiece& piece) override;
  int64_t bytes_of_files() const override;  // with those in front of `from`

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
