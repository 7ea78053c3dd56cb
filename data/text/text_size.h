// How long a text is in units that do not depend on a tokenizer.
#pragma once
#include <cstdint>

#include "data/text/text_source.h"

namespace ricci {

struct TextSize {
  int64_t bytes = 0;
  // Words between blanks, tabs and line ends, and every line end as one more, as the token counts of WikiText are published.
  int64_t words = 0;
};

// Reads the text as a stream. Errors: those of TextStream.
TextSize size_of_text(const TextSource& text);

}  // namespace ricci
