// Texts in pieces that end between units, and in little memory.
#include <doctest/doctest.h>

#include <algorithm>

#include "data/text/text.h"
#include "data/text/utf8.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace test_data;

TEST_CASE("text source: pieces end between characters and come in order") {
  const ScratchFolder folder;
  const std::string text = "x" + mixed_text(400'000, 4);  // characters of several bytes lie across the ends of blocks
  const TextSource source(write_compressed(folder, "a.gz", text, ARCHIVE_FILTER_GZIP));
  std::string joined;
  int pieces = 0;
  for_each_piece(source, complete_utf8_prefix, [&](std::string_view piece, int64_t offset) {
    CHECK(offset == static_cast<int64_t>(joined.size()));
    CHECK(complete_utf8_prefix(piece) == piece.size());
    joined += piece;
    ++pieces;
  });
  CHECK(joined == text);
  CHECK(pieces > 3);
  std::string lines;
  const auto last_line_end = [](std::string_view block) { return block.rfind('\n') + 1; };
  for_each_piece(source, last_line_end, [&](std::string_view piece, int64_t) {
    CHECK((piece.back() == '\n' || lines.size() + piece.size() == text.size()));
    lines += piece;
  });
  CHECK(lines == text);
}

TEST_CASE("text source: a unit that is longer than a piece is divided between characters") {
  const ScratchFolder folder;
  const std::string text = mixed_text(1'500'000, 6), file = folder.write("long", text);
  std::string joined;
  size_t looked_at = 0, pieces = 0;
  const auto nowhere = [&](std::string_view known) {
    looked_at += known.size();
    return joined.empty() ? complete_utf8_prefix(known.substr(0, 1000)) : 0;
  };
  for_each_piece(TextSource(file), nowhere, [&](std::string_view piece, int64_t offset) {
    CHECK(offset == static_cast<int64_t>(joined.size()));
    CHECK(piece.size() <= TextPieces::kLongest);
    CHECK(complete_utf8_prefix(piece) == piece.size());
    CHECK((joined.empty() || piece.size() + 4 > TextPieces::kLongest || joined.size() + piece.size() == text.size()));
    joined += piece;
    ++pieces;
  });
  CHECK((joined == text));
  CHECK(pieces == 2 + text.size() / TextPieces::kLongest);
  CHECK(looked_at < 3 * text.size());
}

TEST_CASE("text source: streaming 64 MB does not raise resident memory by more than 4 MB, whatever its words") {
  const ScratchFolder folder;
  {
    std::ofstream out(folder / "large", std::ios::binary);
    const std::string block = mixed_text(400'000, 5);
    for (size_t written = 0; written < 64'000'000; written += block.size()) out << block;
  }
  const int64_t before = resident_bytes();
  const auto no_end = [](std::string_view) { return size_t{0}; };
  for (const TextPieces::CompletePrefix& prefix : {TextPieces::CompletePrefix(complete_utf8_prefix), TextPieces::CompletePrefix(no_end)}) {
    int64_t most = before, bytes = 0;
    for_each_piece(TextSource(folder / "large"), prefix, [&](std::string_view piece, int64_t) {
      bytes += static_cast<int64_t>(piece.size());
      most = std::max(most, resident_bytes());
    });
    CHECK(bytes >= 64'000'000);
    CHECK(most - before < 4'000'000 + kSanitizerBytes);
  }
}
