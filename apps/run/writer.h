// Reads prompts and typed lines, and writes texts from a model.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "data/text/text.h"
#include "data/text/utf8.h"
#include "data/tokenizers/tokenizer.h"
#include "models/inference/sampling.h"

namespace ricci::apps {

// Returns the text with \n, \t, \" and \\ replaced by their characters. Error, with the option: an escape is unknown.
std::string unescape(std::string_view text, const char* option);

// Reads a file, or stdin for "-", as UTF-8, with line ends as in training texts.
std::string read_decoded(const std::string& file, Encoding encoding);

// Returns a model's text for printing. On a terminal, control characters other than line ends and tabs become blanks.
std::string for_stdout(const std::string& text);

// A prompt: the file's contents, or the option's value with its escapes; "-" is stdin. Files are UTF-8 unless the run's encoding is bytes.
std::string given_text(const std::string& text, const std::string& file, const char* option, Encoding encoding);

// Calls use(line) for each line of stdin that is not empty. On a terminal, prints a prompt before each line.
void for_each_typed_line(const std::function<void(const std::string& line)>& use);

// Writes answer(line) to stdout for each non-blank line of stdin, before it reads the next line. A line with an error is answered by
// {"error": "line 2: ..."}, and the first error is thrown after the last line. Error: stdin or stdout fails.
void answer_lines(const std::function<std::string(const std::string& line)>& answer);

// Returns the members of a line, with its results. A member with the name of a result gets the prefix input_.
Json with_results(const Json& members, const Json& results);

// Ends a text at the first stop string. A stop string can span parts of the text, so text that could start one is held back.
class StopStrings {
 public:
  // Error: a string is empty.
  explicit StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
    for (const std::string& each : strings_)
      if (each.empty()) fail("stop string: is empty");
  }

  // Adds a part, and returns the text that can now be shown.
  std::string next(std::string_view piece) {
    for (const char byte : piece) {  // the result does not depend on the division into parts
      if (found_) break;
      held_ += byte;
      size_t longest = 0;
      for (const std::string& each : strings_)
        if (held_.ends_with(each)) longest = std::max(longest, each.size());
      found_ = longest > 0;
      held_.resize(held_.size() - longest);
    }
    if (found_) return end();
    size_t kept = 0;  // number of final bytes that could begin a stop string
    for (const std::string_view each : strings_)
      for (size_t bytes = kept + 1; bytes < each.size(); ++bytes)
        if (held_.ends_with(each.substr(0, bytes))) kept = bytes;
    std::string text = held_.substr(0, held_.size() - kept);
    held_.erase(0, text.size());
    return text;
  }
  // Returns the text that is still held back after the last part.
  std::string end() { return std::exchange(held_, {}); }
  bool found() const { return found_; }

 private:
  std::vector<std::string> strings_;
  std::string held_;
  bool found_ = false;
};

struct WritingOptions {
  int64_t tokens = 200;            // the maximum number per text
  int64_t samples = 1;             // texts written together
  std::vector<std::string> stops;  // a text ends before the first stop string
  Sampling sampling;
};

struct Written {
  std::string text = {};          // after the prompt
  bool stopped = false;           // by a stop string or an end token; `text` contains neither
  std::vector<int64_t> ids = {};  // the tokens of `text`
};

// Continues each text until `ends` is true for a token, a stop string appears, or options.tokens tokens are written. `state`:
// Tokenizer::state_after for the ids of the prompt. `show` gets each part of the first text as soon as it is certain.
std::vector<Written> continue_texts(Continuation& texts, const DecodeState& state, const Tokenizer& tokenizer,
    const WritingOptions& options, const std::function<bool(int64_t token)>& ends,
    const std::function<void(const std::string& piece)>& show);

}  // namespace ricci::apps
