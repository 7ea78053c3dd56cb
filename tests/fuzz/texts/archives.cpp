// Fuzzes compressed files and tar archives. The first byte chooses: 0 reads the input unchanged; others pack its texts, divided by zero
// bytes, and read the packed file complete, cut and damaged at the position in the next two bytes.
#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <filesystem>

#include "data/text/text.h"
#include "tests/fuzz/input.h"

using namespace ricci;

namespace {

constexpr size_t kMost = 4 << 20;    // bytes that are read of one file; a small one can contain gigabytes
constexpr size_t kBlock = 1 << 20;   // the most bytes in a block
constexpr size_t kRecognised = 262;  // a tar archive of fewer bytes looks like a text
constexpr size_t kMark = 4;          // a compressed file of fewer bytes can do it as well

// Texts are found by file name, but a file in memory has none. A file lives only as long as it is read. libFuzzer ends without the
// destructors of static values.
class NamedFile {
 public:
  explicit NamedFile(std::string_view bytes) {
    const int descriptor = ::mkstemp(path_.data());
    const bool is_written = ::write(descriptor, bytes.data(), bytes.size()) == std::ssize(bytes);
    if (::close(descriptor) != 0 || !is_written) std::abort();
  }
  ~NamedFile() { ::unlink(path_.c_str()); }
  NamedFile(const NamedFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_ = std::filesystem::temp_directory_path() / "ricci-fuzz-XXXXXX";
};

struct Reading {
  std::vector<std::string> names, texts;  // one of each member
  bool is_whole = false;                  // read to its end without an error
  std::string joined() const {
    std::string all;
    for (const std::string& text : texts) all += text;
    return all;
  }
  bool operator==(const Reading&) const = default;
};

Reading read(std::string_view bytes) {
  const NamedFile input(bytes);
  const size_t file_name = std::filesystem::path(input.path()).filename().native().size();  // it differs each time
  Reading reading;
  fuzz::attempt([&] {
    TextStream members(TextSource({input.path()}).read_as(Encoding::bytes));
    size_t left = kMost;
    while (members.next_member()) {
      reading.names.push_back(members.name().substr(file_name));
      std::string& text = reading.texts.emplace_back();
      for (std::string_view block; !(block = members.next()).empty();) {
        fuzz::require(block.size() <= kBlock, "a block is bounded");
        if (block.size() > left) return;
        left -= block.size();
        text += block;
      }
    }
    reading.is_whole = true;
  });
  return reading;
}

// ---- Packed texts
struct Way {
  int filter;
  bool is_tar, is_several;  // is_several: each text is compressed separately, and the files are joined
};
constexpr Way kWays[] = {{ARCHIVE_FILTER_GZIP, false, false}, {ARCHIVE_FILTER_GZIP, false, true}, {ARCHIVE_FILTER_ZSTD, false, false},
    {ARCHIVE_FILTER_NONE, true, false}, {ARCHIVE_FILTER_GZIP, true, false}, {ARCHIVE_FILTER_ZSTD, true, false},
    {ARCHIVE_FILTER_GZIP, true, true}};

std::string packed(const std::vector<std::string>& texts, const Way& way) {
  std::string bytes(1 << 18, '\0');
  size_t used = 0;
  archive* const out = archive_write_new();
  archive_entry* const entry = archive_entry_new();
  fuzz::require((way.is_tar ? archive_write_set_format_pax_restricted(out) : archive_write_set_format_raw(out)) == ARCHIVE_OK, "a format");
  fuzz::require(archive_write_add_filter(out, way.filter) == ARCHIVE_OK, "a filter");
  if (way.filter == ARCHIVE_FILTER_GZIP) archive_write_set_options(out, "gzip:!timestamp,gzip:compression-level=1");
  if (way.filter == ARCHIVE_FILTER_ZSTD) archive_write_set_options(out, "zstd:compression-level=1");
  archive_write_set_bytes_in_last_block(out, 1);
  fuzz::require(archive_write_open_memory(out, bytes.data(), bytes.size(), &used) == ARCHIVE_OK, "memory to write to");
  for (size_t i = 0; i < texts.size(); ++i) {
    archive_entry_clear(entry);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_pathname(entry, ("texts/" + std::to_string(i)).c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(texts[i].size()));
    if (way.is_tar || i == 0) archive_write_header(out, entry);
    archive_write_data(out, texts[i].data(), texts[i].size());
  }
  fuzz::require(archive_write_close(out) == ARCHIVE_OK, "an archive is written");
  archive_entry_free(entry);
  archive_write_free(out);
  return bytes.substr(0, used);
}

// The texts of an input. Neither one of them nor all together look packed.
std::vector<std::string> texts_of(std::string_view bytes) {
  constexpr size_t kTexts = 8;
  std::vector<std::string> texts;
  for (const std::string& part : fuzz::parts_of(bytes)) {
    if (texts.size() == kTexts) texts.back() += part;
    else texts.push_back("t" + part);
  }
  constexpr size_t kTarMark = 257;  // position of a tar archive's mark
  size_t before = 0;
  for (std::string& text : texts) {
    if (before <= kTarMark && kTarMark < before + text.size()) text[kTarMark - before] = '.';
    before += text.size();
  }
  return texts;
}

// A file without its end is an error, unless the cut loses no text, or is between two joined files.
void check_cut(const std::string& bytes, size_t place, const Way& way, const Reading& whole, const std::vector<size_t>& borders) {
  if (place < (way.filter == ARCHIVE_FILTER_NONE ? kRecognised : kMark)) return;
  const Reading cut = read(std::string_view(bytes).substr(0, place));
  fuzz::require(whole.joined().starts_with(cut.joined()), "a beginning of a file gives a beginning of its text");
  const bool at_border = std::find(borders.begin(), borders.end(), place) != borders.end();
  fuzz::require(!cut.is_whole || cut == whole || at_border, "a file that was cut is an error");
}

// One wrong byte in a file with checksums is an error, if it changes the text at all.
void check_damage(std::string bytes, size_t place, const Reading& whole) {
  constexpr size_t kGzipMark = 3;
  if (place < kGzipMark || place >= bytes.size()) return;
  bytes[place] = static_cast<char>(bytes[place] ^ (1 << place % 8));
  const Reading damaged = read(bytes);
  fuzz::require(!damaged.is_whole || damaged == whole, "damage is an error");
}

void read_packed(const std::vector<std::string>& texts, const Way& way, size_t place) {
  std::string bytes;
  std::vector<size_t> borders;
  if (!way.is_several) bytes = packed(texts, way);
  for (size_t i = 0; i < texts.size() && way.is_several; ++i) {
    borders.push_back(bytes.size());
    bytes += packed({texts[i]}, way);
  }
  const Reading whole = read(bytes);
  std::string joined;
  for (const std::string& text : texts) joined += text;
  fuzz::require(whole.is_whole && whole.joined() == joined, "packed bytes are read");
  fuzz::require(!way.is_tar || whole.texts == texts, "member by member");
  check_cut(bytes, place % bytes.size(), way, whole, borders);
  if (way.filter == ARCHIVE_FILTER_GZIP) check_damage(bytes, place, whole);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t way = data[0] % (1 + std::size(kWays));
  if (way == 0) {
    const std::string_view file = bytes.substr(1);
    fuzz::require(read(file) == read(file), "two readings are equal");
    return 0;
  }
  read_packed(texts_of(bytes.substr(3)), kWays[way - 1], static_cast<size_t>(data[1]) << 8 | data[2]);
  return 0;
}
