// Conversations as ids. A template writes messages as one text with markers between them:
//   chatml   <|im_start|>user\nTEXT<|im_end|>\n<|im_start|>assistant\nTEXT<|im_end|>\n
// Markers are added tokens of the tokenizer. They are not looked for in the text of a message, because otherwise a user could write one.
// Only the answers of the assistant and the markers that end them count, because a model must learn nothing else.
#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/formats/formats.h"
#include "data/tokenizers/piece_tokenizer.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci {

inline constexpr std::string_view kContent = "{content}";

struct ChatTemplate {
  std::string start;                    // before the first message
  std::string system, user, assistant;  // messages, with {content} for their text; `assistant` is `answer`, {content}, `end`, and a rest
  std::string end;                      // one added token
  std::string answer;                   // opens an answer
  bool trims = false;                   // removes white space around texts
};

// The template with this name, chatml or llama3, or of the six strings above in their order. Errors: neither; a message does not have
// {content} once; `assistant` does not start with `answer`, {content} and `end`.
ChatTemplate chat_template(const std::vector<std::string>& named);

enum class ChatRole : uint8_t { system, user, assistant };
constexpr auto choices(ChatRole) { return std::array{"system", "user", "assistant"}; }

struct Message {
  ChatRole role;
  std::string content;
  bool counts = true;  // an answer that a model learns
};

// The messages of {"messages": [{"role": "user", "content": "..."}, ...]}. An answer with "weight": 0 or "train": false is read and not
// learned. Errors, with the number of the message from 1: not such an object, no message, a different role, tools, a content that is not a
// text, a different weight.
std::vector<Message> read_messages(std::string_view line);
// Keys of messages, and of the line those with a meaning for training, that read_messages ignores. Null and empty values do not count.
std::set<std::string> unread_keys(std::string_view line);

// Encodes conversations.
class ChatEncoder {
 public:
  // Errors: the tokenizer has no added token for `end`, or for a marker <|...|> of the template; it puts a piece after lines;
  // PieceTokenizer::without_added's.
  ChatEncoder(const std::shared_ptr<const Tokenizer>& tokenizer, ChatTemplate form);

  // Encodes a line. Errors: read_messages'; a text that the tokenizer cannot encode.
  EncodedDocument encode(std::string_view line) const;
  void append_message(const Message& message, EncodedDocument& document) const;
  // The ids that open a conversation, and the ids that open an answer. An answer ends with end() and then rest(), or with another special
  // token.
  const std::vector<int64_t>& start() const { return start_; }
  const std::vector<int64_t>& answer() const { return answer_; }
  int64_t end() const { return assistant_.after.front(); }
  std::vector<int64_t> rest() const { return {assistant_.after.begin() + 1, assistant_.after.end()}; }
  bool ends_answer(int64_t id) const;

 private:
  // A message without its text. Plain text next to {content} (lead, trail) is encoded together with it, as transformers does.
  struct Frame {
    std::vector<int64_t> before;
    std::string lead, trail;
    std::vector<int64_t> after;
  };
  Frame make_frame(const std::string& text) const;
  const AddedToken* find_added(std::string_view content) const;
  void check_markers() const;
  size_t begin_of_answer(const Frame& frame, std::span<const int64_t> text) const;

  std::shared_ptr<const PieceTokenizer> pieces_, plain_;  // plain_ encodes the texts of messages
  ChatTemplate form_;
  std::vector<int64_t> start_, answer_;
  Frame system_, user_, assistant_;
};

}  // namespace ricci
