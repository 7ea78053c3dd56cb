// Texts that a model writes: token ids become text, up to a stop string.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "apps/run/generation/stop_strings.h"
#include "apps/terminal/model_options.h"
#include "models/inference/sampling.h"

namespace ricci::apps {

struct WritingOptions {
  int64_t tokens = 200;            // of each text, at most
  int64_t samples = 1;             // texts at once
  std::vector<std::string> stops;  // a text ends in front of the first of them
  Sampling sampling;
};

struct Written {
  std::string text;  // behind the prompt
  int64_t tokens = 0;
  bool stopped = false;  // by a stop string
};

// The ids of a prompt. Error: there are none.
std::vector<int64_t> prompt_ids(const Tokenizer& tokenizer, const std::string& prompt);

// Continues the prompt. `show` is given each piece of the first text as soon as it is certain.
// Errors: those of prompt_ids, generate and StopStrings.
std::vector<Written> write_texts(const OpenModel& open, const std::string& prompt, const WritingOptions& options,
    const std::function<void(const std::string& piece)>& show);

// {"prompt": "to", "sample": 0, "text": " be", "tokens": 1, "end": "length"}; the end is "length" or "stop".
std::string json_of(const std::string& prompt, int64_t sample, const Written& written);

}  // namespace ricci::apps
