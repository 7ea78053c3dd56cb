// Prompts as they are typed, and texts that a model writes: token ids become text, up to a stop string.
#pragma once
#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/run/model_options.h"
#include "core/error.h"
#include "data/text/utf8.h"
#include "models/inference/sampling.h"

namespace ricci::apps {

// The text that is meant by characters that are hard to type, written as in YAML's double quotes: \n, \t, \", \\, \x41, \u00e9, \U0001f600.
// `option` is named in errors: an unknown escape, one that is cut off, a number that is no character; each
// with its byte.
std::string unescape(std::string_view text, const char* option);

// The text that a user gives: the contents of the file, or the value of the option, with escapes; "-" for either: all of stdin. Files and
// stdin are UTF-8, with the line ends that the texts of runs have, unless the run reads its texts as bytes.
std::string given_text(const std::string& text, const std::string& file, const char* option, Encoding encoding);

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
    // Byte by byte, so that the first string that is complete counts, however the text is divided.
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
    size_t kept = 0;
    for (const std::string& each : strings_) kept = std::max(kept, begun(held_, each));
    std::string text = held_.substr(0, held_.size() - kept);
    held_.erase(0, text.size());
    return text;
  }
  // The text that was held back, when no more pieces come.
  std::string end() { return std::exchange(held_, {}); }
  bool met() const { return met_; }

 private:
  // Bytes at the end of the text with which the string begins.
  static size_t begun(std::string_view text, std::string_view string) {
    for (size_t bytes = std::min(text.size(), string.size() - 1); bytes > 0; --bytes)
      if (text.ends_with(string.substr(0, bytes))) return bytes;
    return 0;
  }

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
  std::string text;                            // after the prompt
  bool stopped = false;                        // by a stop string, or by a token that ends texts; the text has neither
  std::vector<int64_t> ids = {};               // the ids of the tokens
  std::vector<double> log_probabilities = {};  // one for each, if asked for
};

// One text while it is made.
struct Writing {
  DecodeState decoding;
  StopStrings stops;
  bool log_probabilities = false;
  Written written = {};

  // Takes a token that was drawn from the logits, or only its end. Returns the text that it adds.
  std::string next(const Tokenizer& tokenizer, int64_t token, std::span<const double> logits_v, bool ends);
  std::string end(const Tokenizer& tokenizer);  // returns the text that was held back
};

// The ids of a prompt, with Marks::first. Error: there are none.
std::vector<int64_t> prompt_ids(const Tokenizer& tokenizer, const std::string& prompt);

// Continues the prompt. `show` is given each piece of the first text as soon as it is certain.
// Errors: as for prompt_ids, generate and StopStrings.
std::vector<Written> write_texts(const OpenModel& open, const std::string& prompt, const WritingOptions& options,
    const std::function<void(const std::string& piece)>& show);

// "text": " be", "tokens": 1, "end": "length"; the end is "length" or "stop". With log-probabilities also
// "log_probabilities": [{"token": " be", "id": 7, "log_probability": -0.4}]. The text has another name in answers of a conversation.
std::string json_members(const char* name, const Written& written, const Tokenizer& tokenizer);

// The tokens of a text, a line each: their log-probabilities and the sum of them so far.
std::string log_probability_lines(const Written& written, const Tokenizer& tokenizer);

}  // namespace ricci::apps
