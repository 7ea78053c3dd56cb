// A conversation per line, formatted by a chat template. A model learns only the answers.
#include "core/choice.h"
#include "data/formats/formats.h"
#include "data/tokenizers/chat.h"

namespace ricci {
namespace {

DocumentEncoder chat_encoder(const std::shared_ptr<const Tokenizer>& tokenizer, const DocumentOptions& options) {
  return [chat = ChatEncoder(tokenizer, chat_template(options.chat))](std::string_view line) { return chat.encode(line); };
}

// Returns the contents and the role names. Templates write both.
std::vector<std::string> message_texts(std::string_view line) {
  std::vector<std::string> texts;
  for (const Message& message : read_messages(line)) {
    texts.emplace_back(name_of(message.role));
    texts.push_back(message.content);
  }
  return texts;
}

}  // namespace

const FormatTraits kMessages{.name = "messages",
    .lines = "a conversation per line",
    .encoder = chat_encoder,
    .texts = message_texts,
    .unread_keys = unread_keys,
    .has_template = true};

}  // namespace ricci
