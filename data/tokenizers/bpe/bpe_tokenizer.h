// Byte-level byte pair encoding, introduced by GPT-2: a text is divided into words (split.h), and the bytes of each word are merged by a
// learned list of pairs. Every text can be encoded, even if it is not UTF-8, and is decoded to the same bytes.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizers/bpe/split.h"
#include "data/tokenizers/piece_tokenizer.h"
#include "data/tokenizers/word_cache.h"

namespace ricci {

class Merges {
 public:
  struct Merge {
    uint32_t left, right, merged;  // token ids
  };
  // The merges are ordered by rank: the first is applied first. The last rank of a duplicate pair is used.
  explicit Merges(std::vector<Merge> merges);

  std::span<const Merge> all() const { return merges_; }
  // Merges the adjacent pair of lowest rank (on a tie, the leftmost) until no pair can be merged. Returns the number of remaining tokens,
  // at the front of `pieces`.
  size_t apply(std::span<uint32_t> pieces) const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Slot {
    uint64_t pair = UINT64_MAX;
    uint32_t rank = kNone;
  };
  size_t find_slot(uint32_t left, uint32_t right) const;
  uint32_t find_rank(uint32_t left, uint32_t right) const { return slots_[find_slot(left, right)].rank; }
  size_t apply_short(std::span<uint32_t> pieces) const;
  size_t apply_long(std::span<uint32_t> pieces) const;

  std::vector<Merge> merges_;
  std::vector<Slot> slots_;  // the number of slots is a power of two; at most half are used
  int shift_;
};

// Tokenizers like Llama 2's use characters instead of bytes, and write a blank as "▁" (U+2581). A character without a token is encoded as
// its bytes, <0x00> to <0xFF>. The value defines where an additional "▁" is inserted:
enum class Underscores : uint8_t {
  none,       // byte-level BPE
  replaced,   // nowhere
  prepended,  // at the start, and after each added token
  never,      // nowhere; added tokens are found first
  first,      // at the start, but not before a "▁"
  always,     // at the start and after each added token, but not before a "▁"
};

struct BpeOptions {
  const SplitPattern* pattern = &split_patterns()[0];
  bool add_prefix_space = false;  // adds a space before a text that does not begin with a space
  bool ignore_merges = false;     // a word that is a token gets its id, even if no merges lead to it
  bool compose = false;           // first normalizes the text to form C; the text must be valid UTF-8
  std::string unknown = {};       // the token for unknown bytes; if empty, such bytes are an error
  Json post_processor = nullptr;  // from the file, kept only for writing
  std::string first = {};         // the token that starts every text (Marks::first), or empty
  Underscores underscores = Underscores::none;
  bool drops_blank = false;   // with underscores: decoding drops the first blank of a text
  Json components = nullptr;  // with underscores: members of the file, kept only for writing
};

class BpeTokenizer final : public PieceTokenizer {
 public:
  using Pair = std::pair<std::string, std::string>;
  // Without underscores, tokens and merges are in the letters of bytes_to_letters(). Errors: the vocabulary lacks a token of a merge,
  // options.unknown or options.first; with underscores, the token of a byte or "▁" is missing, or a merge joins a "▁" to a token before it,
  // so texts could not be divided.
  BpeTokenizer(Vocabulary vocabulary, const std::vector<Pair>& merges, std::vector<AddedToken> added, BpeOptions options);

  std::string name() const override { return "bpe"; }
  const std::string& unknown() const override { return options_.unknown; }
  // Omits merges with tokens that the vocabulary lacks.
  std::shared_ptr<PieceTokenizer> with_vocabulary(Vocabulary vocabulary, std::vector<AddedToken> added) const override;
  Json model_json() const override;
  const BpeOptions& options() const { return options_; }
  const Merges& merges() const { return merges_; }
  std::string byte_piece(int byte) const;  // as written in the vocabulary

 protected:
  Marks model_marks() const override;
  void append_plain(std::string_view text, int64_t offset, bool starts, std::vector<int64_t>& ids) const override;
  bool can_cut(std::string_view text, size_t position) const override;
  void append_text(int64_t id, DecodeState& state, std::string& text) const override;

 private:
  bool is_byte_level() const { return options_.underscores == Underscores::none; }
  void check_underscores() const;
  size_t divide(std::string_view word, int64_t offset, std::span<uint32_t> pieces) const;
  void append_word(std::string_view word, int64_t offset, std::vector<int64_t>& ids) const;
  void append_words(std::string_view text, int64_t offset, std::vector<int64_t>& ids) const;

  BpeOptions options_;
  Merges merges_;
  std::array<int32_t, 256> id_of_byte_;
  std::vector<std::string> bytes_of_id_;
  WordCacheOwner cache_owner_;
};

// Writes bytes as GPT-2's files do, one visible character each: printable Latin-1 unchanged, the 68 other bytes as U+0100 and the following
// code points. For example, a space is U+0120, a capital G with a dot.
std::string bytes_to_letters(std::string_view bytes);
std::string byte_to_letter(int byte);

// Reverses bytes_to_letters(). Returns nullopt for a text with other characters.
std::optional<std::string> letters_to_bytes(std::string_view letters);

}  // namespace ricci
