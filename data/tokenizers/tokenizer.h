// Converts text to token ids and back. Ids are 0 ... vocab_size() - 1. A tokenizer can put a token such as <eos> after every line or
// document. Without such a token, a model never learns to stop.
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

inline constexpr const char* kEos = "<eos>";  // the default end token

// The state of decoding between two tokens.
struct DecodeState {
  std::string held;      // the first bytes of an incomplete character
  bool at_start = true;  // the next word is the first, written without a space
};

// The ids that mark the beginning and the end of a text; -1 or empty if missing.
struct Marks {
  int64_t first = -1;              // starts every document, prompt and scored text, and is never a target
  int64_t begin = -1;              // the bos_token of other programs; texts can start without it
  std::vector<int64_t> ends = {};  // each ends a text that a model writes; the end token of documents comes first
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual std::string name() const = 0;
  virtual int64_t vocab_size() const = 0;
  // The id of a token as written in the vocabulary, or -1.
  virtual int64_t find(std::string_view /*piece*/) const { return -1; }
  // The id for text that the vocabulary lacks, or -1. This id is never the end token's, even if a file uses one token for both.
  virtual int64_t unknown_id() const { return -1; }

  // Eos::line: the token replaces the end of each line and is decoded to a line end. Eos::document: the token is put after each document.
  Eos eos() const { return eos_; }
  const std::string& eos_piece() const { return eos_piece_; }
  // For functions that make tokenizers; other functions call with_eos. Errors: the vocabulary lacks the token; `after` is Eos::none; the
  // tokenizer already has an end token.
  void set_eos(Eos after, const std::string& piece);
  Marks marks() const;

  // The ids of a text. Error: the tokenizer cannot represent a character; the message contains its byte offset.
  std::vector<int64_t> encode(std::string_view text) const;
  // The ids of the start of a text, with marks().first, if any, before them.
  std::vector<int64_t> encode_start(std::string_view text) const;
  // The text of the ids. The text can end inside a character. Error: an id is outside the vocabulary; the message contains its index.
  std::string decode(std::span<const int64_t> ids) const;

  // Decodes token by token, for text that is shown while a model writes it. Returns the text that is certain after this id, in complete
  // characters. Error: the id is outside the vocabulary.
  std::string decode_next(int64_t id, DecodeState& state) const;
  // The state after ids that are already shown, such as a prompt.
  DecodeState state_after(std::span<const int64_t> ids) const;
  // The rest of the text after the last token: the bytes of an incomplete character.
  std::string decode_end(DecodeState& state) const;

  // A complete description, for tokenizer_from_json.
  Json json() const { return with_eos(model_json()); }
  std::string to_json() const { return json().dump(); }
  // The JSON without eos(), for programs that read its id from a config.
  virtual Json model_json() const = 0;
  // A hash of the JSON. Shards and checkpoints contain this hash.
  uint64_t hash() const;

  // Appends the ids of a piece of a text. `offset` is for messages; `starts` is true at the start of the text.
  void append_ids(std::string_view piece, int64_t offset, std::vector<int64_t>& ids, bool starts = true) const;
  // The length of the longest prefix of the text that can be encoded separately from everything after it.
  size_t complete_prefix(std::string_view text) const;
  // Appends the token after a document, if eos() asks for it. `last` contains the last bytes of the document.
  void append_end(std::string_view last, std::vector<int64_t>& ids) const;

 protected:
  // Defined by each tokenizer kind, without eos().
  virtual void append_model_ids(std::string_view piece, int64_t offset, bool starts, std::vector<int64_t>& ids) const = 0;
  virtual size_t model_prefix(std::string_view text) const = 0;
  virtual Marks model_marks() const { return {}; }
  // Appends the bytes of an id inside the vocabulary. Implementations can use state.at_start.
  virtual void append_text(int64_t id, DecodeState& state, std::string& text) const = 0;

 private:
  Json with_eos(Json model) const;
  void append_text_or_line_end(int64_t id, DecodeState& state, std::string& text) const;
  Eos eos_ = Eos::none;
  std::string eos_piece_;
  int64_t eos_id_ = -1;
};

inline constexpr int64_t kMaxTokenizer = 64 << 20;  // maximum bytes of its JSON

// Reads a tokenizer written by to_json() or another program (json.cpp). Errors: the text is not JSON, too long or nested too deeply; a
// member is missing or wrong; a component is not supported.
std::shared_ptr<const Tokenizer> tokenizer_from_json(std::string_view json);

// Additions to a tokenizer, applied to its JSON.
struct Additions {
  std::vector<std::string> pieces = {};  // added at the end of the vocabulary, and found in texts as written
  Marks marks = {};                      // -1 and an empty list change nothing; only for BPE
  Eos eos = Eos::none;
  std::string eos_piece = {};
};
// Errors: the vocabulary already has the token, or cannot be extended; a mark has no token; set_eos's.
std::shared_ptr<const Tokenizer> with_additions(const Tokenizer& tokenizer, const Additions& additions);

// The tokenizer with this token after each line or document. A missing token is added to the vocabulary. An empty token means end_of_text
// after documents, or <eos>. Eos::none changes nothing. Error: this kind of tokenizer cannot have the token.
std::shared_ptr<const Tokenizer> with_eos(std::shared_ptr<const Tokenizer> tokenizer, Eos after, std::string piece = "");

// The tokenizer with its end_of_text after each document. A tokenizer is not changed if it has no end_of_text, or already has an end token.
std::shared_ptr<const Tokenizer> with_own_eos(std::shared_ptr<const Tokenizer> tokenizer);

// The token that ends a text: the first of Marks::ends, or a token with a usual name such as <|endoftext|>, or empty.
std::string end_of_text(const Tokenizer& tokenizer);

// Pairs of ids, one of each tokenizer, with the same text. Texts of more than one token are omitted.
std::vector<std::pair<int64_t, int64_t>> match_tokens(const Tokenizer& a, const Tokenizer& b);

// Encodes pieces of documents, with marks().first before each document and append_end() after it. All threads encode parts of the pieces. A
// text is divided only where its two sides can be encoded separately, so the ids do not depend on the number of threads. Error: the first
// error in the order of the pieces.
std::vector<std::vector<int64_t>> encode(const Tokenizer& tokenizer, std::span<const DocumentPiece> pieces);

}  // namespace ricci
