// Documents in pieces of bounded length, and their ids: read by one thread, encoded by all, used in their order.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "data/shards/shard.h"
#include "data/text/text.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci {

// A document, or a part of a long one. Where a document is divided depends on its text alone.
struct DocumentPiece {
  std::string text;
  bool starts = false, ends = false;  // the document
  int32_t label = -1;
  InputPlace end;          // after this piece
  std::string place;       // for messages: "a.jsonl:17", "a.txt: document 3"
  int64_t first_byte = 0;  // the place in the document where the piece starts
};

class PieceReader {
 public:
  virtual ~PieceReader() = default;
  // Nothing at the end.
  virtual bool next(DocumentPiece& piece) = 0;
  virtual int64_t bytes_of_files() const = 0;  // read so far
};

// All of a text as one document, whatever files it comes from; or as two, where it is cut before a character.
class TextReader final : public PieceReader {
 public:
  // `cut` is the number of that character, from 1, or 0 if the text is not cut.
  TextReader(const TextSource& text, int64_t cut, const TextPieces::CompletePrefix& complete_prefix)
      : text_(cut ? text.part("train", 0, cut) : text), pieces_(text_, complete_prefix), is_cut_(cut > 0) {}
  // Errors: TextStream's.
  bool next(DocumentPiece& piece) override;
  int64_t bytes_of_files() const override { return pieces_.bytes_of_files(); }

 private:
  TextSource text_;
  TextPieces pieces_;
  bool is_cut_;  // there is a second document after this one
  bool starts_ = true;
};

// Calls use(piece, is_first, ids) for the ids of all pieces in their order, and after(bytes_of_files) now and then. A long piece is
// handed over in parts. Errors: the reader's; the first piece that cannot be encoded, with its place.
void for_each_encoded(PieceReader& reader, const Tokenizer& tokenizer,
    const std::function<void(const DocumentPiece& piece, bool is_first, std::span<const int64_t> ids)>& use,
    const std::function<void(int64_t bytes_of_files)>& after = {});

}  // namespace ricci
