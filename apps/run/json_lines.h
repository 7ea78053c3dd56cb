// A filter over lines of JSON: each line of the input becomes one line of the output.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "data/tokenizers/chat.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci::apps {

// Reads lines from stdin until its end, and writes answer(line) to stdout for each that is not blank. Lines that arrive together are
// answered by all threads. Answers are written before the next read, because a program may wait for one before it asks again.
// Errors: the first line that cannot be answered, with its number, after the answers before it; a failing read or write.
void filter_lines(const std::function<std::string(std::string_view line)>& answer);

// {"text": "..."} to {"ids": [1, 2, 3]} and back. Other members of a line are passed over. Text that is not UTF-8 once decoded has
// U+FFFD where it is not. with_first: the ids begin with Marks::first.
std::string encode_json(const Tokenizer& tokenizer, std::string_view line, bool with_first = false);
// {"messages": [...]} to {"ids": [1, 2, 3], "answers": [0, 1, 1]}: 1 where a model learns the token.
std::string chat_json(const ChatTokenizer& chat, std::string_view line);
std::string decode_json(const Tokenizer& tokenizer, std::string_view line);

}  // namespace ricci::apps
