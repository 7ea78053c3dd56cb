#include "data/shards/document_reader.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "data/tokenizers/utf8.h"

namespace ricci {
namespace {

std::string separator_of(const DocumentOptions& options) {
  if (options.documents == "file") return "";
  if (options.documents == "line") return "\n";
  return options.documents == "blank_line" ? "\n\n" : options.documents;
}

}  // namespace

DocumentReader::DocumentReader(
    std::vector<TextSource> files, const DocumentOptions& options, CompletePrefix complete_prefix, const InputPlace& from)
    : files_(std::move(files)),
      options_(options),
      complete_prefix_(std::move(complete_prefix)),
      from_(from),
      at_{.input = from.input},
      separator_(separator_of(options)),
      keeps_separator_(options.documents == "line" && options.keep_line_ends) {
  check(options);
  for (int64_t i = 0; i < std::min(from.input, static_cast<int64_t>(files_.size())); ++i)
    closed_ += files_[static_cast<size_t>(i)].bytes_on_disk();
}

int64_t DocumentReader::bytes_of_files() const { return closed_ + (members_ ? members_->bytes_of_files() : 0); }

bool DocumentReader::next(DocumentPiece& piece) {
  while (next_anywhere(piece)) {
    const InputPlace& end = piece.end;
    if (end.input > from_.input || std::tie(end.document, end.byte) > std::tie(from_.document, from_.byte)) return true;
  }
  return false;
}

// A piece of the member that is open, or else of the next that has one.
bool DocumentReader::next_anywhere(DocumentPiece& piece) {
  for (;;) {
    if (!members_) {
      if (at_.input >= static_cast<int64_t>(files_.size())) return false;
      members_ = std::make_unique<MemberStream>(files_[static_cast<size_t>(at_.input)]);
    }
    if (!in_member_ && !members_->next_member()) {
      closed_ += files_[static_cast<size_t>(at_.input)].bytes_on_disk();
      members_.reset();
      at_ = {.input = at_.input + 1};
      continue;
    }
    if (!in_member_) {
      in_member_ = true;
      member_ended_ = false;
      line_ = 0;
      text_.clear();
      used_ = searched_ = 0;
      decoder_ = std::make_unique<TextDecoder>(options_.encoding);
    }
    if (options_.format == DocumentFormat::text ? next_text(piece) : next_record(piece)) return true;
    in_member_ = false;
  }
}

void DocumentReader::read_more() {
  text_.erase(0, std::exchange(used_, 0));
  const std::string_view block = members_->next();
  member_ended_ = block.empty();
  if (member_ended_) decoder_->finish(members_->name());
  else decoder_->append(block, members_->name(), text_);
}

// Takes a piece from the front of what is known of the document; `whole`: that is all of it. A unit of the tokenizer that is longer
// than a piece is divided between two characters.
size_t DocumentReader::cut_piece(DocumentPiece& piece, std::string_view document, bool whole) {
  piece.starts = at_.byte == 0;
  piece.ends = whole && document.size() <= kPiece;
  piece.first_byte = at_.byte;
  size_t taken = document.size();
  if (!piece.ends) {
    const std::string_view front = document.substr(0, kPiece);
    taken = complete_prefix_(front);
    if (taken == 0) taken = complete_utf8_prefix(front);
  }
  piece.text = document.substr(0, taken);
  at_.byte += static_cast<int64_t>(taken);
  if (piece.ends) at_ = {.input = at_.input, .document = at_.document + 1};
  piece.end = at_;
  return taken;
}

bool DocumentReader::next_text(DocumentPiece& piece) {
  for (;;) {
    const std::string_view rest = std::string_view(text_).substr(used_);
    const size_t found = separator_.empty() ? rest.npos : rest.find(separator_, searched_);
    const bool ends_here = found != rest.npos;
    if (!ends_here && !member_ended_ && rest.size() <= kPiece + separator_.size()) {
      searched_ = rest.size() - std::min(rest.size(), std::max<size_t>(separator_.size(), 1) - 1);
      read_more();
      continue;
    }
    if (rest.empty()) return false;
    const size_t kept = keeps_separator_ ? separator_.size() : 0;
    const std::string_view document = rest.substr(0, ends_here ? found + kept : rest.size());
    piece.place = separator_.empty() ? members_->name() : members_->name() + format_message(": document {}", {at_.document + 1});
    piece.label = -1;
    used_ += cut_piece(piece, document, ends_here || member_ended_);
    searched_ = 0;
    if (piece.ends && ends_here && !keeps_separator_) used_ += separator_.size();
    if (!piece.text.empty() || separator_ == "\n") return true;  // between two empty lines is nothing, but a line may be empty
  }
}

bool DocumentReader::next_line() {
  for (;;) {
    const std::string_view rest = std::string_view(text_).substr(used_);
    const size_t found = rest.find('\n', searched_);
    if (found == rest.npos && !member_ended_) {
      if (rest.size() > kMaxLine) fail("{}:{}: a line of more than {} bytes", {members_->name(), line_ + 1, kMaxLine});
      searched_ = rest.size();
      read_more();
      continue;
    }
    if (rest.empty()) return false;
    std::string_view line = rest.substr(0, found);
    used_ += found == rest.npos ? rest.size() : found + 1;
    searched_ = 0;
    ++line_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == line.npos) continue;
    record_place_ = format_message("{}:{}", {members_->name(), line_});
    record_ = options_.format == DocumentFormat::jsonl ? record_of_json(line, options_, record_place_)
                                                       : record_of_tsv(line, options_, record_place_);
    return true;
  }
}

bool DocumentReader::next_record(DocumentPiece& piece) {
  if (at_.byte == 0 && !next_line()) return false;
  piece.place = record_place_;
  piece.label = record_.label;
  cut_piece(piece, std::string_view(record_.text).substr(static_cast<size_t>(at_.byte)), true);
  return true;
}

}  // namespace ricci
