// Conversations as ids. A template formats messages as one text with markers between them:
//   chatml   <|im_start|>user\nTEXT<|im_end|>\n<|im_start|>assistant\nTEXT<|im_end|>\n
// Markers are added tokens of the tokenizer. They are not recognized in the text of a message, so a user cannot insert one. Only the
// assistant's answers and their end markers are scored.
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
  std::string system, user, assistant;  // messages with {content} for their text; `assistant` is `answer`, {content}, `end`, and a rest
  std::string end;                      // one added token
  std::string answer;                   // opens an answer
  bool trims = false;                   // removes white space around texts
};

// Returns the template chatml or llama3, or one from the six strings above, in their order. Errors: `named` is neither; a message does not
// contain {content} exactly once; `assistant` does not start with `answer`, {content} and `end`.
ChatTemplate chat_template(const std::vector<std::string>& named);

enum class ChatRole : uint8_t { system, user, assistant };
constexpr auto choices(ChatRole) { return std::array{"system", "user", "assistant"}; }

struct Message {
  ChatRole role;
  std::string content;
  bool counts = true;  // an answer that a model learns
};

// Reads the messages of {"messages": [{"role": "user", "content": "..."}, ...]}. An answer with "weight": 0 or "train": false is read but
// not learned. Errors, with the message number from 1: the line is not such an object, has no message, or has tools; a role, content or
// weight is invalid.
std::vector<Message> read_messages(std::string_view line);
// Returns the keys that read_messages ignores: keys of messages, and keys of the line with a meaning for training. Keys with null or empty
// values are omitted.
std::set<std::string> unread_keys(std::string_view line);

class ChatEncoder {
 public:
  // Errors: the tokenizer has no added token for `end`, or for a marker <|...|> of the template; the tokenizer adds a token after lines;
  // PieceTokenizer::without_added's.
  ChatEncoder(const std::shared_ptr<const Tokenizer>& tokenizer, ChatTemplate form);

  // Encodes a line. Errors: read_messages'; the tokenizer cannot encode a text.
  EncodedDocument encode(std::string_view line) const;
  void append_message(const Message& message, EncodedDocument& document) const;
  // The ids that open a conversation, and the ids that open an answer. An answer ends with end() and rest(), or with a different special
  // token.
  const std::vector<int64_t>& start() const { return start_; }
  const std::vector<int64_t>& answer() const { return answer_; }
  int64_t end() const { return assistant_.after.front(); }
  std::vector<int64_t> rest() const { return {assistant_.after.begin() + 1, assistant_.after.end()}; }
  bool ends_answer(int64_t id) const;

 private:
  // A message without its text. Plain text next to {content} (lead, trail) is encoded together with the text, as in transformers.
  struct Frame {
    std::vector<int64_t> before;
    std::string lead, trail;
    std::vector<int64_t> after;
  };
  Frame make_frame(const std::string& text) const;
  const AddedToken* find_added(std::string_view content) const;
  void check_markers() const;
  size_t begin_of_answer(const Frame& frame, std::span<const int64_t> text) const;

  std::shared_ptr<const PieceTokenizer> pieces_, plain_;  // plain_ encodes message texts
  ChatTemplate form_;
  std::vector<int64_t> start_, answer_;
  Frame system_, user_, assistant_;
};

}  // namespace ricci
