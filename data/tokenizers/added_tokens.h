// Tokens that are looked for in a text before anything else, such as [MASK] and <|endoftext|>, as Hugging Face's tokenizers
// define them.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ricci {

struct AddedToken {
  int64_t id = 0;
  std::string content;
  bool single_word = false;  // only where no letter or digit stands beside it
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool normalized = false;   // looked for in the normalised text
  bool special = true;       // controls the model and is no text
};

// The tokens with one value of `normalized`, to be found in a text.
class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);  // error: an empty one

  struct Match {
    size_t begin, end;  // bytes of the text that the token takes, white space included
    int64_t id;         // -1: no token; begin and end are the end of the text
  };
  // The leftmost token at or behind byte `from`, the longest where several start at one place.
  Match find(std::string_view text, size_t from) const;

  bool empty() const { return tokens_.empty(); }
  size_t longest() const { return tokens_.empty() ? 0 : tokens_.front().content.size(); }
  // Whether a token stands across byte `at` of the text, or could, once more text follows.
  bool may_straddle(std::string_view text, size_t at) const;

 private:
  std::vector<AddedToken> tokens_;  // by length, the longest first
  std::array<bool, 256> starts_{};  // first bytes of tokens
};

}  // namespace ricci
