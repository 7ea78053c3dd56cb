#include "data/text/text.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <set>
#include <system_error>

#include "core/error.h"
#include "core/files/checksum.h"
#include "core/files/file.h"
#include "data/text/utf8.h"

namespace ricci {

namespace fs = std::filesystem;

namespace {

// The path under $RICCI_DATA, or an empty one.
fs::path second_place(const std::string& path) {
  const char* folder = std::getenv("RICCI_DATA");
  return folder && *folder && !path.starts_with('/') ? fs::path(folder) / path : fs::path();
}

}  // namespace

std::optional<fs::path> look_for_data(const std::string& path) {
  const fs::path second = second_place(path);
  if (about_data([&] { return is_there(path); })) return path;
  if (!second.empty() && about_data([&] { return is_there(second); })) return second;
  return {};
}

namespace {

// "; train.tsv.zst is there": the file in the same folder whose name begins most like this one, at least up to its first dot.
std::string nearest_note(const fs::path& path) {
  const std::string asked = path.filename().string() + ".";  // so the same name with one more ending comes first
  std::string nearest;
  auto most = static_cast<int64_t>(asked.find('.'));
  if (most == 0) return "";
  std::error_code error;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string found = entry.path().filename().string();
    const int64_t alike = std::mismatch(found.begin(), found.end(), asked.begin(), asked.end()).first - found.begin();
    if (alike < most || (alike == most && !nearest.empty() && nearest < found)) continue;
    nearest = found;
    most = alike;
  }
  return nearest.empty() ? "" : "; " + (path.parent_path() / nearest).string() + " is there";
}

}  // namespace

fs::path find_data(const std::string& path, const char* key) {
  if (const auto found = look_for_data(path)) return *found;
  const fs::path second = second_place(path);
  std::string note = nearest_note(path);
  if (note.empty() && !second.empty()) note = nearest_note(second);
  if (path.starts_with('/')) fail("{}: {} is not there{}", {key, path, note});
  if (second.empty()) fail("{}: {} is not there, and $RICCI_DATA, the second place to look, is not set{}", {key, path, note});
  fail("{}: found neither {} nor {} ($RICCI_DATA){}", {key, path, second.string(), note});
}

namespace {

// Seconds. Two changes within one tick of a file system's clock leave the same time; the coarsest clocks tick every two seconds.
constexpr int64_t kSettled = 3;

std::vector<std::string> split_at_commas(const std::string& paths) {
  if (about_data([&] { return is_there(paths); })) return {paths};
  std::vector<std::string> list;
  for (size_t begin = 0; begin <= paths.size();) {
    const size_t comma = std::min(paths.find(',', begin), paths.size());
    list.push_back(paths.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return list;
}

// Appends the files below a folder. Links are followed, but no folder is entered twice: links may lead back to where they are.
void append_files(const fs::path& path, std::set<std::pair<dev_t, ino_t>>& visited, std::vector<fs::path>& files) {
  const Folder folder(path.string());
  struct stat status = {};
  if (::fstat(folder.descriptor(), &status) != 0 || !visited.insert({status.st_dev, status.st_ino}).second) return;
  for (const std::string& name : folder.names()) {
    if (name.starts_with('.')) continue;
    std::error_code ignored;  // what cannot be looked at is no folder, and a later error when it is read
    if (fs::is_directory(path / name, ignored)) append_files(path / name, visited, files);
    else files.push_back(path / name);
  }
}

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::set<std::pair<dev_t, ino_t>> visited;
  about_data([&] { append_files(folder, visited, files); });
  if (files.empty()) fail("data: folder {} holds no files", {folder.string()});
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TextFile TextSource::inspect(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (type == fs::file_type::fifo)
    fail("data: {} is neither a file nor a folder but a pipe; a text is read more than once: write it to a file first", {path.string()});
  if (!error && type != fs::file_type::regular) fail("data: {} is neither a file nor a folder", {path.string()});
  const fs::path absolute = error ? path : fs::canonical(path, error);
  if (error) fail("data: cannot read {}: {}", {path.string(), error.message()});
  struct stat status = {};
  if (::stat(absolute.c_str(), &status) != 0) fail("data: cannot read {}: {}", {path.string(), system_reason()});
  const auto nanoseconds = [](const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; };
  const std::array<int64_t, 4> stamp{
      status.st_size, nanoseconds(status.st_mtim), nanoseconds(status.st_ctim), static_cast<int64_t>(status.st_ino)};
  const bool settled = std::max(status.st_mtim.tv_sec, status.st_ctim.tv_sec) + kSettled <= std::time(nullptr);
  return {absolute, status.st_size, xxh64(bytes_of(stamp)), settled};
}

void TextSource::add(const std::string& path) {
  const fs::path found = find_data(path);
  const bool folder = about_data([&] { return is_folder(found); });
  for (const fs::path& file : folder ? files_below(found) : std::vector{found}) {
    files_.push_back(inspect(file));
    if (files_.back().bytes == 0) fail("data: {} is empty", {file.string()});
  }
}

TextSource::TextSource(const std::string& paths) : TextSource(of_paths(split_at_commas(paths))) {}

TextSource TextSource::of_paths(const std::vector<std::string>& paths, std::span<const BuiltInText> built_in) {
  if (paths.empty()) fail("data: no file was named");
  TextSource source;
  for (const std::string& path : paths) {
    const auto known = std::find_if(built_in.begin(), built_in.end(), [&](const BuiltInText& text) { return text.name == path; });
    if (path.empty()) fail("data: an empty file name was given");
    if (known == built_in.end()) source.add(path);
    else source.files_.push_back({known->name, static_cast<int64_t>(known->text.size()), xxh64(known->text), true, known->text});
  }
  return source;
}

TextSource TextSource::part(const std::string& label, int64_t first, int64_t end) const {
  if (first < 0 || first >= end || (end != INT64_MAX && end > end_ - first_))
    fail("data: {} has no part of characters {} to {}", {name(), first, end});
  TextSource result = as(label);
  result.first_ = first_ + first;
  result.end_ = end == INT64_MAX ? end_ : first_ + end;
  return result;
}

TextSource TextSource::as(const std::string& label) const {
  TextSource result = *this;
  result.label_ = label;
  return result;
}

TextSource TextSource::read_as(Encoding encoding) const {
  TextSource result = *this;
  result.encoding_ = encoding;
  return result;
}

std::vector<TextSource> TextSource::each_file() const {
  std::vector<TextSource> all(files_.size(), TextSource().read_as(encoding_));
  for (size_t i = 0; i < files_.size(); ++i) all[i].files_ = {files_[i]};
  return all;
}

int64_t TextSource::bytes_on_disk() const {
  int64_t bytes = 0;
  for (const TextFile& file : files_) bytes += file.bytes;
  return bytes;
}

std::string TextSource::name() const {
  std::string name = files_[0].name();
  if (files_.size() > 1) name += format_message(" and {} more", {files_.size() - 1});
  return label_.empty() ? name : name + " (" + label_ + ")";
}

uint64_t TextSource::place_hash() const {
  uint64_t hash = hash_bytes(encoding_ == Encoding::utf8 ? label_ : label_ + name_of(encoding_));
  for (const TextFile& file : files_) hash = hash_bytes(file.path.string(), hash_bytes("\n", hash));
  return hash;
}

uint64_t TextSource::stamp_hash() const {
  std::string stamps;
  for (const TextFile& file : files_) stamps += format_message("{} ", {file.stamp});
  return hash_bytes(stamps, place_hash());
}

bool TextSource::is_settled() const {
  return std::all_of(files_.begin(), files_.end(), [](const TextFile& file) { return file.settled; });
}

uint64_t TextSource::content_hash() const {
  std::string identity = format_message("{} {}", {first_, end_});
  for (const TextFile& file : files_) {
    const auto of_bytes = [&] { return hash_of_file(OpenFile(file.path.string()), 0, file.bytes); };
    const uint64_t hash = file.built_in ? file.stamp : about_data(of_bytes);
    identity += format_message(" {} {}", {file.bytes, std::to_string(hash)});
  }
  return hash_bytes(identity, place_hash());
}

void TextSource::check_unchanged() const {
  for (const TextFile& file : files_) {
    if (file.built_in) continue;
    const TextFile now = inspect(file.path);
    if (now.bytes != file.bytes || now.stamp != file.stamp)
      fail("data: {} changed while it was in use: it had {} bytes and now has {}, or others", {file.path.string(), file.bytes, now.bytes});
  }
}

std::string_view TextStream::read_block() {
  for (; file_ < source_.files_.size(); ++file_) {
    if (!open_) open_ = std::make_unique<MemberStream>(source_.files_[file_], source_.encoding_);
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

// Bytes of the block before the first byte of this character of the text; all of the block where it is not in it.
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

// A text ends with a piece: the last byte that is known may be the last of the text, and waits.
std::optional<TextPieces::Piece> TextPieces::next() {
  if (ended_) return {};
  held_.erase(0, used_);
  offset_ += static_cast<int64_t>(std::exchange(used_, 0));
  while (held_.size() <= kLongest) {
    const std::string_view block = stream_.next();
    if (block.empty()) {
      ended_ = true;
      used_ = held_.size();
      return Piece{held_, offset_, true};
    }
    if (held_.empty()) offset_ = stream_.offset();
    held_ += block;
  }
  const std::string_view front = std::string_view(held_).substr(0, kLongest);
  used_ = complete_prefix_(front);
  if (used_ == 0) used_ = complete_utf8_prefix(front);
  return Piece{front.substr(0, used_), offset_, false};
}

void TextPieces::read_rest() {
  stream_.read_rest();
  ended_ = false;
}

Texts::Texts(const TextSource& source)
    : Texts(Read([source](const TextPieces::CompletePrefix& complete_prefix, const Use& use) {
        TextPieces pieces(source, complete_prefix);
        while (const auto piece = pieces.next())
          if (!piece->text.empty()) use(piece->text, piece->offset, source.name());
      })) {}

namespace {

// The blanks of ASCII, whatever the locale.
bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

TextSize size_of_text(const TextSource& text, bool has_line_ends) {
  TextSize size;
  TextStream stream(text);
  bool in_word = false;
  for (std::string_view block; !(block = stream.next()).empty();) {
    size.bytes += static_cast<int64_t>(block.size());
    for (const char c : block) {
      const bool blank = is_blank(c);
      size.words += (has_line_ends && c == '\n') + (!blank && !in_word);
      in_word = !blank;
    }
  }
  return size;
}

}  // namespace ricci
