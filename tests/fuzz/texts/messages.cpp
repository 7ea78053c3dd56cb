// Fuzzes the formats with a mask: a template name or its six strings, and a line of messages or a pair, with a zero byte before each string
// but the first.
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
void check_markers(const std::vector<int64_t>& ids, int64_t start, int64_t per_message, const std::string& line) {
  const int64_t markers = std::count_if(ids.begin(), ids.end(), [](int64_t id) { return id < 6; });
  fuzz::require(markers == start + per_message * static_cast<int64_t>(read_messages(line).size()), "markers come only from the template");
}

EncodedDocument encoded(const DocumentOptions& options, const std::string& line) {
  static const std::shared_ptr<const Tokenizer> tokenizer = with_markers();
  const EncodedDocument document = traits_of(options.format).encoder(tokenizer, options)(line);
  for (const int64_t id : document.ids) fuzz::require(id >= 0 && id < tokenizer->vocab_size(), "ids are in the vocabulary");
  fuzz::require(document.counts.size() == document.ids.size(), "each token counts or does not");
  return document;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> form = fuzz::parts_of({reinterpret_cast<const char*>(data), size});
  const std::string line = form.back();
  form.pop_back();
  fuzz::attempt([&] {
    const EncodedDocument document = encoded({.format = format_of(kMessages), .chat = form}, line);
    if (form.size() == 1) check_markers(document.ids, form[0] == "llama3", form[0] == "llama3" ? 3 : 2, line);
  });
  fuzz::attempt([&] {
    const EncodedDocument pair = encoded({.format = format_of(kPairs)}, line);
    fuzz::require(std::is_sorted(pair.counts.begin(), pair.counts.end()), "an answer counts from its first token to its last");
  });
  return 0;
}
