// Fuzzes the config.json of GPT-2, Llama, Qwen2 and Qwen3; and vocabularies with merges and their partner files: texts with zero bytes
// between them, then a text to encode.
#include <filesystem>
#include <fstream>

#include "apps/interop/hugging_face.h"
#include "core/json.h"
#include "data/tokenizers/kinds.h"
#include "tests/fuzz/input.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

ModelConfig read(const std::string& path) { return read_hf_config(read_json(path), path, -1); }

void read_config(const std::string& text) {
  static fuzz::InputFile input, written;
  const ModelConfig config = read(input.write(text));
  fuzz::attempt([&] {
    const std::string json = hf_config_json(config, {});
    fuzz::require(hf_config_json(read(written.write(json)), {}) == json, "a written config reads back to the same config");
  });
}

class PairFolder {
 public:
  PairFolder() : path_(std::filesystem::temp_directory_path() / ("ricci-fuzz-" + std::to_string(::getpid()))) {
    std::filesystem::create_directory(path_);
  }
  ~PairFolder() { std::filesystem::remove_all(path_); }
  // An empty part is omitted.
  std::string write(const std::vector<std::string>& parts) const {
    constexpr const char* names[] = {
        "vocab.json", "merges.txt", "tokenizer_config.json", "config.json", "special_tokens_map.json", "added_tokens.json"};
    for (size_t i = 0; i < std::size(names); ++i)
      if (i < parts.size() && !parts[i].empty()) std::ofstream(path_ / names[i], std::ios::binary) << parts[i];
      else std::filesystem::remove(path_ / names[i]);
    return path_;
  }

 private:
  std::filesystem::path path_;
};

void read_pair(const std::vector<std::string>& parts) {
  static const PairFolder folder;
  const auto tokenizer = open_tokenizer(folder.write(parts));
  const auto again = tokenizer_from_json(tokenizer->to_json());
  fuzz::require(again->hash() == tokenizer->hash(), "JSON brings back the same tokenizer");
  const std::vector<int64_t> ids = tokenizer->encode_start(parts.back());
  fuzz::require(again->encode_start(parts.back()) == ids, "and the same ids");
  for (const int64_t id : ids) fuzz::require(id >= 0 && id < tokenizer->vocab_size(), "an id is in the vocabulary");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<std::string> parts = fuzz::parts_of({reinterpret_cast<const char*>(data), size});
  fuzz::attempt([&] {
    if (parts.size() == 1) read_config(parts[0]);
    else read_pair(parts);
  });
  return 0;
}
