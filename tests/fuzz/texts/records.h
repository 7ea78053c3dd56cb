// Shared by the targets of JSONL, TSV and CSV: all documents of a text, from its start and from the middle.
#pragma once
#include <string_view>
#include <vector>

#include "data/formats/documents.h"
#include "data/text/utf8.h"
#include "tests/fuzz/input.h"

namespace fuzz {

inline void read_documents(std::string_view text, ricci::Encoding encoding, const ricci::DocumentOptions& options) {
  using namespace ricci;
  const Documents documents{TextSource({"input"}, std::array{BuiltInText{"input", text}}).read_as(encoding), options};
  std::vector<DocumentPiece> pieces;
  attempt([&] {
    DocumentReader reader(documents, complete_utf8_prefix);
    for (DocumentPiece piece; reader.next(piece);) {
      require(piece.text.size() <= DocumentReader::kPiece, "a piece is bounded");
      require(piece.label == -1 || (piece.label >= 0 && piece.label < options.classes), "a label is in its range");
      pieces.push_back(piece);
    }
  });
  if (pieces.empty()) return;
  attempt([&] {
    const size_t middle = pieces.size() / 2;
    DocumentReader rest(documents, complete_utf8_prefix, pieces[middle].end);
    DocumentPiece piece;
    if (middle + 1 < pieces.size())
      require(rest.next(piece) && piece.text == pieces[middle + 1].text && piece.end == pieces[middle + 1].end,
          "reading continues where it ended");
  });
}

}  // namespace fuzz
