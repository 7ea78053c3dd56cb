// Byte-level byte pair encoding, introduced by GPT-2: a text is divided into words (split.h), and the bytes of each word are merged by a
// learned list of pairs. It starts from bytes because then every text has ids, even if it is not UTF-8, and comes back byte by byte.
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
    uint32_t left, right, merged;  // ids of pieces
  };
  // In the order of their ranks: the first is applied first. If a pair is listed twice, its last rank counts.
  explicit Merges(std::vector<Merge> merges);

  std::span<const Merge> all() const { return merges_; }
  // Merges the two neighbours of lowest rank, of equal ones the leftmost, until no pair can be merged. Returns the number of pieces that
  // are left, at the front of `pieces`.
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
  std::vector<Slot> slots_;  // their number is a power of two, and at most half are used
  int shift_;
};

// Tokenizers of Llama 2's kind have pieces of characters instead of bytes, and "▁" (U+2581) in them stands for a blank. A character without
// a piece is written as the pieces of its bytes, <0x00> to <0xFF>. Where a text gets one more "▁":
enum class Underscores : uint8_t {
  none,       // byte-level BPE
  replaced,   // nowhere
  prepended,  // in front, and after each added token
  never,      // nowhere, and added tokens are found before
  first,      // in front, but not before a "▁"
  always,     // in front and after each added token, but not before a "▁"
};

struct BpeOptions {
  const SplitPattern* pattern = &split_patterns()[0];
  bool add_prefix_space = false;  // puts a space before a text that does not begin with one
  bool ignore_merges = false;     // a word that is a piece gets its id, even if no merges lead to it
  bool compose = false;           // normalises the text to form C first; it must be valid UTF-8
  std::string unknown = {};       // the piece for bytes without a piece; if empty, they are an error
  Json post_processor = nullptr;  // from the file, only to be written again
  std::string first = {};         // the piece that starts every text (Marks::first), or empty
  Underscores underscores = Underscores::none;
  bool drops_blank = false;   // with underscores: decoding drops the first blank of a text
  Json components = nullptr;  // with underscores: members of the file, only to be written again
};

class BpeTokenizer final : public PieceTokenizer {
 public:
  using Pair = std::pair<std::string, std::string>;
  // Without underscores: pieces and merges in the letters of bytes_to_letters(). Errors: a merge with a piece that the vocabulary lacks; it
  // lacks options.unknown or options.first. With underscores: the piece of a byte or "▁" is missing; a merge joins a "▁" to a piece before
  // it, because a text could then not be divided.
  BpeTokenizer(Vocabulary vocabulary, const std::vector<Pair>& merges, std::vector<AddedToken> added, BpeOptions options);

  std::string name() const override { return "bpe"; }
  const std::string& unknown() const override { return options_.unknown; }
  // Merges with pieces that the vocabulary lacks are left out.
  std::shared_ptr<PieceTokenizer> with_vocabulary(Vocabulary vocabulary, std::vector<AddedToken> added) const override;
  Json model_json() const override;
  const BpeOptions& options() const { return options_; }
  const Merges& merges() const { return merges_; }
  std::string byte_piece(int byte) const;  // as the vocabulary writes it

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

// The bytes as GPT-2's files write them, one visible character each: printable Latin-1 as itself, the 68 other bytes as U+0100 and the code
// points after it. For example, a space is U+0120, a capital G with a dot.
std::string bytes_to_letters(std::string_view bytes);
std::string byte_to_letter(int byte);

// The reverse. Returns nothing for a text with other characters.
std::optional<std::string> letters_to_bytes(std::string_view letters);

}  // namespace ricci
