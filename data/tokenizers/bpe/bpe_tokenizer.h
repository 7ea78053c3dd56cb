// Byte-level byte pair encoding, as GPT-2 introduced it: the text is divided into words, the bytes of each word are merged by a
// learnt list of pairs. Every text, valid UTF-8 or not, has ids and comes back from them byte by byte.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "data/tokenizers/bpe/merges.h"
#include "data/tokenizers/bpe/split.h"
#include "data/tokenizers/piece_tokenizer.h"
#include "data/tokenizers/word_cache.h"

namespace ricci {

struct BpeOptions {
  const SplitPattern* pattern = &split_patterns()[0];
  bool add_prefix_space = false;  // a text that does not begin with a space is given one
  bool ignore_merges = false;     // a word that is a piece is taken whole, whether merges lead to it or not
  bool compose = false;           // the text is brought into normal form C first, and must be valid UTF-8
  std::string unknown = {};       // the piece for bytes that have none; if empty, they are an error
  Json post_processor = nullptr;  // kept from a file for programs that read the file again; null if there is none
  std::string first = {};         // the piece that starts every text (Marks::first), from a template in post_processor; may be empty
};

class BpeTokenizer final : public PieceTokenizer {
 public:
  using Pair = std::pair<std::string, std::string>;
  // Pieces and merges in the letters of bytes_to_letters(). Errors: a merge of pieces, or to a piece, that the vocabulary has not,
  // a piece with other letters, a byte without a piece where `unknown` is none either.
  BpeTokenizer(Vocabulary vocabulary, const std::vector<Pair>& merges, std::vector<AddedToken> added, BpeOptions options);

  std::string name() const override { return "bpe"; }
  const std::string& unknown() const override { return options_.unknown; }
  // Merges with pieces that the vocabulary has not are left out.
  std::shared_ptr<PieceTokenizer> with_vocabulary(Vocabulary vocabulary, std::vector<AddedToken> added) const override;
  const BpeOptions& options() const { return options_; }
  const Merges& merges() const { return merges_; }

 protected:
  Marks model_marks() const override;
  void append_plain(std::string_view text, int64_t offset, std::vector<int64_t>& ids) const override;
  bool may_cut(std::string_view text, size_t position) const override;
  void append_text(int64_t id, DecodeState& state, std::string& text) const override;
  Json json_with(Json vocabulary) const override;

 private:
  void append_word(std::string_view word, int64_t offset, std::vector<int64_t>& ids) const;
  void append_words(std::string_view text, int64_t offset, std::vector<int64_t>& ids) const;

  BpeOptions options_;
  Merges merges_;
  std::array<int32_t, 256> id_of_byte_;
  std::vector<std::string> bytes_of_id_;
  WordCacheOwner cache_owner_;
};

// GPT-2 writes every byte of a piece as one visible character: printable Latin-1 as itself, the 68 other bytes as U+0100 and
// the code points that follow it. A space is written as U+0120, a capital G with a dot. These are the characters of the bytes, as
// UTF-8.
std::string bytes_to_letters(std::string_view bytes);
std::string letter_of(int byte);

// The bytes of the characters, or nullopt if one of them means no byte.
std::optional<std::string> letters_to_bytes(std::string_view letters);

}  // namespace ricci
