// Conversations as ids. A template writes messages as a text with markers between them:
//   chatml   <|im_start|>user\nTEXT<|im_end|>\n<|im_start|>assistant\nTEXT<|im_end|>\n
// Markers are added tokens of the tokenizer and become their ids. In the text of a message no added token is looked for, so that no user
// can write a marker. The messages of an assistant and the marker that ends each count: a model learns them.
#pragma once
#include <cstdint>
#include <memory>
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
  std::string system, user, assistant;  // messages, with {content} in the place of their text; after an assistant's comes `end`
  std::string end;                      // one added token
  std::string answer;                   // what `assistant` has before {content}
  bool trims = false;                   // white space around texts is left out
};

// The template that a list names: chatml, llama3, or the six strings above in their order. Errors: it is neither; {content} is not there
// once; `assistant` is not `answer`, {content}, `end`, and what follows.
ChatTemplate chat_template(const std::vector<std::string>& named);

enum class Speaker : uint8_t { system, user, assistant };
constexpr auto choices(Speaker) { return std::array{"system", "user", "assistant"}; }

struct Message {
  Speaker role;
  std::string content;
};

// The messages of {"messages": [{"role": "user", "content": "..."}, ...]}; other members of the line are ignored. Errors: not such an
// object, no message, another role, tools, a content that is no text; each with the number of the message, from 1.
std::vector<Message> messages_of(std::string_view line);

// Encodes conversations. The tokens of answers count, each with the marker that ends it.
class ChatEncoder {
 public:
  // Errors: the tokenizer has no added tokens for `end` and for what is written as <|...|> in the template; it puts a piece after lines;
  // PieceTokenizer::without_added's.
  ChatEncoder(const std::shared_ptr<const Tokenizer>& tokenizer, ChatTemplate form);

  // A line of messages. Errors: those of messages_of; a text that the tokenizer cannot represent.
  EncodedDocument encode(std::string_view line) const;
  void append_message(const Message& message, EncodedDocument& document) const;
  // The ids that open a conversation, and the ids that open an answer. An answer ends with the id of `end`, which rest() follows, or with
  // another token that controls the model and is no text.
  const std::vector<int64_t>& start() const { return start_; }
  const std::vector<int64_t>& answer() const { return answer_; }
  int64_t end() const { return assistant_.after.front(); }
  std::vector<int64_t> rest() const { return {assistant_.after.begin() + 1, assistant_.after.end()}; }
  bool ends_answer(int64_t id) const;

 private:
  // A message around its text. Plain text next to {content} is encoded with it, as transformers does.
  struct Frame {
    std::vector<int64_t> before;
    std::string lead, trail;
    std::vector<int64_t> after;
  };
  Frame frame_of(const std::string& text) const;
  const AddedToken* find_added(std::string_view content) const;
  void check_markers() const;
  size_t begin_of_answer(const Frame& frame, std::span<const int64_t> text) const;

  std::shared_ptr<const PieceTokenizer> pieces_, plain_;  // plain_ encodes the texts of messages
  ChatTemplate form_;
  std::vector<int64_t> start_, answer_;
  Frame system_, user_, assistant_;
};

}  // namespace ricci
