// Texts to ids on all threads. The ids do not depend on the number of threads: a text is divided where the tokenizer says that both
// sides encode on their own.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "data/tokenizers/tokenizer.h"

namespace ricci {

// A text, or a piece of one that encodes on its own.
struct Passage {
  std::string_view text;
  int64_t first_byte = 0;       // in the whole text; for messages
  bool ends = false;            // a document, so that the ids that mark its end follow
  std::string_view place = {};  // for messages; empty: none is told
};

// The ids of a part of a passage; the parts of all passages come in their order.
struct EncodedPart {
  size_t passage;
  bool is_first;  // of its passage
  std::vector<int64_t> ids;
};

// Error: that of the first part which cannot be encoded.
std::vector<EncodedPart> encode(const Tokenizer& tokenizer, std::span<const Passage> passages);

}  // namespace ricci
