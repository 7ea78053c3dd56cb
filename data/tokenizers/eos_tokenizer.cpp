#include "data/tokenizers/eos_tokenizer.h"

#include <algorithm>

#include "core/error.h"
#include "core/json/value.h"
#include "data/tokenizers/piece_tokenizer.h"

namespace ricci {
namespace {

// The end of a text, as vocabularies write it.
constexpr const char* kEndOfText[] = {"<|endoftext|>", "<|end_of_text|>", kEos, "</s>"};

const EosTokenizer* as_eos(const Tokenizer& tokenizer) { return dynamic_cast<const EosTokenizer*>(&tokenizer); }

}  // namespace

EosTokenizer::EosTokenizer(std::shared_ptr<const Tokenizer> tokenizer, Eos after, std::string piece)
    : tokenizer_(std::move(tokenizer)), after_(after), piece_(std::move(piece)), id_(tokenizer_->find(piece_)) {
  if (id_ < 0) fail("{} tokenizer: its vocabulary has no piece '{}' to put after every {}", {name(), one_line(piece_), name_of(after_)});
  if (after_ == Eos::none) fail("eos: expected line or document, got none");
}

Marks EosTokenizer::marks() const {
  Marks marks = tokenizer_->marks();
  std::erase(marks.ends, id_);
  if (after_ == Eos::document) marks.ends.insert(marks.ends.begin(), id_);
  return marks;
}

std::string EosTokenizer::json_with(const std::string& tokenizer) const {
  return R"({"name":"eos","behind":")" + std::string(name_of(after_)) + R"(","piece":)" + quoted_json(piece_) + R"(,"tokenizer":)" +
         tokenizer + "}";
}

void EosTokenizer::append_ids(std::string_view piece, int64_t offset, std::vector<int64_t>& ids) const {
  size_t from = 0;
  while (after_ == Eos::line) {
    const size_t end = piece.find('\n', from);
    if (end == piece.npos) break;
    tokenizer_->append_ids(piece.substr(from, end - from), offset + static_cast<int64_t>(from), ids);
    ids.push_back(id_);
    from = end + 1;
  }
  tokenizer_->append_ids(piece.substr(from), offset + static_cast<int64_t>(from), ids);
}

size_t EosTokenizer::complete_prefix(std::string_view text) const {
  const size_t line_end = after_ == Eos::line ? text.rfind('\n') : text.npos;
  return line_end == text.npos ? tokenizer_->complete_prefix(text) : line_end + 1;
}

void EosTokenizer::append_end(std::string_view last, std::vector<int64_t>& ids) const {
  const bool open_line = !last.empty() && last.back() != '\n';
  if (after_ == Eos::document || open_line) ids.push_back(id_);
}

void EosTokenizer::append_text(int64_t id, DecodeState& state, std::string& text) const {
  if (id != id_ || after_ == Eos::document) return tokenizer_->append_text(id, state, text);
  text += '\n';
  state.at_start = true;
}

Eos eos_of(const Tokenizer& tokenizer) {
  const EosTokenizer* const eos = as_eos(tokenizer);
  return eos ? eos->after() : Eos::none;
}

std::string end_of_text(const Tokenizer& tokenizer) {
  if (const EosTokenizer* const eos = as_eos(tokenizer)) return eos->after() == Eos::document ? eos->piece() : "";
  const auto* const pieces = dynamic_cast<const PieceTokenizer*>(&tokenizer);
  const std::vector<int64_t> ends = tokenizer.marks().ends;
  if (pieces && !ends.empty()) return std::string(pieces->vocabulary().piece(ends[0]));
  for (const char* piece : kEndOfText)
    if (tokenizer.find(piece) >= 0) return piece;
  return "";
}

std::shared_ptr<const Tokenizer> with_eos(std::shared_ptr<const Tokenizer> tokenizer, Eos after, std::string piece) {
  const EosTokenizer* const eos = as_eos(*tokenizer);
  const bool has_it = eos && eos->after() == after && (piece.empty() || eos->piece() == piece);
  if (after == Eos::none || has_it) return tokenizer;
  if (piece.empty() && after == Eos::document) piece = end_of_text(*tokenizer);
  if (piece.empty()) piece = kEos;
  if (tokenizer->find(piece) < 0) tokenizer = with_added_piece(*tokenizer, piece);
  return std::make_shared<EosTokenizer>(std::move(tokenizer), after, piece);
}

std::shared_ptr<const Tokenizer> with_own_eos(std::shared_ptr<const Tokenizer> tokenizer) {
  const bool can = eos_of(*tokenizer) == Eos::none && !end_of_text(*tokenizer).empty();
  return can ? with_eos(std::move(tokenizer), Eos::document) : tokenizer;
}

const Tokenizer& without_document_ends(const Tokenizer& tokenizer) {
  return eos_of(tokenizer) == Eos::document ? as_eos(tokenizer)->without_eos() : tokenizer;
}

}  // namespace ricci
