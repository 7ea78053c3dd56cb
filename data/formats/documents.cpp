#include "data/formats/documents.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/json.h"
#include "data/text/utf8.h"
#include "data/tokenizers/unicode.h"

namespace ricci {
namespace {

// Thrown for a record that its format cannot read.
struct RecordError : Error {
  using Error::Error;
};

std::string find_separator(const DocumentOptions& options) {
  if (!traits_of(options.format).is_text() || options.documents == "line") return "\n";
  if (options.documents == "file") return "";
  return options.documents == "blank_line" ? "\n\n" : options.documents;
}

}  // namespace

DocumentReader::DocumentReader(const Documents& documents, CompletePrefix complete_prefix, const InputPlace& from)
    : documents_(documents),
      complete_prefix_(std::move(complete_prefix)),
      from_(from),
      stream_(documents.files, documents.cut > 0 ? 0 : from.input),  // a cut is a character index over all files
      format_(traits_of(documents.options.format)),
      separator_(find_separator(documents.options)) {
  check(documents.options);
}

bool DocumentReader::next(DocumentPiece& piece) {
  for (;;) {
    while (!(format_.is_text() ? next_text(piece) : next_record(piece)))
      if (!start_part()) return false;
    if (piece.after_cut && documents_.stops_at_cut) return false;
    if (piece.starts && has_tokens(piece) && documents_.limit-- == 0) return false;
    if (piece.end > from_) return true;
  }
}

bool DocumentReader::start_part() {
  after_cut_ |= documents_.cut > 0 && characters_left_ == 0;
  if (!rest_.empty()) {
    text_ += std::exchange(rest_, {});
    return true;
  }
  if (!std::exchange(has_next_, false) && !stream_.next_member()) {
    if (characters_left_ > 0)
      fail("data: {} ends at character {}, before the cut at character {}",
          {documents_.files.name(), documents_.cut - characters_left_, documents_.cut});
    return false;
  }
  if (stream_.file() != at_.input) at_ = {.input = stream_.file()};
  name_ = stream_.name();
  line_ = 0;
  header_.clear();
  member_ended_ = false;
  return true;
}

void DocumentReader::read_more() {
  text_.erase(0, std::exchange(used_, 0));
  std::string_view block = stream_.next();
  member_ended_ = block.empty();
  if (is_paragraphs_) return append_paragraphs(block);
  if (member_ended_ && ends_lines_) has_next_ = stream_.next_member();
  if (member_ended_ && (keeps_separator_ || has_next_) && !text_.empty() && !text_.ends_with('\n')) block = "\n";
  const size_t cut = find_cut(block);
  text_ += block.substr(0, cut);
  rest_ = block.substr(cut);
}

// Returns the number of bytes in the block before the cut.
size_t DocumentReader::find_cut(std::string_view block) {
  if (documents_.cut == 0 || after_cut_) return block.size();
  const int64_t characters = count_characters(block), before = std::min(characters, characters_left_);
  characters_left_ -= before;
  if (before == characters) return block.size();
  size_t bytes = 0;
  for (int64_t begun = 0; begun <= before; ++bytes) begun += count_characters(block.substr(bytes, 1));
  return bytes - 1;
}

// Appends the block to text_. A line of white space becomes an empty line. Empty lines separate paragraphs.
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
  if (!member_ended_) return;
  text_.erase(text_.find_last_not_of('\n') + 1);
  blanks_.clear();
  starts_line_ = true;
}

// Takes a piece from the front of the document. `whole`: `document` contains the full rest of the document. Returns the number of bytes
// taken.
size_t DocumentReader::cut_piece(DocumentPiece& piece, std::string_view document, bool whole) {
  piece.starts = at_.byte == 0;
  piece.ends = whole && (document.size() <= kPiece || format_.has_mask());
  piece.after_cut = after_cut_;
  piece.first_byte = first_byte_;
  size_t taken = document.size();
  if (!piece.ends) {
    const std::string_view front = document.substr(0, kPiece);
    taken = complete_prefix_(front);
    if (taken == 0) taken = complete_utf8_prefix(front);
  }
  piece.text = document.substr(0, taken);
  at_.byte += static_cast<int64_t>(taken);
  first_byte_ += static_cast<int64_t>(taken);
  if (piece.ends) at_ = {.input = at_.input, .document = at_.document + 1};
  if (piece.ends && rest_.empty()) first_byte_ = 0;
  piece.end = at_;
  return taken;
}

// Returns the position of the first separator at or after searched_ that is outside quotes.
size_t DocumentReader::find_end(std::string_view rest) {
  for (;;) {
    const size_t found = separator_.empty() ? rest.npos : rest.find(separator_, searched_);
    if (!format_.quote) return found;
    const std::string_view before = rest.substr(searched_, found - searched_);
    in_quotes_ ^= std::count(before.begin(), before.end(), format_.quote) % 2 == 1;
    if (found == rest.npos || !in_quotes_) return found;
    searched_ = found + 1;
  }
}

// Returns the text up to the next separator, and true. Without a separator, returns the rest of the part, or the start of a long text, and
// false.
std::pair<std::string_view, bool> DocumentReader::next_document() {
  const size_t most = format_.is_text() ? kPiece + separator_.size() : kMaxLine;
  for (;;) {
    if (is_paragraphs_ && at_.byte == 0) used_ = std::min(text_.find_first_not_of('\n', used_), text_.size());
    const std::string_view rest = std::string_view(text_).substr(used_);
    const size_t found = find_end(rest);
    if (found != rest.npos || part_ended() || rest.size() > most) {
      searched_ = 0;
      in_quotes_ = false;
      return {rest.substr(0, found), found != rest.npos};
    }
    searched_ = rest.size() - std::min(rest.size(), std::max<size_t>(separator_.size(), 1) - 1);
    read_more();
  }
}

bool DocumentReader::next_text(DocumentPiece& piece) {
  for (;;) {
    const auto [part, has_end] = next_document();
    if (part.empty() && !has_end) return false;
    piece.place = name_;
    if (!separator_.empty()) piece.place += format_message(": document {}", {at_.document + 1});
    if (documents_.cut > 0) piece.place += after_cut_ ? " (validation)" : " (train)";
    piece.label = -1;
    const size_t kept = keeps_separator_ && has_end ? separator_.size() : 0;
    used_ += cut_piece(piece, std::string_view(text_).substr(used_, part.size() + kept), has_end || part_ended());
    if (piece.ends && has_end && !keeps_separator_) used_ += separator_.size();
    if (!piece.text.empty() || separator_ == "\n") return true;  // an empty line is a document; other empty texts are not
  }
}

bool DocumentReader::next_line() {
  for (;;) {
    const auto [line, has_end] = next_document();
    if (line.empty() && !has_end) return false;
    record_place_ = format_message("{}:{}", {name_, line_ + 1});
    line_ += 1 + std::count(line.begin(), line.end(), '\n');
    if (line.size() > kMaxLine)
      fail("{}: the line has more than {} bytes{}", {record_place_, kMaxLine, format_.quote ? ", or a quote is not closed" : ""});
    used_ += line.size() + has_end;
    if (line.find_first_not_of(" \t") == line.npos) continue;
    const DocumentOptions& options = documents_.options;
    const Line record{line, header_, record_place_};
    const bool is_header = format_.read_header && header_.empty();
    try {
      if (is_header) header_ = format_.read_header(record);
      else record_ = format_.read ? format_.read(record, options) : Record{std::string(line)};
    } catch (const Error& error) {
      if (options.chosen_by.empty() || format_of_name(name_) == options.format) throw RecordError(error.what());
      throw RecordError(format_message("{} (format {} because of {})", {error.what(), format_.name, options.chosen_by}));
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

namespace {

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

std::string note_on_keys(const Documents& documents) {
  constexpr int64_t kLines = 1000;
  std::set<std::string> keys;
  DocumentReader reader(documents, complete_utf8_prefix);
  try {
    DocumentPiece piece;
    for (int64_t i = 0; i < kLines && reader.next(piece); ++i) keys.merge(traits_of(documents.options.format).unread_keys(piece.text));
  } catch (const Error&) {  // the error is reported when the documents are read
  }
  std::vector<std::string> quoted;
  for (const std::string& key : keys) quoted.push_back(quoted_json(key));
  if (keys.empty()) return "";
  return format_message("{}: these keys have no effect: {}", {documents.files.name(), one_line(join(quoted, ", ", ", "))});
}

}  // namespace

std::string note_on(const Documents& documents, bool is_named) {
  if (traits_of(documents.options.format).unread_keys) return note_on_keys(documents);
  return documents.is_text() && !is_named ? note_on_json(documents.files) : "";
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
  text.cut = static_cast<int64_t>(static_cast<double>(characters) * train_fraction);
  if (text.cut < 1 || text.cut >= characters)
    fail("split: {} has {} characters, too few for a training fraction of {}", {text.files.name(), characters, train_fraction});
}

void cut_text(Documents& text, double train_fraction) {
  int64_t characters = 0;
  DocumentReader reader(text, complete_utf8_prefix);
  for (DocumentPiece piece; reader.next(piece);) characters += count_characters(piece.text);
  cut_text(text, train_fraction, characters);
}

TextSize size_of_text(const Documents& documents, int64_t from_byte) {
  TextSize size;
  bool in_space = false, is_new = true;
  DocumentReader reader(documents, complete_utf8_prefix);
  for (DocumentPiece piece; reader.next(piece);) {
    const auto before = std::min(from_byte, std::ssize(piece.text));
    const std::string_view text = std::string_view(piece.text).substr(static_cast<size_t>(before));
    from_byte -= before;
    is_new |= piece.starts;
    if (text.empty() && before > 0) continue;
    size.bytes += std::ssize(text);
    size.words += is_new;
    in_space &= !is_new;
    is_new = false;
    for (size_t position = 0; position < text.size();) {
      const Utf8Character character = decode_utf8(text, position);
      const bool is_space = character.bytes > 0 && is_python_space(character.code);
      size.words += is_space && !in_space;
      in_space = is_space;
      position += std::max<size_t>(character.bytes, 1);
    }
  }
  return size;
}

// Reads the label field of each document as its text field.
std::vector<std::string> word_labels(const Documents& documents) {
  const DocumentOptions& options = documents.options;
  check(options);  // checked here, so errors name the keys that the user gave
  DocumentReader reader(
      {.files = documents.files, .options = {.format = options.format, .text_field = options.label_field}}, complete_utf8_prefix);
  std::set<std::string> found;
  int64_t number = 0;
  try {
    for (DocumentPiece piece; reader.next(piece);) {
      if (found.empty() && is_integer(piece.text, number)) return {};
      if (!piece.text.empty()) found.insert(piece.text);
    }
  } catch (const RecordError&) {  // the error is reported when the documents are read
  }
  for (const std::string& label : found) check_utf8("labels", label, 0);  // a run file can contain only UTF-8
  return {found.begin(), found.end()};
}

}  // namespace ricci
