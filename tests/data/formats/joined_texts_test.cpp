// Files that are joined to one text: its pieces, the cut in two documents, resuming, memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>

#include "data/formats/documents.h"
#include "data/text/utf8.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace test_data;

namespace {

using Strings = std::vector<std::string>;

// Joined texts, with the checks that hold for all of them. Returns the documents.
Strings read_joined(const Documents& documents, const CompletePrefix& complete_prefix, std::vector<DocumentPiece>& pieces) {
  Strings texts;
  pieces.clear();
  int64_t byte = 0;
  DocumentReader reader(documents, complete_prefix);
  for (DocumentPiece piece; reader.next(piece);) {
    CHECK(piece.first_byte == byte);
    CHECK(piece.text.size() <= DocumentReader::kPiece);
    CHECK(piece.starts == (pieces.empty() || pieces.back().ends));
    if (piece.starts) texts.emplace_back();
    texts.back() += piece.text;
    byte += std::ssize(piece.text);
    pieces.push_back(piece);
  }
  CHECK((pieces.empty() || pieces.back().ends));
  return texts;
}

}  // namespace

TEST_CASE("joined texts: pieces end between characters or lines, and come in order") {
  const ScratchFolder folder;
  const std::string text = "x" + mixed_text(400'000, 4);  // characters of multiple bytes lie across the ends of blocks
  const TextSource source(write_compressed(folder, "a.gz", text, ARCHIVE_FILTER_GZIP));
  std::vector<DocumentPiece> pieces;
  CHECK((read_joined({.files = source, .joined = true}, complete_utf8_prefix, pieces) == Strings{text}));
  CHECK(pieces.size() > 3);
  for (const DocumentPiece& piece : pieces) CHECK(complete_utf8_prefix(piece.text) == piece.text.size());
  const auto last_line_end = [](std::string_view known) { return known.rfind('\n') + 1; };
  CHECK((read_joined({.files = source, .joined = true}, last_line_end, pieces) == Strings{text}));
  for (const DocumentPiece& piece : pieces) CHECK((piece.ends || piece.text.back() == '\n'));
}

TEST_CASE("joined texts: a unit that is longer than a piece is divided between characters") {
  const ScratchFolder folder;
  const std::string text = mixed_text(300'000, 6);
  size_t looked_at = 0;
  const auto nowhere = [&](std::string_view known) {
    const bool is_first = looked_at == 0;
    looked_at += known.size();
    return is_first ? complete_utf8_prefix(known.substr(0, 1000)) : 0;
  };
  std::vector<DocumentPiece> pieces;
  CHECK((read_joined({.files = TextSource(folder.write("long", text)), .joined = true}, nowhere, pieces) == Strings{text}));
  CHECK(pieces.size() == 2 + text.size() / DocumentReader::kPiece);
  for (size_t i = 1; i + 1 < pieces.size(); ++i) {
    CHECK(complete_utf8_prefix(pieces[i].text) == pieces[i].text.size());
    CHECK(pieces[i].text.size() + 4 > DocumentReader::kPiece);
  }
  CHECK(looked_at < 3 * text.size());
}

TEST_CASE("joined texts: a second document starts at the character of the cut, and a file that shrank is noticed") {
  const ScratchFolder folder;
  const std::string text = mixed_text(200'000, 3), half = folder.write("half", text), both = text + text;
  const TextSource source({half, write_compressed(folder, "half.zst", text, ARCHIVE_FILTER_ZSTD)});
  const int64_t end = 400'000;  // characters
  size_t bytes = 0;
  std::vector<DocumentPiece> pieces;
  for (int64_t cut = 0; cut < end; bytes += decode_utf8(both, bytes).bytes, ++cut) {
    if (cut != 1 && cut != 99'999 && std::abs(cut - end / 2) > 1 && cut != end - 1) continue;
    CAPTURE(cut);
    const Documents documents{.files = source, .joined = true, .cut = cut};
    CHECK((read_joined(documents, complete_utf8_prefix, pieces) == Strings{both.substr(0, bytes), both.substr(bytes)}));
    CHECK(pieces.front().place == "half and 1 more (train)");
    CHECK(pieces.back().place == "half and 1 more (validation)");
    for (size_t done = 0; done < pieces.size(); ++done) {  // reading resumes from the end of any piece
      DocumentReader reader(documents, complete_utf8_prefix, pieces[done].end);
      DocumentPiece piece;
      for (size_t i = done + 1; i < pieces.size(); ++i) {
        REQUIRE(reader.next(piece));
        CHECK((piece.text == pieces[i].text && piece.first_byte == pieces[i].first_byte && piece.end == pieces[i].end));
        CHECK((piece.starts == pieces[i].starts && piece.ends == pieces[i].ends));
      }
      CHECK(!reader.next(piece));
    }
  }
  Strings texts;
  for_each_text({.files = source, .joined = true, .cut = 3, .limit = 1}, complete_utf8_prefix,
      [&](const DocumentPiece& piece) { texts.push_back(piece.text); });
  size_t three = 0;
  for (int i = 0; i < 3; ++i) three += decode_utf8(both, three).bytes;
  CHECK(texts == Strings{both.substr(0, three)});
  const TextSource known(half);
  folder.write("half", std::string(1000, 'x'));
  CHECK(error_of([&] { read_joined({.files = known, .joined = true, .cut = 199'999}, complete_utf8_prefix, pieces); }) ==
        "data: half ends at character 1000, but it is cut at character 199999");
}

TEST_CASE("joined texts: reading 16 MB does not raise resident memory by more than 4 MB, whatever the words") {
  const ScratchFolder folder;
  {
    std::ofstream out(folder / "large", std::ios::binary);
    const std::string block = mixed_text(400'000, 5);
    for (size_t written = 0; written < 16'000'000; written += block.size()) out << block;
  }
  const int64_t before = resident_bytes();
  const auto no_end = [](std::string_view) { return size_t{0}; };
  for (const CompletePrefix& prefix : {CompletePrefix(complete_utf8_prefix), CompletePrefix(no_end)}) {
    int64_t most = before, bytes = 0;
    DocumentReader reader({.files = TextSource(folder / "large"), .joined = true}, prefix);
    for (DocumentPiece piece; reader.next(piece);) {
      bytes += std::ssize(piece.text);
      most = std::max(most, resident_bytes());
    }
    CHECK(bytes >= 16'000'000);
    CHECK(most - before < 4'000'000 + kSanitizerBytes);
  }
}
