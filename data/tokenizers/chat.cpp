#include "data/tokenizers/chat.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/json.h"
#include "data/text/utf8.h"
#include "data/tokenizers/unicode.h"

namespace ricci {
namespace {

constexpr JsonLimits kLineLimits = {.bytes = 64 << 20, .depth = 64, .values = 1 << 20};

// Makes a template with the same form for all roles.
ChatTemplate same_for_all(const std::string& start, const std::string& before, const std::string& between, const std::string& end,
    const std::string& rest, bool trims) {
  const auto message = [&](const std::string& role) { return before + role + between + std::string(kContent) + end + rest; };
  return {start, message("system"), message("user"), message("assistant"), end, before + "assistant" + between, trims};
}

size_t count_occurrences(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t position = text.find(part); position != text.npos; position = text.find(part, position + part.size())) ++count;
  return count;
}

// Trims like Python's str.strip(), as templates do.
std::string_view trimmed(std::string_view text) {
  for (Utf8Character c; !text.empty() && (c = decode_utf8(text, 0)).bytes > 0 && is_python_space(c.code);) text.remove_prefix(c.bytes);
  for (Utf8Character c; !text.empty() && (c = decode_utf8_before(text, text.size())).bytes > 0 && is_python_space(c.code);)
    text.remove_suffix(c.bytes);
  return text;
}

bool has_items(const Json& value) { return value.is_structured() && !value.empty(); }

Json read_conversation(std::string_view line) {
  Json object = parse_json(line, "JSON", kLineLimits);
  if (!member(object, "messages").is_array()) fail("expected an object with a list \"messages\"");
  return object;
}

// Error: the value of "weight" or "train" is invalid.
bool is_learned(const Json& message) {
  const Json &weight = member(message, "weight"), &train = member(message, "train");
  if (!weight.is_null() && weight != 0 && weight != 1) fail("\"weight\": {}, expected 0 or 1", {one_line(to_text(weight))});
  if (!train.is_null() && !train.is_boolean()) fail("\"train\": {}, expected true or false", {one_line(to_text(train))});
  return weight != 0 && train != false;
}

}  // namespace

ChatTemplate chat_template(const std::vector<std::string>& named) {
  if (named == std::vector<std::string>{"chatml"}) return same_for_all("", "<|im_start|>", "\n", "<|im_end|>", "\n", false);
  if (named == std::vector<std::string>{"llama3"})
    return same_for_all("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>\n\n", "<|eot_id|>", "", true);
  if (named.size() != 6)
    fail("chat: expected chatml, llama3, or six strings (start, system, user, assistant, end and answer), got a list of length {}",
        {named.size()});
  const ChatTemplate form{named[0], named[1], named[2], named[3], named[4], named[5]};
  for (const auto& [key, text] : {std::pair{"system", form.system}, {"user", form.user}, {"assistant", form.assistant}})
    if (const size_t count = count_occurrences(text, kContent); count != 1)
      fail("chat: {}: '{}' contains {} {} times, expected once", {key, one_line(text), std::string(kContent), count});
  if (form.end.empty()) fail("chat: end: is empty, expected the token that ends an answer");
  if (!form.assistant.starts_with(form.answer + std::string(kContent) + form.end))
    fail("chat: assistant: '{}' does not begin with 'answer', {} and 'end'", {one_line(form.assistant), std::string(kContent)});
  return form;
}

std::vector<Message> read_messages(std::string_view line) {
  const Json object = read_conversation(line);
  if (has_items(member(object, "tools"))) fail("\"tools\": conversations with tools are not supported");
  std::vector<Message> messages;
  for (const Json& each : member(object, "messages")) {
    const auto reject = [&](const std::string& why) { fail("message {}: {}", {messages.size() + 1, why}); };
    std::optional<std::string> role = as<std::string>(member(each, "role")), content = as<std::string>(member(each, "content"));
    if (!role) reject("expected an object with the string member \"role\"");
    const auto names = choices(ChatRole());
    const auto* const known = std::find(names.begin(), names.end(), *role);
    if (known == names.end()) reject("role '" + one_line(*role) + "', expected " + list_of<ChatRole>());
    if (has_items(member(each, "tool_calls"))) reject("\"tool_calls\": conversations with tools are not supported");
    if (!content) reject("\"content\" must be a string");
    const bool is_answer = *role == name_of(ChatRole::assistant);
    const bool counts = is_answer && about(format_message("message {}", {messages.size() + 1}), [&] { return is_learned(each); });
    messages.push_back({static_cast<ChatRole>(known - names.begin()), std::move(*content), counts});
  }
  if (messages.empty()) fail("\"messages\" is empty");
  return messages;
}

std::set<std::string> unread_keys(std::string_view line) {
  const Json conversation = read_conversation(line);
  std::set<std::string> keys;
  for (const char* const key : {"system", "weight", "train"})
    if (!member(conversation, key).is_null()) keys.insert(key);
  for (const Json& message : conversation["messages"]) {
    const Json& role = member(message, "role");
    if (!role.is_string()) continue;
    for (const auto& [key, value] : message.items()) {
      const bool is_wanted = role == name_of(ChatRole::assistant) || value == 0 || value == false;
      const bool is_read = key == "role" || key == "content" || ((key == "weight" || key == "train") && is_wanted);
      const bool is_empty = value.is_null() || (value.is_structured() && value.empty());
      if (!is_read && !is_empty) keys.insert(key);
    }
  }
  return keys;
}

ChatEncoder::ChatEncoder(const std::shared_ptr<const Tokenizer>& tokenizer, ChatTemplate form)
    : pieces_(std::dynamic_pointer_cast<const PieceTokenizer>(tokenizer)), form_(std::move(form)) {
  if (tokenizer->eos() == Eos::line) fail("chat: the tokenizer adds a token after every line, but a chat template contains line ends");
  if (!pieces_) fail("chat: a {} tokenizer has no tokens for the markers of a chat template", {tokenizer->name()});
  check_markers();
  const AddedToken* const end = find_added(form_.end);
  if (!end) fail("chat: end: '{}' is not an added token of the tokenizer", {one_line(form_.end)});
  plain_ = pieces_->without_added();
  if (plain_->find(form_.end) >= 0) fail("chat: end: '{}' is the unknown token, so messages can contain it", {one_line(form_.end)});
  start_ = pieces_->encode(form_.start);
  answer_ = pieces_->encode(form_.answer);
  system_ = make_frame(form_.system);
  user_ = make_frame(form_.user);
  assistant_ = make_frame(form_.assistant);
  if (assistant_.after.empty() || assistant_.after.front() != end->id)
    fail("chat: end: '{}' is not found after an answer; a different added token is found there first", {one_line(form_.end)});
}

const AddedToken* ChatEncoder::find_added(std::string_view content) const {
  const auto& all = pieces_->added_tokens();
  const auto found = std::find_if(all.begin(), all.end(), [&](const AddedToken& token) { return token.content == content; });
  return found == all.end() ? nullptr : &*found;
}

// Error: the template has markers <|...|> that are not added tokens.
void ChatEncoder::check_markers() const {
  std::string missing, options;
  for (const std::string& text : {form_.start, form_.system, form_.user, form_.assistant})
    for (size_t position = text.find("<|"), end = 0; position != text.npos; position = text.find("<|", position + 2)) {
      if ((end = text.find("|>", position)) == text.npos) break;
      const std::string marker = text.substr(position, end + 2 - position), option = " --special '" + one_line(marker) + "'";
      if (find_added(marker) || options.find(option) != options.npos) continue;
      missing += (missing.empty() ? "'" : ", '") + one_line(marker) + "'";
      options += option;
    }
  if (!missing.empty())
    fail("chat: the tokenizer lacks the markers {}; ricci tokenize train TEXTS --from FILE --keep-all{} adds them", {missing, options});
}

ChatEncoder::Frame ChatEncoder::make_frame(const std::string& text) const {
  const size_t position = text.find(kContent);
  const std::string before = text.substr(0, position), after = text.substr(position + kContent.size());
  size_t last = 0, first = after.size();  // end of the last added token before the text, start of the first one after the text
  for (const AddedToken& token : pieces_->added_tokens()) {
    if (const size_t found = before.rfind(token.content); found != before.npos) last = std::max(last, found + token.content.size());
    first = std::min(first, after.find(token.content));
  }
  return {pieces_->encode(before.substr(0, last)), before.substr(last), after.substr(0, first), pieces_->encode(after.substr(first))};
}

// Returns the index of the first scored token. This token contains the first byte of the answer, possibly after white space from
// frame.lead.
size_t ChatEncoder::begin_of_answer(const Frame& frame, std::span<const int64_t> text) const {
  std::vector<int64_t> lead;
  plain_->append_ids(frame.lead, 0, lead);
  const size_t most = std::min(lead.size(), text.size());
  size_t begin = std::mismatch(lead.begin(), lead.end(), text.begin(), text.end()).first - lead.begin();
  while (begin < most && pieces_->decode(text.first(begin + 1)).size() <= frame.lead.size()) ++begin;
  return begin;
}

void ChatEncoder::append_message(const Message& message, EncodedDocument& document) const {
  const bool is_answer = message.role == ChatRole::assistant, counts = is_answer && message.counts;
  const Frame& other = message.role == ChatRole::system ? system_ : user_;
  const Frame& frame = is_answer ? assistant_ : other;
  const std::string_view content = form_.trims ? trimmed(message.content) : std::string_view(message.content);
  std::vector<int64_t> text;
  plain_->append_ids(frame.lead + std::string(content) + frame.trail, 0, text);

  const auto append = [&](std::span<const int64_t> ids, bool count) {
    document.ids.insert(document.ids.end(), ids.begin(), ids.end());
    document.counts.resize(document.ids.size(), count);
  };
  const size_t begin = is_answer ? begin_of_answer(frame, text) : text.size();
  append(frame.before, false);
  append(std::span(text).first(begin), false);
  append(std::span(text).subspan(begin), counts);
  const size_t ending = is_answer ? 1 : 0;  // the marker that ends an answer
  append(std::span(frame.after).first(ending), counts);
  append(std::span(frame.after).subspan(ending), false);
}

EncodedDocument ChatEncoder::encode(std::string_view line) const {
  EncodedDocument document{start_, std::vector<bool>(start_.size())};
  for (const Message& message : read_messages(line)) append_message(message, document);
  return document;
}

bool ChatEncoder::ends_answer(int64_t id) const {
  const auto& all = pieces_->added_tokens();
  return id == end() ||
         std::any_of(all.begin(), all.end(), [&](const AddedToken& token) { return token.id == id && (token.special || token.eos); });
}

}  // namespace ricci
