#include "data/text/text_stream.h"

#include <algorithm>

#include "core/error.h"
#include "data/text/utf8.h"

namespace ricci {

std::string_view TextStream::read_block() {
  for (; file_ < source_.files_.size(); ++file_) {
    if (!open_) open_ = std::make_unique<MemberStream>(source_.files_[file_]);
    while (in_member_ || open_->next_member()) {
      const std::string_view block = open_->next();
      in_member_ = !block.empty();
      if (in_member_) return block;
    }
    open_.reset();
    closed_ += source_.files_[file_].bytes;
  }
  return {};
}

// Bytes of the block in front of the first byte of this character of the text; all of the block where it is not in it.
size_t TextStream::bytes_up_to(int64_t character) {
  const int64_t here = count_characters(block_), wanted = character - characters_;
  characters_ += std::min(here, wanted);
  if (here <= wanted) return block_.size();
  size_t bytes = 0;
  for (int64_t seen = -1; seen < wanted; ++bytes) seen += count_characters(block_.substr(bytes, 1));
  return bytes - 1;
}

std::string_view TextStream::next() {
  for (;;) {
    if (block_.empty()) block_ = read_block();
    if (block_.empty() && source_.end_ != INT64_MAX && characters_ < source_.end_)
      fail("data: {} ends at character {}, but this part of it ends at character {}", {source_.name(), characters_, source_.end_});
    if (block_.empty()) return {};
    const bool in_part = entered_;
    const int64_t border = in_part ? source_.end_ : source_.first_;
    const size_t bytes = border == INT64_MAX ? block_.size() : bytes_up_to(border);
    entered_ |= bytes < block_.size();
    const std::string_view taken = block_.substr(0, bytes);
    if (in_part && taken.empty()) return {};
    block_.remove_prefix(bytes);
    offset_ = std::exchange(passed_, passed_ + static_cast<int64_t>(bytes));
    if (in_part) return taken;
  }
}

// The last byte that is known waits: it may be the last of the text, and a text ends with a piece.
std::optional<TextPieces::Piece> TextPieces::next() {
  if (ended_) return {};
  held_.erase(0, used_);
  offset_ += static_cast<int64_t>(std::exchange(used_, 0));
  size_t wanted = 0;  // bytes that are known before the question is asked again: a long unit is looked at few times
  for (std::string_view block; !(block = stream_.next()).empty();) {
    if (held_.empty()) offset_ = stream_.offset();
    held_ += block;
    if (held_.size() < std::max<size_t>(wanted, 2)) continue;
    used_ = complete_prefix_(std::string_view(held_).substr(0, held_.size() - 1));
    if (used_ > 0) return Piece{std::string_view(held_).substr(0, used_), offset_, false};
    wanted = 2 * held_.size();
  }
  ended_ = true;
  used_ = held_.size();
  return Piece{held_, offset_, true};
}

void TextPieces::read_rest() {
  stream_.read_rest();
  ended_ = false;
}

void for_each_piece(const TextSource& source, const TextPieces::CompletePrefix& complete_prefix,
    const std::function<void(std::string_view, int64_t)>& use) {
  TextPieces pieces(source, complete_prefix);
  while (const auto piece = pieces.next())
    if (!piece->text.empty()) use(piece->text, piece->offset);
}

namespace {

// The blanks of ASCII, whatever the locale.
bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

TextSize size_of_text(const TextSource& text) {
  TextSize size;
  TextStream stream(text);
  bool in_word = false;
  for (std::string_view block; !(block = stream.next()).empty();) {
    size.bytes += static_cast<int64_t>(block.size());
    for (const char c : block) {
      const bool blank = is_blank(c);
      size.words += (c == '\n') + (!blank && !in_word);
      in_word = !blank;
    }
  }
  return size;
}

}  // namespace ricci
