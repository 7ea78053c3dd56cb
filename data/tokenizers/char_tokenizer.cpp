#include "data/tokenizers/char_tokenizer.h"

#include <utility>

#include "core/error.h"
#include "data/formats/documents.h"

namespace ricci {
namespace {

// The character at byte `position` of a piece that starts at byte `offset` of the text.
Utf8Character character_at(std::string_view piece, size_t position, int64_t offset) {
  const Utf8Character character = decode_utf8(piece, position);
  if (character.bytes == 0) check_utf8("char tokenizer", piece.substr(position), offset + static_cast<int64_t>(position));
  return character;
}

}  // namespace

void CharacterSet::add(std::string_view piece, int64_t offset) {
  for (size_t position = 0; position < piece.size(); ++count_) {
    const Utf8Character character = character_at(piece, position, offset);
    found_[character.code] = 1;
    position += character.bytes;
  }
}

std::string CharacterSet::sorted() const {
  std::string characters;
  for (char32_t code = 0; code <= kLargestCodePoint; ++code)
    if (found_[code]) append_utf8(code, characters);
  return characters;
}

void CharacterSet::add(const Documents& documents) {
  for_each_text(documents, complete_utf8_prefix, [&](const DocumentPiece& piece) {
    try {
      add(piece.text, piece.first_byte);
    } catch (const Error& error) {
      fail("{}: {}; tokenizer=byte reads any bytes", {piece.place, error.what()});
    }
  });
}

CharTokenizer::CharTokenizer(std::string_view characters, std::string end) : end_(std::move(end)) {
  for (size_t position = 0; position < characters.size();) {
    const Utf8Character character = character_at(characters, position, 0);
    if (character.code >= id_of_.size()) id_of_.resize(character.code + 1, -1);
    if (id_of_[character.code] >= 0) fail("char tokenizer: the vocabulary has a duplicate {}", {describe_character(character.code)});
    id_of_[character.code] = static_cast<int32_t>(characters_.size());
    characters_ += character.code;
    position += character.bytes;
  }
  if (characters_.empty()) fail("char tokenizer: the vocabulary is empty");
}

Json CharTokenizer::model_json() const {
  std::string characters;
  for (const char32_t code : characters_) append_utf8(code, characters);
  Json json = {{"characters", characters}};
  if (!end_.empty()) json["end"] = end_;
  json["name"] = "char";
  return json;
}

void CharTokenizer::append_model_ids(std::string_view piece, int64_t offset, bool, std::vector<int64_t>& ids) const {
  for (size_t position = 0; position < piece.size();) {
    const Utf8Character character = character_at(piece, position, offset);
    const int32_t id = character.code < id_of_.size() ? id_of_[character.code] : -1;
    if (id < 0)
      fail("char tokenizer: {} at byte {} is not among the {} characters of the vocabulary",
          {describe_character(character.code), offset + static_cast<int64_t>(position), characters_.size()});
    ids.push_back(id);
    position += character.bytes;
  }
}

void CharTokenizer::append_text(int64_t id, DecodeState&, std::string& text) const {
  if (id == std::ssize(characters_)) text += end_;
  else append_utf8(characters_[static_cast<size_t>(id)], text);
}

}  // namespace ricci
