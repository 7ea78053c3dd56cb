// What all tokenizers share, and the choice of one by the name stored with a checkpoint.
#include "data/tokenizers/tokenizer.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/hash.h"
#include "core/files/json_depth.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/char_tokenizer.h"
#include "data/tokenizers/utf8.h"

namespace ricci {

std::vector<int64_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int64_t> ids;
  append_ids(text, 0, ids);
  return ids;
}

std::string Tokenizer::decode(std::span<const int64_t> ids) const {
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab_size())
      fail("{} tokenizer: id {} at index {} is outside the vocabulary of {}", {name(), ids[i], i, vocab_size()});
    append_text(ids[i], text);
  }
  return text;
}

uint64_t Tokenizer::hash() const { return hash_bytes(to_json()); }

namespace {

constexpr int kDeepest = 8;

std::string string_field(const nlohmann::json& object, const char* key) {
  const auto field = object.is_object() ? object.find(key) : object.end();
  if (field == object.end() || !field->is_string()) fail("tokenizer: the JSON has no text \"{}\"", {key});
  return field->get<std::string>();
}

}  // namespace

std::shared_ptr<const Tokenizer> tokenizer_from_json(std::string_view json) {
  if (static_cast<int64_t>(json.size()) > kMostTokenizer) fail("tokenizer: {} bytes, at most {} are read", {json.size(), kMostTokenizer});
  if (const int depth = json_depth(json); depth > kDeepest) fail("tokenizer: the JSON is nested {} levels deep, at most {} are read", {depth, kDeepest});
  const nlohmann::json object = nlohmann::json::parse(json, nullptr, false);
  if (object.is_discarded()) fail("tokenizer: these {} bytes are not JSON", {json.size()});
  const std::string name = string_field(object, "name");
  if (name == "byte") return std::make_shared<ByteTokenizer>();
  if (name == "char") return std::make_shared<CharTokenizer>(string_field(object, "characters"));
  fail("tokenizer: unknown name {}, known are byte and char", {one_line(name)});
}

}  // namespace ricci
