// Conversations with a model that learned from such.
#pragma once
#include <functional>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "apps/run/writer.h"
#include "data/tokenizers/chat.h"

namespace ricci::apps {

// A conversation that goes on: the cache is kept between the turns, so that a turn reads the new messages alone.
class Talk {
 public:
  Talk(const OpenModel& open, const ChatTokenizer& chat, const WritingOptions& options);

  // Adds the messages, and the answer of the model, which ends where the template ends it, before a stop string, or after options.tokens.
  // `show` is given each piece of it as soon as it is certain.
  Written answer(std::span<const Message> messages, const std::function<void(const std::string& piece)>& show);

 private:
  const Tokenizer& tokenizer_;
  const ChatTokenizer& chat_;
  const WritingOptions& options_;
  Continuation text_;
  std::vector<int64_t> before_;  // ids that come before the next message
};

// Lines of messages to lines {"answer": "...", "tokens": 3, "end": "stop"}; every line is a conversation of its own.
// Error: a line that cannot be answered, with its number.
void answer_messages(const OpenModel& open, const ChatTokenizer& chat, const WritingOptions& options, std::istream& lines);

// Every line is a message of the user, after the system message, if there is one; the answers are written on lines of their own.
void converse(const OpenModel& open, const ChatTokenizer& chat, const WritingOptions& options, const std::string& system);

}  // namespace ricci::apps
