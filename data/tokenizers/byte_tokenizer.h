// One id per byte: id = value of the byte, 256 ids. Represents every file, also text that is not UTF-8.
#pragma once
#include "data/tokenizers/tokenizer.h"

namespace ricci {

class ByteTokenizer final : public Tokenizer {
 public:
  std::string name() const override { return "byte"; }
  int64_t vocab_size() const override { return 256; }
  Json model_json() const override { return {{"name", "byte"}}; }

 protected:
  void append_model_ids(std::string_view piece, int64_t, std::vector<int64_t>& ids) const override {
    for (const char byte : piece) ids.push_back(static_cast<unsigned char>(byte));
  }
  size_t model_prefix(std::string_view text) const override { return text.size(); }
  void append_text(int64_t id, DecodeState&, std::string& text) const override { text += static_cast<char>(id); }
};

}  // namespace ricci
