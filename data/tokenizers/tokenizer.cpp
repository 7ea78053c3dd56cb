#include "data/tokenizers/tokenizer.h"

#include <map>
#include <utility>

#include "core/cpu/parallel.h"
#include "core/error.h"
#include "core/files/checksum.h"
#include "core/json/value.h"
#include "data/text/utf8.h"
#include "data/tokenizers/piece_tokenizer.h"

namespace ricci {

std::vector<int64_t> Tokenizer::encode(std::string_view text) const {
  const Passage whole{text};
  std::vector<EncodedPart> parts = ricci::encode(*this, {&whole, 1});
  if (parts.size() == 1) return std::move(parts[0].ids);
  size_t count = 0;
  for (const EncodedPart& part : parts) count += part.ids.size();
  std::vector<int64_t> ids;
  ids.reserve(count);
  for (const EncodedPart& part : parts) ids.insert(ids.end(), part.ids.begin(), part.ids.end());
  return ids;
}

std::vector<int64_t> Tokenizer::encode_start(std::string_view text) const {
  std::vector<int64_t> ids = encode(text);
  if (const int64_t first = marks().first; first >= 0) ids.insert(ids.begin(), first);
  return ids;
}

std::string Tokenizer::decode(std::span<const int64_t> ids) const {
  std::string text;
  DecodeState state;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab_size())
      fail("{} tokenizer: id {} at index {} is outside the vocabulary of {}", {name(), ids[i], i, vocab_size()});
    append_text_or_line_end(ids[i], state, text);
  }
  return text;
}

std::string Tokenizer::decode_next(int64_t id, DecodeState& state) const {
  if (id < 0 || id >= vocab_size()) fail("{} tokenizer: id {} is outside the vocabulary of {}", {name(), id, vocab_size()});
  std::string text = std::move(state.held);
  append_text_or_line_end(id, state, text);
  const size_t complete = complete_utf8_prefix(text);
  state.held = text.substr(complete);
  text.resize(complete);
  return text;
}

void Tokenizer::append_text_or_line_end(int64_t id, DecodeState& state, std::string& text) const {
  if (eos_ != Eos::line || id != eos_id_) return append_text(id, state, text);
  text += '\n';
  state.at_start = true;
}

DecodeState Tokenizer::state_after(std::span<const int64_t> ids) const {
  DecodeState state;
  for (const int64_t id : ids) decode_next(id, state);
  state.held.clear();
  return state;
}

std::string Tokenizer::decode_end(DecodeState& state) const { return std::exchange(state.held, ""); }

uint64_t Tokenizer::hash() const { return hash_bytes(hashed_json()); }

// ---- <eos>

void Tokenizer::set_eos(Eos after, const std::string& piece) {
  if (after == Eos::none) fail("eos: expected line or document, got none");
  if (eos_ != Eos::none)
    fail("{} tokenizer: it has '{}' after every {} already, and gets no other end", {name(), one_line(eos_piece_), name_of(eos_)});
  eos_id_ = find(piece);
  if (eos_id_ < 0) fail("{} tokenizer: its vocabulary has no piece '{}' to put after every {}", {name(), one_line(piece), name_of(after)});
  eos_ = after;
  eos_piece_ = piece;
}

Marks Tokenizer::marks() const {
  Marks marks = model_marks();
  std::erase(marks.ends, eos_id_);
  if (eos_ == Eos::document) marks.ends.insert(marks.ends.begin(), eos_id_);
  return marks;
}

std::string Tokenizer::json_with_eos(const std::string& model) const {
  if (eos_ == Eos::none) return model;
  return R"({"name":"eos","behind":")" + std::string(name_of(eos_)) + R"(","piece":)" + quoted_json(eos_piece_) + R"(,"tokenizer":)" +
         model + "}";
}

void Tokenizer::append_ids(std::string_view piece, int64_t offset, std::vector<int64_t>& ids) const {
  size_t from = 0;
  while (eos_ == Eos::line) {
    const size_t end = piece.find('\n', from);
    if (end == piece.npos) break;
    append_model_ids(piece.substr(from, end - from), offset + static_cast<int64_t>(from), ids);
    ids.push_back(eos_id_);
    from = end + 1;
  }
  append_model_ids(piece.substr(from), offset + static_cast<int64_t>(from), ids);
}

size_t Tokenizer::complete_prefix(std::string_view text) const {
  const size_t line_end = eos_ == Eos::line ? text.rfind('\n') : text.npos;
  return line_end == text.npos ? model_prefix(text) : line_end + 1;
}

void Tokenizer::append_end(std::string_view last, std::vector<int64_t>& ids) const {
  const bool open_line = eos_ == Eos::line && !last.empty() && last.back() != '\n';
  if (eos_ == Eos::document || open_line) ids.push_back(eos_id_);
}

std::string end_of_text(const Tokenizer& tokenizer) {
  if (tokenizer.eos() != Eos::none) return tokenizer.eos() == Eos::document ? tokenizer.eos_piece() : "";
  const auto* const pieces = dynamic_cast<const PieceTokenizer*>(&tokenizer);
  const std::vector<int64_t> ends = tokenizer.marks().ends;
  if (pieces && !ends.empty()) return std::string(pieces->vocabulary().piece(ends[0]));
  for (const char* piece : {"<|endoftext|>", "<|end_of_text|>", kEos, "</s>"})  // as vocabularies write it
    if (tokenizer.find(piece) >= 0) return piece;
  return "";
}

std::shared_ptr<const Tokenizer> with_eos(std::shared_ptr<const Tokenizer> tokenizer, Eos after, std::string piece) {
  const bool has_it = tokenizer->eos() == after && (piece.empty() || tokenizer->eos_piece() == piece);
  if (after == Eos::none || has_it) return tokenizer;
  if (piece.empty() && after == Eos::document) piece = end_of_text(*tokenizer);
  if (piece.empty()) piece = kEos;
  Additions additions{.eos = after, .eos_piece = piece};
  if (tokenizer->find(piece) < 0) additions.pieces = {piece};
  return with_additions(*tokenizer, additions);
}

std::shared_ptr<const Tokenizer> with_own_eos(std::shared_ptr<const Tokenizer> tokenizer) {
  const bool can = tokenizer->eos() == Eos::none && !end_of_text(*tokenizer).empty();
  return can ? with_eos(std::move(tokenizer), Eos::document) : tokenizer;
}

// ---- Many texts at once

namespace {

constexpr size_t kPart = 32 << 10;                      // bytes that one thread encodes at a time
constexpr int64_t kFewParts = 1024, kGrainOfMany = 16;  // many parts are short ones

struct PassagePart {
  std::string_view text;
  int64_t first_byte;
  size_t passage;
  bool is_first, ends;  // in its passage; it ends the document
};

// The passage in parts of about kPart bytes.
void append_parts(const Tokenizer& tokenizer, const Passage& passage, size_t number, std::vector<PassagePart>& parts) {
  const std::string_view text = passage.text;
  const auto append = [&](size_t begin, size_t bytes, bool ends) {
    parts.push_back({text.substr(begin, bytes), passage.first_byte + static_cast<int64_t>(begin), number, begin == 0, ends});
  };
  size_t begin = 0, wanted = kPart;
  while (text.size() - begin > wanted) {
    const size_t complete = tokenizer.complete_prefix(text.substr(begin, wanted));
    if (complete > 0) append(begin, complete, false);
    begin += complete;
    wanted = complete > 0 ? kPart : 2 * wanted;  // a unit of the text may be longer than a part
  }
  append(begin, text.size() - begin, passage.ends);
}

void append_ids(const Tokenizer& tokenizer, const PassagePart& part, std::string_view place, std::vector<int64_t>& ids) {
  ids.reserve(part.text.size() / 3);
  try {
    tokenizer.append_ids(part.text, part.first_byte, ids);
    if (part.ends) tokenizer.append_end(part.text, ids);
  } catch (const Error& error) {
    if (place.empty()) throw;
    fail("{}: {}", {std::string(place), error.what()});
  }
}

// The id of each token by its text; -1 for a text that multiple tokens have.
std::map<std::string, int64_t> ids_by_text(const Tokenizer& tokenizer) {
  std::map<std::string, int64_t> ids;
  for (int64_t id = 0; id < tokenizer.vocab_size(); ++id)
    if (const auto [found, is_new] = ids.emplace(tokenizer.decode({&id, 1}), id); !is_new) found->second = -1;
  return ids;
}

}  // namespace

std::vector<std::pair<int64_t, int64_t>> same_tokens(const Tokenizer& a, const Tokenizer& b) {
  const std::map<std::string, int64_t> theirs = ids_by_text(b);
  std::vector<std::pair<int64_t, int64_t>> same;
  for (const auto& [text, id] : ids_by_text(a))
    if (const auto found = theirs.find(text); found != theirs.end() && id >= 0 && found->second >= 0) same.emplace_back(id, found->second);
  return same;
}

std::vector<EncodedPart> encode(const Tokenizer& tokenizer, std::span<const Passage> passages) {
  std::vector<PassagePart> parts;
  for (size_t i = 0; i < passages.size(); ++i) append_parts(tokenizer, passages[i], i, parts);
  std::vector<EncodedPart> encoded;
  const int64_t first = tokenizer.marks().first;
  for (const PassagePart& part : parts) {
    encoded.push_back({part.passage, part.is_first, {}});
    if (first >= 0 && part.is_first && passages[part.passage].starts) encoded.back().ids.push_back(first);
  }
  const auto count = static_cast<int64_t>(parts.size());
  parallel_for_first_error(count, count > kFewParts ? kGrainOfMany : 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      append_ids(tokenizer, parts[i], passages[parts[i].passage].place, encoded[i].ids);
  });
  return encoded;
}

}  // namespace ricci
