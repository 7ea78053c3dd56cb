// Text to token ids and back. Ids are 0 ... vocab_size() - 1.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/choice.h"

namespace ricci {

enum class TokenizerKind : uint8_t { character, byte };
constexpr auto choices(TokenizerKind) { return std::array{"char", "byte"}; }

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // One of choices(TokenizerKind).
  virtual std::string name() const = 0;
  virtual int64_t vocab_size() const = 0;

  // The ids of a text. Errors: text that the tokenizer cannot represent, with its byte offset.
  std::vector<int64_t> encode(std::string_view text) const;
  // The text of the ids. Error: an id outside the vocabulary, with its index. The text may end inside a character.
  std::string decode(std::span<const int64_t> ids) const;

  // Everything needed to build the same tokenizer again, as one JSON object.
  virtual std::string to_json() const = 0;
  // Equal for equal tokenizers; kept with token files.
  uint64_t hash() const;

  // For streams: appends the ids of a piece that starts at byte `offset` of the whole text; the offset is for messages.
  virtual void append_ids(std::string_view piece, int64_t offset, std::vector<int64_t>& ids) const = 0;
  // Bytes of the text that encode to the same ids whatever text follows.
  virtual size_t complete_prefix(std::string_view text) const = 0;

 protected:
  // Appends the bytes of an id inside the vocabulary.
  virtual void append_text(int64_t id, std::string& text) const = 0;
};

inline constexpr int64_t kMostTokenizer = 64 << 20;  // bytes of its JSON

// The tokenizer that to_json() described. Errors: not JSON, too long or nested too deeply, an unknown name, missing or wrong
// fields.
std::shared_ptr<const Tokenizer> tokenizer_from_json(std::string_view json);

}  // namespace ricci
