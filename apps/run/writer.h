// Text in and out: prompts and lines as they are typed, and texts that a model writes, whose token ids become text up to a stop string.
#pragma once
#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "data/text/utf8.h"
#include "data/tokenizers/chat.h"
#include "models/inference/sampling.h"

namespace ricci::apps {

// The text with each escape as its character, because some are hard to type: \n, \t, \", \\, \x41, \u00e9, \U0001f600. `option` is named in
// errors: an unknown escape, one that is cut off, a number that is not a character; each with its byte.
std::string unescape(std::string_view text, const char* option);

// All of a file, or of stdin for "-", as UTF-8 with the line ends that texts of runs have; bytes are read as they are.
std::string read_decoded(const std::string& file, Encoding encoding);

// A text that a model wrote, as it is printed: on a terminal its control characters other than line ends and tabs are blanks, because they
// could move the cursor.
std::string for_stdout(const std::string& text);

// The text that a user gives: the contents of the file, or the value of the option, with escapes; "-" for either: all of stdin. Files and
// stdin are UTF-8, unless the run reads its texts as bytes.
std::string given_text(const std::string& text, const std::string& file, const char* option, Encoding encoding);

// Calls use(line) for each line of stdin that is not empty; a person at a terminal is asked for it.
void for_each_typed_line(const std::function<void(const std::string& line)>& use);

// Writes answer(line) to stdout for each line of stdin that is not blank. Up to `most` lines that have arrived are answered together, by
// all threads. Answers are written before more is read, because a program may wait for one before it asks again. Errors: the first line
// without an answer, with its number, after the answers before it; stdin or stdout fails.
void answer_lines(const std::function<std::string(const std::string& line)>& answer, int64_t most = 4096);

// The end of a generated text: before the stop string that is complete first. The text comes in pieces, and a stop string may be spread
// over several. Text that might be the beginning of one is held back.
class StopStrings {
 public:
  // Error: an empty string.
  explicit StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
    for (const std::string& each : strings_)
      if (each.empty()) fail("stop string: is empty");
  }

  // The text that may be shown once this piece is known. Nothing after a stop string was met.
  std::string next(std::string_view piece) {
    // Byte by byte, because the first string that is complete counts, however the text is divided.
    for (const char byte : piece) {
      if (met_) break;
      held_ += byte;
      size_t longest = 0;
      for (const std::string& each : strings_)
        if (held_.ends_with(each)) longest = std::max(longest, each.size());
      met_ = longest > 0;
      held_.resize(held_.size() - longest);
    }
    if (met_) return end();
    size_t kept = 0;  // bytes at the end with which a string begins
    for (const std::string_view each : strings_)
      for (size_t bytes = kept + 1; bytes < each.size(); ++bytes)
        if (held_.ends_with(each.substr(0, bytes))) kept = bytes;
    std::string text = held_.substr(0, held_.size() - kept);
    held_.erase(0, text.size());
    return text;
  }
  // The text that was held back, when no more pieces come.
  std::string end() { return std::exchange(held_, {}); }
  bool met() const { return met_; }

 private:
  std::vector<std::string> strings_;
  std::string held_;
  bool met_ = false;
};

struct WritingOptions {
  int64_t tokens = 200;            // in each text, at most
  int64_t samples = 1;             // texts at once
  std::vector<std::string> stops;  // a text ends before the first of them
  bool log_probabilities = false;
  Sampling sampling;
};

struct Written {
  std::string text = {};                       // after the prompt
  bool stopped = false;                        // by a stop string, or by a token that ends texts; the text has neither
  std::vector<int64_t> ids = {};               // the ids of the tokens
  std::vector<double> log_probabilities = {};  // one for each, if asked for
};

// Continues each text until `ends` is true of a token, before a stop string, or by options.tokens. state: Tokenizer::state_after the ids
// that the texts have. `show` is given each piece of the first text as soon as it is certain.
std::vector<Written> continue_texts(Continuation& texts, const DecodeState& state, const Tokenizer& tokenizer,
    const WritingOptions& options, const std::function<bool(int64_t token)>& ends,
    const std::function<void(const std::string& piece)>& show);

// Adds "text": " be", "tokens": 1, "end": "length"; the end is "length" or "stop". With log-probabilities also
// "log_probabilities": [{"token": " be", "id": 7, "log_probability": -0.4}]. The text has another name in answers of a conversation.
void add_members(Json& line, const char* name, const Written& written, const Tokenizer& tokenizer);

// The tokens of a text, a line each: their log-probabilities and the sum of them so far.
std::string log_probability_lines(const Written& written, const Tokenizer& tokenizer);

}  // namespace ricci::apps
