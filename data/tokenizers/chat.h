// Conversations as ids. A template writes messages as a text with markers between them:
//   chatml   <|im_start|>user\nTEXT<|im_end|>\n<|im_start|>assistant\nTEXT<|im_end|>\n
// Markers are added tokens of the tokenizer and become their ids. In the text of a message no added token is looked for, so that no user
// can write a marker. The messages of an assistant and the marker that ends each count: a model learns them.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

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

// A tokenizer whose texts are lines of messages. Its ids are the ids of the other tokenizer; for tokens that count, V, the size of its
// vocabulary, is added.
class ChatTokenizer final : public Tokenizer {
 public:
  // Errors: the tokenizer has no added tokens for `end` and for what is written as <|...|> in the template; it ends lines or documents;
  // PieceTokenizer::without_added's.
  ChatTokenizer(std::shared_ptr<const Tokenizer> tokenizer, ChatTemplate form);

  // Appends the ids of a message.
  void append_message(const Message& message, std::vector<int64_t>& ids) const;
  // The ids that open a conversation, and the ids that open an answer. An answer ends with the id of `end`, which rest() follows, or with
  // another token that controls the model and is no text.
  const std::vector<int64_t>& start() const { return start_; }
  const std::vector<int64_t>& answer() const { return answer_; }
  int64_t end() const { return assistant_.after.front(); }
  std::vector<int64_t> rest() const { return {assistant_.after.begin() + 1, assistant_.after.end()}; }
  bool ends_answer(int64_t id) const;

  std::string name() const override { return tokenizer_->name(); }
  int64_t vocab_size() const override { return 2 * tokenizer_->vocab_size(); }
  std::string model_json() const override { return json_with(tokenizer_->to_json()); }
  int64_t find(std::string_view piece) const override { return tokenizer_->find(piece); }

 protected:
  void append_model_ids(std::string_view line, int64_t offset, std::vector<int64_t>& ids) const override;
  size_t model_prefix(std::string_view) const override { return 0; }  // a line is not divided
  std::string hashed_model_json() const override { return json_with(tokenizer_->hashed_json()); }
  void append_text(int64_t id, DecodeState& state, std::string& text) const override;

 private:
  // A message around its text. Plain text beside {content} is encoded with it, as transformers does.
  struct Frame {
    std::vector<int64_t> before;
    std::string lead, trail;
    std::vector<int64_t> after;
  };
  Frame frame_of(const std::string& text) const;
  const AddedToken* find_added(std::string_view content) const;
  void check_markers() const;
  std::string json_with(const std::string& tokenizer) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  const PieceTokenizer* pieces_;
  std::shared_ptr<const PieceTokenizer> plain_;  // encodes the texts of messages
  ChatTemplate form_;
  std::vector<int64_t> start_, answer_;
  Frame system_, user_, assistant_;
};

}  // namespace ricci
