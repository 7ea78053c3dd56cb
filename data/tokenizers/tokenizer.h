// Text to token ids and back. Ids are 0 ... vocab_size() - 1. A tokenizer may put a piece such as <eos> after every line or every document:
// without one after documents a model cannot learn where they end, and would never stop writing.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/choice.h"
#include "core/json.h"

namespace ricci {

struct DocumentPiece;  // data/formats/documents.h

enum class Eos : uint8_t { none, line, document };
constexpr auto choices(Eos) { return std::array{"none", "line", "document"}; }

inline constexpr const char* kEos = "<eos>";  // the piece, unless another one is asked for

// The state of decoding from one token to the next.
struct DecodeState {
  std::string held;      // the first bytes of a character; the next tokens bring the others
  bool at_start = true;  // no word is before: the next one is written without a space
};

// The ids of tokens that mark where a text begins and ends; -1 and an empty list: there are none.
struct Marks {
  int64_t first = -1;              // starts every document, prompt and scored text, and is never a target
  int64_t begin = -1;              // the bos_token of other programs, which need not start any text
  std::vector<int64_t> ends = {};  // each ends a text that a model writes; the piece after documents is the first of them
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // As in the table of tokenizers (kinds.h).
  virtual std::string name() const = 0;
  virtual int64_t vocab_size() const = 0;
  // The id of a piece of the vocabulary as it is written there, or -1 if there is none or the vocabulary has no written pieces.
  virtual int64_t find(std::string_view /*piece*/) const { return -1; }

  // Where a piece is put, and which. line: in place of the end of each line, and it is written as one. document: see append_end.
  Eos eos() const { return eos_; }
  const std::string& eos_piece() const { return eos_piece_; }
  // For the makers of tokenizers; others call with_eos. Errors: the vocabulary has no such piece; `after` is Eos::none; there is one
  // already.
  void set_eos(Eos after, const std::string& piece);
  Marks marks() const;

  // The ids of a text. Errors: text that the tokenizer cannot represent, with its byte offset.
  std::vector<int64_t> encode(std::string_view text) const;
  // The same of a text from its start on: marks().first, where there is one, comes before them.
  std::vector<int64_t> encode_start(std::string_view text) const;
  // The text of the ids. Error: an id outside the vocabulary, with its index. The text may end inside a character.
  std::string decode(std::span<const int64_t> ids) const;

  // The same token by token, for text that is shown while it is made: what is certain once this id is known. The bytes of a
  // character come together. Error: an id outside the vocabulary.
  std::string decode_next(int64_t id, DecodeState& state) const;
  // The state after ids whose text is shown already, such as a prompt.
  DecodeState state_after(std::span<const int64_t> ids) const;
  // The text held back when no more tokens come: the bytes of a character that was never completed.
  std::string decode_end(DecodeState& state) const;

  // Everything needed to build the same tokenizer again, as one object; and as its text.
  Json json() const { return with_eos(model_json()); }
  std::string to_json() const { return json().dump(); }
  // The same without eos(), for programs that get its id from a config.
  virtual Json model_json() const = 0;
  // The JSON as version 0.1.0 wrote it: its shards and checkpoints hold hashes of that text.
  Json hashed_json() const { return with_eos(hashed_model_json()); }
  // Equal for equal tokenizers; kept with token files.
  uint64_t hash() const;

  // For streams: appends the ids of a piece that starts at byte `offset` of the whole text; the offset is for messages.
  void append_ids(std::string_view piece, int64_t offset, std::vector<int64_t>& ids) const;
  // Bytes of the text that encode to the same ids whatever text follows; the text after them encodes on its own.
  size_t complete_prefix(std::string_view text) const;
  // Appends the ids that mark the end of a document, if the tokenizer has such. `last`: the last bytes of the document.
  void append_end(std::string_view last, std::vector<int64_t>& ids) const;

 protected:
  // A kind of tokenizer defines these, which know nothing of eos().
  virtual void append_model_ids(std::string_view piece, int64_t offset, std::vector<int64_t>& ids) const = 0;
  virtual size_t model_prefix(std::string_view text) const = 0;
  virtual Marks model_marks() const { return {}; }
  // Appends the bytes of an id inside the vocabulary. Of the state it may read and write at_start.
  virtual void append_text(int64_t id, DecodeState& state, std::string& text) const = 0;
  virtual Json hashed_model_json() const { return model_json(); }

 private:
  Json with_eos(Json model) const;
  void append_text_or_line_end(int64_t id, DecodeState& state, std::string& text) const;
  Eos eos_ = Eos::none;
  std::string eos_piece_;
  int64_t eos_id_ = -1;
};

inline constexpr int64_t kMaxTokenizer = 64 << 20;  // bytes of its JSON

// The tokenizer that to_json() or another program described (json/read.cpp). Errors: not JSON, too long or nested too deeply,
// missing or wrong fields, and what is not supported, named.
std::shared_ptr<const Tokenizer> tokenizer_from_json(std::string_view json);

// The additions to a tokenizer: it is read again from its JSON with them.
struct Additions {
  std::vector<std::string> pieces = {};  // at the end of its vocabulary; they are found in texts as they are written
  Marks marks = {};                      // in addition to its own; -1 and an empty list leave its own. Only BPE has such
  Eos eos = Eos::none;
  std::string eos_piece = {};
};
// Errors: the vocabulary has such a piece already, or is of a kind without written pieces; a mark without a piece; set_eos's.
std::shared_ptr<const Tokenizer> with_additions(const Tokenizer& tokenizer, const Additions& additions);

// The tokenizer with the piece after each line or document; it is added to the vocabulary if it is not in it. An empty piece is the
// tokenizer's own end_of_text after documents, else <eos>. Eos::none changes nothing. Error: its kind has no place for such a piece.
std::shared_ptr<const Tokenizer> with_eos(std::shared_ptr<const Tokenizer> tokenizer, Eos after, std::string piece = "");

// For documents that follow each other, if no piece was chosen: the tokenizer's own end_of_text after each. A tokenizer that has none, or
// has its piece already, stays as it is.
std::shared_ptr<const Tokenizer> with_own_eos(std::shared_ptr<const Tokenizer> tokenizer);

// The text of the token that ends a text: the first of Marks::ends, else <|endoftext|> or another name of it in the vocabulary. It is
// empty if there is none.
std::string end_of_text(const Tokenizer& tokenizer);

// The ids of tokens that two vocabularies write alike, as pairs of one in each. A text that multiple tokens of a vocabulary have is left
// out.
std::vector<std::pair<int64_t, int64_t>> same_tokens(const Tokenizer& a, const Tokenizer& b);

// The ids of a part of a piece; the parts of all pieces come in their order.
struct EncodedPart {
  size_t piece;
  bool is_first;  // in its piece
  std::vector<int64_t> ids;
};

// Pieces of documents to ids on all threads, with marks().first before a document and the end after it. The ids do not depend on the number
// of threads: a text is divided only where both sides encode on their own. Error: the first part that cannot be encoded.
std::vector<EncodedPart> encode(const Tokenizer& tokenizer, std::span<const DocumentPiece> pieces);

}  // namespace ricci
