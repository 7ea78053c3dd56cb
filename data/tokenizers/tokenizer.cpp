#include "data/tokenizers/tokenizer.h"

#include <map>
#include <utility>

#include "core/cpu/parallel.h"
#include "core/error.h"
#include "core/files/checksum.h"
#include "data/formats/documents.h"
#include "data/text/utf8.h"
#include "data/tokenizers/piece_tokenizer.h"

namespace ricci {

std::vector<int64_t> Tokenizer::encode(std::string_view text) const {
  const DocumentPiece whole{.text = std::string(text)};
  return std::move(ricci::encode(*this, {&whole, 1})[0]);
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

uint64_t Tokenizer::hash() const { return hash_bytes(to_json()); }

// ---- <eos>

void Tokenizer::set_eos(Eos after, const std::string& piece) {
  if (after == Eos::none) fail("eos: 'none', expected 'line' or 'document'");
  if (eos_ != Eos::none)
    fail("{} tokenizer: already adds '{}' after every {}; it cannot add a second end token", {name(), one_line(eos_piece_), name_of(eos_)});
  eos_id_ = find(piece);
  if (eos_id_ < 0) fail("{} tokenizer: the vocabulary has no token '{}' to put after every {}", {name(), one_line(piece), name_of(after)});
  eos_ = after;
  eos_piece_ = piece;
}

Marks Tokenizer::marks() const {
  Marks marks = model_marks();
  std::erase(marks.ends, eos_id_);
  if (eos_ == Eos::document) marks.ends.insert(marks.ends.begin(), eos_id_);
  return marks;
}

Json Tokenizer::with_eos(Json model) const {
  if (eos_ == Eos::none) return model;
  return {{"name", "eos"}, {"behind", name_of(eos_)}, {"piece", eos_piece_}, {"tokenizer", std::move(model)}};
}

void Tokenizer::append_ids(std::string_view piece, int64_t offset, std::vector<int64_t>& ids, bool starts) const {
  size_t from = 0;
  while (eos_ == Eos::line) {
    const size_t end = piece.find('\n', from);
    if (end == piece.npos) break;
    append_model_ids(piece.substr(from, end - from), offset + static_cast<int64_t>(from), starts || from > 0, ids);
    ids.push_back(eos_id_);
    from = end + 1;
  }
  append_model_ids(piece.substr(from), offset + static_cast<int64_t>(from), starts || from > 0, ids);
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
  for (const char* piece : {"<|endoftext|>", "<|end_of_text|>", kEos, "</s>"})  // usual names in vocabularies
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

std::vector<std::pair<int64_t, int64_t>> match_tokens(const Tokenizer& a, const Tokenizer& b) {
  std::map<std::string, std::array<std::vector<int64_t>, 2>> ids_by_text;
  for (const auto& [side, tokenizer] : {std::pair{0, &a}, {1, &b}})
    for (int64_t id = 0; id < tokenizer->vocab_size(); ++id) ids_by_text[tokenizer->decode({&id, 1})][side].push_back(id);
  std::vector<std::pair<int64_t, int64_t>> same;
  for (const auto& [text, ids] : ids_by_text)
    if (ids[0].size() == 1 && ids[1].size() == 1) same.emplace_back(ids[0][0], ids[1][0]);
  return same;
}

// ---- Many texts together
namespace {

constexpr size_t kPart = 32 << 10;                      // bytes that one thread encodes at a time
constexpr int64_t kFewParts = 1024, kGrainOfMany = 16;  // with many parts, most are short

struct Part {
  size_t piece;  // index
  std::string_view text;
  bool is_first, is_last;  // in its piece
  std::vector<int64_t> ids = {};
};

// Divides the piece into parts of about kPart bytes.
void append_parts(const Tokenizer& tokenizer, std::string_view text, size_t piece, std::vector<Part>& parts) {
  std::string_view rest = text;
  for (size_t wanted = kPart; rest.size() > wanted;) {
    const size_t complete = tokenizer.complete_prefix(rest.substr(0, wanted));
    if (complete > 0) parts.push_back({piece, rest.substr(0, complete), rest.size() == text.size(), false});
    rest.remove_prefix(complete);
    wanted = complete > 0 ? kPart : 2 * wanted;  // a unit of the text can be longer than a part
  }
  parts.push_back({piece, rest, rest.size() == text.size(), true});
}

// Encodes a part. `first` is Marks::first.
void encode_part(const Tokenizer& tokenizer, const DocumentPiece& piece, int64_t first, Part& part) {
  part.ids.reserve(part.text.size() / 3);
  if (piece.starts && part.is_first && first >= 0) part.ids.push_back(first);
  try {
    const bool starts = part.is_first && (piece.starts || piece.first_byte == 0);
    tokenizer.append_ids(part.text, piece.first_byte + (part.text.data() - piece.text.data()), part.ids, starts);
    if (piece.ends && part.is_last) tokenizer.append_end(part.text, part.ids);
  } catch (const Error& error) {
    if (piece.place.empty()) throw;
    fail("{}: {}", {piece.place, error.what()});
  }
}

}  // namespace

std::vector<std::vector<int64_t>> encode(const Tokenizer& tokenizer, std::span<const DocumentPiece> pieces) {
  std::vector<Part> parts;
  for (size_t piece = 0; piece < pieces.size(); ++piece) append_parts(tokenizer, pieces[piece].text, piece, parts);
  const int64_t first = tokenizer.marks().first, count = std::ssize(parts);
  parallel_for(count, count > kFewParts ? kGrainOfMany : 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      encode_part(tokenizer, pieces[parts[i].piece], first, parts[i]);
  });
  std::vector<std::vector<int64_t>> encoded(pieces.size());
  for (Part& part : parts) {
    std::vector<int64_t>& ids = encoded[part.piece];
    if (part.is_first) ids = std::move(part.ids);
    else ids.insert(ids.end(), part.ids.begin(), part.ids.end());
  }
  return encoded;
}

}  // namespace ricci
