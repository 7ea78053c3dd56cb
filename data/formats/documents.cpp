#include "data/formats/documents.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "data/text/utf8.h"

namespace ricci {
namespace {

std::string find_separator(const DocumentOptions& options) {
  if (options.documents == "file") return "";
  if (options.documents == "line") return "\n";
  return options.documents == "blank_line" ? "\n\n" : options.documents;
}

}  // namespace

DocumentReader::DocumentReader(const Documents& documents, CompletePrefix complete_prefix, const InputPlace& from)
    : documents_(documents),
      complete_prefix_(std::move(complete_prefix)),
      from_(from),
      stream_(documents.files, documents.cut > 0 ? 0 : from.input),  // a cut counts the characters of all files
      format_(traits_of(documents.options.format)),
      separator_(find_separator(documents.options)) {
  check(documents.options);
}

bool DocumentReader::next(DocumentPiece& piece) {
  while (next_anywhere(piece)) {
    if (piece.after_cut && documents_.stops_at_cut) return false;
    if (piece.starts && has_tokens(piece) && ++started_ > documents_.limit) return false;
    if (piece.end > from_) return true;
  }
  return false;
}

// The next piece of the open member, or of the next member that has a piece.
bool DocumentReader::next_anywhere(DocumentPiece& piece) {
  for (;;) {
    if (!in_member_ && !start_member()) return false;
    if (format_.is_text() ? next_text(piece) : next_record(piece)) return true;
    in_member_ = false;
  }
}

bool DocumentReader::start_member() {
  if (!std::exchange(has_next_, false) && !stream_.next_member()) {
    if (characters_left_ > 0)
      fail("data: {} ends at character {}, but it is cut at character {}",
          {documents_.files.name(), documents_.cut - characters_left_, documents_.cut});
    return false;
  }
  if (stream_.file() != at_.input) at_ = {.input = stream_.file()};
  name_ = stream_.name();
  after_cut_ |= documents_.cut > 0 && characters_left_ == 0;
  cut_byte_ = line_ = 0;
  in_member_ = true;
  member_ended_ = false;
  header_.clear();
  text_.clear();
  used_ = searched_ = 0;
  return true;
}

void DocumentReader::read_more() {
  if (cut_at_) *cut_at_ -= used_;
  text_.erase(0, std::exchange(used_, 0));
  const std::string_view block = stream_.next();
  member_ended_ = block.empty();
  if (is_paragraphs_) append_paragraphs(block);
  else append(block);
  if (!member_ended_) return;
  // The last line and the last paragraph must not depend on whether the file ends with a line end.
  if (is_paragraphs_) text_.erase(text_.find_last_not_of('\n') + 1);
  if (ends_lines_) has_next_ = stream_.next_member();
  if ((keeps_separator_ || has_next_) && !text_.empty() && !text_.ends_with('\n')) append("\n");
}

// Appends to text_, and notes the place of the cut.
void DocumentReader::append(std::string_view block) {
  const int64_t characters = documents_.cut > 0 && !after_cut_ && !cut_at_ ? count_characters(block) : 0;
  if (characters > characters_left_) {
    size_t bytes = 0;
    for (int64_t seen = -1; seen < characters_left_; ++bytes) seen += count_characters(block.substr(bytes, 1));
    cut_at_ = text_.size() + bytes - 1;
  }
  characters_left_ -= std::min(characters, characters_left_);
  text_ += block;
}

// Appends to text_, but of a line of white space only its end: it separates paragraphs as an empty line does.
void DocumentReader::append_paragraphs(std::string_view block) {
  constexpr std::string_view kBlanks = " \t\v\f\r";
  for (const char c : block) {
    if (starts_line_ && kBlanks.find(c) != kBlanks.npos && blanks_.size() < kPiece) {
      blanks_ += c;
      continue;
    }
    if (c != '\n') text_ += blanks_;
    blanks_.clear();
    text_ += c;
    starts_line_ = c == '\n';
  }
  if (block.empty()) blanks_.clear();
  starts_line_ |= block.empty();
}

// Takes a piece from the front of the document; whole: this is the rest of it. Returns the number of bytes taken.
size_t DocumentReader::cut_piece(DocumentPiece& piece, std::string_view document, bool whole) {
  piece.starts = at_.byte == 0;
  piece.ends = whole && (document.size() <= kPiece || format_.has_mask());
  piece.after_cut = after_cut_;
  piece.first_byte = cut_byte_ + at_.byte;
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

// The first separator from searched_ on that is not between two quotes.
size_t DocumentReader::find_end(std::string_view rest, std::string_view separator) {
  for (;;) {
    const size_t found = rest.find(separator, searched_);
    if (!format_.quote) return found;
    const std::string_view before = rest.substr(searched_, found - searched_);
    in_quotes_ ^= std::count(before.begin(), before.end(), format_.quote) % 2 == 1;
    if (found == rest.npos || !in_quotes_) return found;
    searched_ = found + 1;
  }
}

// The text up to the next separator or the cut, and true; or the rest of the member, or more than `most` bytes, and false.
std::pair<std::string_view, bool> DocumentReader::next_part(std::string_view separator, size_t most) {
  for (;;) {
    if (is_paragraphs_ && at_.byte == 0) used_ = std::min(text_.find_first_not_of('\n', used_), text_.size());
    const std::string_view rest = std::string_view(text_).substr(used_);
    size_t found = separator.empty() ? rest.npos : find_end(rest, separator);
    if (cut_at_) found = *cut_at_ - used_;
    if (found != rest.npos || member_ended_ || rest.size() > most) {
      searched_ = 0;
      in_quotes_ = false;
      return {rest.substr(0, found), found != rest.npos};
    }
    searched_ = rest.size() - std::min(rest.size(), std::max<size_t>(separator.size(), 1) - 1);
    read_more();
  }
}

std::string DocumentReader::place_of_text() const {
  const std::string place = name_ + (separator_.empty() ? "" : format_message(": document {}", {at_.document + 1}));
  if (documents_.cut == 0) return place;
  return place + (after_cut_ ? " (validation)" : " (train)");
}

bool DocumentReader::next_text(DocumentPiece& piece) {
  for (;;) {
    const auto [part, ends_here] = next_part(separator_, kPiece + separator_.size());
    if (part.empty() && !ends_here) return false;
    const size_t kept = keeps_separator_ && ends_here ? separator_.size() : 0;
    piece.place = place_of_text();
    piece.label = -1;
    used_ += cut_piece(piece, std::string_view(text_).substr(used_, part.size() + kept), ends_here || member_ended_);
    if (piece.ends && cut_at_) {
      cut_byte_ = piece.first_byte + std::ssize(piece.text);
      cut_at_.reset();
      after_cut_ = true;
    } else if (piece.ends && ends_here && !keeps_separator_) {
      used_ += separator_.size();
    }
    if (!piece.text.empty() || separator_ == "\n") return true;  // an empty line is a document; nothing between two separators is not
  }
}

bool DocumentReader::next_line() {
  for (;;) {
    const auto [line, has_end] = next_part("\n", kMaxLine);
    if (line.empty() && !has_end) return false;
    record_place_ = format_message("{}:{}", {stream_.name(), line_ + 1});
    line_ += 1 + std::count(line.begin(), line.end(), '\n');
    if (line.size() > kMaxLine)
      fail("{}: a line of more than {} bytes{}", {record_place_, kMaxLine, format_.quote ? ", or a quote that is not closed" : ""});
    used_ += line.size() + (has_end ? 1 : 0);
    if (line.find_first_not_of(" \t") == line.npos) continue;
    const DocumentOptions& options = documents_.options;
    const Line record{line, header_, record_place_};
    const bool is_header = format_.read_header && header_.empty();
    try {
      if (is_header) header_ = format_.read_header(record);
      else record_ = format_.read ? format_.read(record, options) : Record{std::string(line)};
    } catch (const Error& error) {
      if (options.chosen_by.empty() || format_of_name(stream_.name()) == options.format) throw;
      fail("{} (format {} because of {})", {error.what(), format_.name, options.chosen_by});
    }
    if (!is_header) return true;
  }
}

bool DocumentReader::next_record(DocumentPiece& piece) {
  if (at_.byte == 0 && !next_line()) return false;
  piece.place = record_place_;
  piece.label = record_.label;
  cut_piece(piece, std::string_view(record_.text).substr(static_cast<size_t>(at_.byte)), true);
  return true;
}

std::string note_on_json(const TextSource& files) {
  constexpr int64_t kFiles = 16;
  for (int64_t i = 0; i < std::min(kFiles, std::ssize(files.files())); ++i) {
    TextStream stream(files, i);
    const std::string_view text = stream.next_member() ? stream.next() : "", line = text.substr(0, text.find('\n'));
    const size_t first = text.find_first_not_of(" \t\n"), next = text.find_first_not_of(" \t\n", first + 1);
    if (next == text.npos) continue;
    const bool is_array = text[first] == '[' && text[next] == '{',
               is_object = text[first] == '{' && text[next] == '"' && (line.ends_with('}') || line.size() == text.size());
    const std::string advice = is_array ? ", as jq -c '.[]' " + stream.name() + " writes them" : "";
    if (is_array || is_object)
      return format_message("{}: is read as a text, but begins with a JSON {}; format jsonl reads an object per line{}",
          {stream.name(), is_array ? "array" : "object", advice});
  }
  return "";
}

void for_each_text(
    const Documents& documents, const CompletePrefix& complete_prefix, const std::function<void(const DocumentPiece&)>& use) {
  const FormatTraits& format = traits_of(documents.options.format);
  DocumentReader reader(documents, complete_prefix);
  for (DocumentPiece piece; reader.next(piece);) {
    if (!format.texts && !piece.text.empty()) use(piece);
    if (!format.texts) continue;
    for (const std::string& text : about(piece.place, [&] { return format.texts(piece.text); }))
      if (!text.empty()) use({.text = text, .starts = true, .ends = true, .place = piece.place});
  }
}

void cut_text(Documents& text, double train_fraction, int64_t characters) {
  text.cut = static_cast<int64_t>(std::floor(static_cast<double>(characters) * train_fraction));
  if (text.cut < 1 || text.cut >= characters)
    fail("split: {} has {} characters, too few for a training fraction of {}", {text.files.name(), characters, train_fraction});
}

void cut_text(Documents& text, double train_fraction) {
  int64_t characters = 0;
  DocumentReader reader(text, complete_utf8_prefix);
  for (DocumentPiece piece; reader.next(piece);) characters += count_characters(piece.text);
  cut_text(text, train_fraction, characters);
}

Documents training_part(Documents& documents, double train_fraction) {
  if (documents.is_text() && documents.cut == 0) cut_text(documents, train_fraction);
  Documents part = documents;
  part.stops_at_cut = documents.is_text();
  if (documents.is_text()) return part;
  int64_t all = 0;
  DocumentReader reader(documents, complete_utf8_prefix);
  for (DocumentPiece piece; reader.next(piece);) all += piece.starts && reader.has_tokens(piece);
  part.limit = static_cast<int64_t>(std::floor(static_cast<double>(all) * train_fraction));
  return part;
}

TextSize size_of_text(const Documents& documents, int64_t from_byte, bool has_line_ends) {
  const auto is_blank = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };  // in ASCII, whatever the locale
  TextSize size;
  bool in_word = false;
  DocumentReader reader(documents, complete_utf8_prefix);
  for (DocumentPiece piece; reader.next(piece);) {
    const auto before = std::min(from_byte, std::ssize(piece.text));
    from_byte -= before;
    size.bytes += std::ssize(piece.text) - before;
    for (const char c : std::string_view(piece.text).substr(static_cast<size_t>(before))) {
      const bool blank = is_blank(c);
      size.words += (has_line_ends && c == '\n') + (!blank && !in_word);
      in_word = !blank;
    }
  }
  return size;
}

// Labels are read as if they were the texts of the documents.
std::vector<std::string> word_labels(const Documents& documents) {
  const DocumentOptions& options = documents.options;
  check(options);  // its errors name the keys that the user gave
  DocumentReader reader(
      {.files = documents.files, .options = {.format = options.format, .text_field = options.label_field}}, complete_utf8_prefix);
  std::set<std::string> found;
  int64_t number = 0;
  try {
    for (DocumentPiece piece; reader.next(piece);) {
      if (found.empty() && is_integer(piece.text, number)) return {};
      if (!piece.text.empty()) found.insert(piece.text);
    }
  } catch (const Error&) {
  }
  for (const std::string& label : found) check_utf8("labels", label, 0);  // others could not be written into a run file
  return {found.begin(), found.end()};
}

}  // namespace ricci
