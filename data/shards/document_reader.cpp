#include "data/shards/document_reader.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "data/text/utf8.h"
#include "data/tokenizers/chat.h"

namespace ricci {
namespace {

std::string separator_of(const DocumentOptions& options) {
  if (options.documents == "file") return "";
  if (options.documents == "line") return "\n";
  return options.documents == "blank_line" ? "\n\n" : options.documents;
}

}  // namespace

DocumentReader::DocumentReader(
    const TextSource& files, const DocumentOptions& options, CompletePrefix complete_prefix, const InputPlace& from)
    : files_(files),
      options_(options),
      complete_prefix_(std::move(complete_prefix)),
      from_(from),
      at_{.input = from.input},
      separator_(separator_of(options)),
      keeps_separator_(options.documents == "line" && options.keep_line_ends),
      is_paragraphs_(options.documents == "blank_line") {
  check(options);
  for (size_t i = 0; i < std::min(static_cast<size_t>(from.input), files.files().size()); ++i) closed_ += files.files()[i].bytes;
}

int64_t DocumentReader::bytes_of_files() const { return closed_ + (members_ ? members_->bytes_of_file() : 0); }

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
    const auto input = static_cast<size_t>(at_.input);
    if (!members_) {
      if (input >= files_.files().size()) return false;
      members_ = std::make_unique<MemberStream>(files_.files()[input], files_.encoding());
    }
    if (!in_member_ && !members_->next_member()) {
      closed_ += files_.files()[input].bytes;
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
    }
    if (traits_of(options_.format).is_text() ? next_text(piece) : next_record(piece)) return true;
    in_member_ = false;
  }
}

void DocumentReader::read_more() {
  text_.erase(0, std::exchange(used_, 0));
  const std::string_view block = members_->next();
  member_ended_ = block.empty();
  text_ += block;
  // The last line and the last paragraph are as those before them, whether the file ends with a line end or not.
  if (member_ended_ && is_paragraphs_) text_.erase(text_.find_last_not_of('\n') + 1);
  if (member_ended_ && keeps_separator_ && !text_.empty() && !text_.ends_with('\n')) text_ += '\n';
}

// Takes a piece from the front of what is known of the document; `whole`: that is all of it. A unit of the tokenizer that is longer
// than a piece is divided between two characters.
size_t DocumentReader::cut_piece(DocumentPiece& piece, std::string_view document, bool whole) {
  piece.starts = at_.byte == 0;
  piece.ends = whole && (document.size() <= kPiece || traits_of(options_.format).is_conversations);
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

// The text up to the next separator, and whether it is there; else all that is left of the member, or more than `most` bytes.
std::pair<std::string_view, bool> DocumentReader::next_part(std::string_view separator, size_t most) {
  for (;;) {
    if (is_paragraphs_ && at_.byte == 0) used_ = std::min(text_.find_first_not_of('\n', used_), text_.size());
    const std::string_view rest = std::string_view(text_).substr(used_);
    const size_t found = separator.empty() ? rest.npos : rest.find(separator, searched_);
    if (found != rest.npos || member_ended_ || rest.size() > most) {
      searched_ = 0;
      return {rest.substr(0, found), found != rest.npos};
    }
    searched_ = rest.size() - std::min(rest.size(), std::max<size_t>(separator.size(), 1) - 1);
    read_more();
  }
}

bool DocumentReader::next_text(DocumentPiece& piece) {
  for (;;) {
    const auto [part, ends_here] = next_part(separator_, kPiece + separator_.size());
    if (part.empty() && !ends_here) return false;
    const size_t kept = keeps_separator_ && ends_here ? separator_.size() : 0;
    piece.place = separator_.empty() ? members_->name() : members_->name() + format_message(": document {}", {at_.document + 1});
    piece.label = -1;
    used_ += cut_piece(piece, std::string_view(text_).substr(used_, part.size() + kept), ends_here || member_ended_);
    if (piece.ends && ends_here && !keeps_separator_) used_ += separator_.size();
    if (!piece.text.empty() || separator_ == "\n") return true;  // between two separators may be nothing, but a line may be empty
  }
}

bool DocumentReader::next_line() {
  for (;;) {
    const auto [line, has_end] = next_part("\n", kMaxLine);
    if (line.empty() && !has_end) return false;
    ++line_;
    if (line.size() > kMaxLine) fail("{}:{}: a line of more than {} bytes", {members_->name(), line_, kMaxLine});
    used_ += line.size() + (has_end ? 1 : 0);
    if (line.find_first_not_of(" \t") == line.npos) continue;
    record_place_ = format_message("{}:{}", {members_->name(), line_});
    record_ = traits_of(options_.format).read(line, options_, record_place_);
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

namespace {

void use_messages(const DocumentPiece& line, const Texts::Use& use) {
  try {
    for (const Message& message : messages_of(line.text)) {
      use(name_of(message.role), 0, line.place);  // templates write it
      use(message.content, 0, line.place);
    }
  } catch (const Error& error) {
    fail("{}: {}", {line.place, error.what()});
  }
}

}  // namespace

Texts documents_of(const TextSource& files, const DocumentOptions& options, int64_t most) {
  return Texts([=](const TextPieces::CompletePrefix& complete_prefix, const Texts::Use& use) {
    DocumentReader reader(files, options, complete_prefix);
    int64_t left = most;
    for (DocumentPiece piece; reader.next(piece);) {
      if (piece.starts && left-- == 0) return;
      if (traits_of(options.format).is_conversations) use_messages(piece, use);
      else use(piece.text, piece.first_byte, piece.place);
    }
  });
}

// A label is read as the text of its document.
std::vector<std::string> word_labels(const TextSource& files, const DocumentOptions& options) {
  const DocumentOptions labels{.format = options.format, .text_field = options.label_field};
  DocumentReader reader(files, labels, complete_utf8_prefix);
  std::set<std::string> found;
  int64_t number = 0;
  try {
    for (DocumentPiece piece; reader.next(piece);) {
      if (found.empty() && is_integer(piece.text, number)) return {};
      if (!piece.text.empty()) found.insert(piece.text);
    }
  } catch (const Error&) {
  }
  return {found.begin(), found.end()};
}

}  // namespace ricci
