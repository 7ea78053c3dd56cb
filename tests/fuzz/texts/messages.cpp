// Fuzzes conversations: a template, the name of one or its six strings, and a line of messages, with a zero byte before each string but
// the first.
#include <algorithm>
#include <vector>

#include "data/tokenizers/chat.h"
#include "tests/fuzz/input.h"

using namespace ricci;

namespace {

constexpr const char* kMarkers[] = {
    "<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"};

// Bytes, and the markers of both named templates.
std::shared_ptr<const Tokenizer> with_markers() {
  std::string vocabulary, added;
  for (int64_t id = 0; id < 6; ++id)
    added += (id ? "," : "") + std::string(R"({"id":)") + std::to_string(id) + R"(,"content":")" + kMarkers[id] + R"(","special":true})";
  for (const char* piece : {"a", "b", "e", "r", "s", "u", "m", "y", "t", "Ċ", "Ġ", "ab", "<", "|", ">", "_", "i"})
    vocabulary += (vocabulary.empty() ? "\"" : ",\"") + std::string(piece) +
                  "\":" + std::to_string(6 + std::count(vocabulary.begin(), vocabulary.end(), ':'));
  return tokenizer_from_json(R"({"added_tokens":[)" + added + R"(],"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},)" +
                             R"("model":{"type":"BPE","vocab":{)" + vocabulary + R"(},"merges":["a b"]}})");
}

// No text of a message makes a marker: each named template writes `per_message` of them around every text, and `start` before the first.
void check_markers(const std::vector<int64_t>& ids, int64_t vocab, int64_t start, int64_t per_message, const std::string& line) {
  const int64_t markers = std::count_if(ids.begin(), ids.end(), [&](int64_t id) { return id % vocab < 6; });
  fuzz::require(markers == start + per_message * static_cast<int64_t>(messages_of(line).size()), "markers come from the template alone");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::shared_ptr<const Tokenizer> tokenizer = with_markers();
  std::vector<std::string> form = fuzz::parts_of({reinterpret_cast<const char*>(data), size});
  const std::string line = form.back();
  form.pop_back();
  fuzz::attempt([&] {
    const ChatTokenizer chat(tokenizer, chat_template(form));
    std::vector<int64_t> ids;
    chat.append_ids(line, 0, ids);
    for (const int64_t id : ids) fuzz::require(id >= 0 && id < chat.vocab_size(), "ids are in the vocabulary, or count");
    if (form.size() == 1) check_markers(ids, tokenizer->vocab_size(), form[0] == "llama3", form[0] == "llama3" ? 3 : 2, line);
  });
  return 0;
}
