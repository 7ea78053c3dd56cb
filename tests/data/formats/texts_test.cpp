// Plain texts: the pieces of their documents, line ends between them, the cut before the validation part, resuming, memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>

#include "data/formats/documents.h"
#include "data/text/utf8.h"
#include "tests/data/files.h"
#include "tests/skip.h"

using namespace ricci;
using namespace test_data;

namespace {

using Strings = std::vector<std::string>;

// The documents of texts, with the checks that hold for all of them.
Strings read_texts(const Documents& documents, const CompletePrefix& complete_prefix, std::vector<DocumentPiece>& pieces) {
  Strings texts;
  pieces.clear();
  DocumentReader reader(documents, complete_prefix);
  for (DocumentPiece piece; reader.next(piece);) {
    CHECK(piece.text.size() <= DocumentReader::kPiece);
    CHECK(piece.starts == (pieces.empty() || pieces.back().ends));
    if (piece.starts) texts.emplace_back();
    const bool is_rest = documents.cut > 0 && piece.after_cut && texts.size() > 1;
    if (!is_rest) CHECK(piece.first_byte == std::ssize(texts.back()));
    texts.back() += piece.text;
    pieces.push_back(piece);
  }
  CHECK((pieces.empty() || pieces.back().ends));
  return texts;
}

Strings texts_of(const Documents& documents) {
  std::vector<DocumentPiece> pieces;
  return read_texts(documents, complete_utf8_prefix, pieces);
}

}  // namespace

TEST_CASE("texts: each file and each member of an archive is a document, and a line end keeps it from the next") {
  const ScratchFolder folder;
  const std::string a = folder.write("a.txt", "the cat"), b = folder.write("b.txt", "sat\n"), c = folder.write("c.txt", "down");
  CHECK(texts_of({.files = TextSource({a, b, c})}) == Strings{"the cat\n", "sat\n", "down"});
  CHECK(texts_of({.files = TextSource({c, c})}) == Strings{"down\n", "down"});
  CHECK(texts_of({.files = TextSource(a)}) == Strings{"the cat"});
  // An end token after each document makes it superfluous, and bytes are unchanged.
  CHECK(texts_of({.files = TextSource({a, b, c}), .options = {.keep_line_ends = false}}) == Strings{"the cat", "sat\n", "down"});
  CHECK(texts_of({.files = TextSource({a, c}).read_as(Encoding::bytes)}) == Strings{"the cat", "down"});
  const std::string archive =
      write_tar(folder, "all.tar", {{"x", "one"}, {".hidden", "no"}, {"y", "two\n"}, {"z", "three"}}, ARCHIVE_FILTER_GZIP);
  CHECK(texts_of({.files = TextSource({archive, a})}) == Strings{"one\n", "two\n", "three\n", "the cat"});
  const std::string long_text = mixed_text(400'000, 2);
  const std::string text = folder.write("long", long_text + "x");
  CHECK(texts_of({.files = TextSource({text, a})}) == Strings{long_text + "x\n", "the cat"});
}

TEST_CASE("texts: the cut counts the characters of all documents, with the line ends between them") {
  const ScratchFolder folder;
  const TextSource files({folder.write("a", "ab"), folder.write("b", "c\n"), folder.write("c", "def")});
  const std::string all = "ab\nc\ndef";
  for (int64_t cut = 1; cut < std::ssize(all); ++cut) {
    const Documents documents{.files = files, .cut = cut};
    std::string train, validation;
    DocumentReader reader(documents, complete_utf8_prefix);
    for (DocumentPiece piece; reader.next(piece);) (piece.after_cut ? validation : train) += piece.text;
    CHECK(train == all.substr(0, static_cast<size_t>(cut)));
    CHECK(train + validation == all);
    Documents part = documents;
    part.stops_at_cut = true;
    std::string read;
    for_each_text(part, complete_utf8_prefix, [&](const DocumentPiece& piece) { read += piece.text; });
    CHECK(read == train);
  }
  Documents documents{.files = files};
  cut_text(documents, 0.5);
  CHECK(documents.cut == 4);
}

TEST_CASE("texts: pieces end between characters or lines, and come in order") {
  const ScratchFolder folder;
  const std::string text = "x" + mixed_text(400'000, 4);  // characters of multiple bytes cross block boundaries
  const TextSource source(write_compressed(folder, "a.gz", text, ARCHIVE_FILTER_GZIP));
  std::vector<DocumentPiece> pieces;
  CHECK((read_texts({.files = source}, complete_utf8_prefix, pieces) == Strings{text}));
  CHECK(pieces.size() > 3);
  for (const DocumentPiece& piece : pieces) CHECK(complete_utf8_prefix(piece.text) == piece.text.size());
  const auto last_line_end = [](std::string_view known) { return known.rfind('\n') + 1; };
  CHECK((read_texts({.files = source}, last_line_end, pieces) == Strings{text}));
  for (const DocumentPiece& piece : pieces) CHECK((piece.ends || piece.text.back() == '\n'));
}

TEST_CASE("texts: a unit that is longer than a piece is divided between characters") {
  const ScratchFolder folder;
  const std::string text = mixed_text(300'000, 6);
  size_t looked_at = 0;
  const auto nowhere = [&](std::string_view known) {
    const bool is_first = looked_at == 0;
    looked_at += known.size();
    return is_first ? complete_utf8_prefix(known.substr(0, 1000)) : 0;
  };
  std::vector<DocumentPiece> pieces;
  CHECK((read_texts({.files = TextSource(folder.write("long", text))}, nowhere, pieces) == Strings{text}));
  CHECK(pieces.size() == 2 + text.size() / DocumentReader::kPiece);
  for (size_t i = 1; i + 1 < pieces.size(); ++i) {
    CHECK(complete_utf8_prefix(pieces[i].text) == pieces[i].text.size());
    CHECK(pieces[i].text.size() + 4 > DocumentReader::kPiece);
  }
  CHECK(looked_at < 3 * text.size());
}

TEST_CASE("texts: a document starts at the character of the cut, reading resumes at any piece, and a file that shrank is noticed") {
  const ScratchFolder folder;
  const std::string text = mixed_text(200'000, 3) + "\n", half = folder.write("half", text);
  const TextSource source({half, write_compressed(folder, "half.zst", text, ARCHIVE_FILTER_ZSTD)});
  const int64_t middle = count_characters(text);
  std::vector<DocumentPiece> pieces;
  for (const int64_t cut : {int64_t{1}, int64_t{99'999}, middle - 1, middle, middle + 1, 2 * middle - 1}) {
    CAPTURE(cut);
    size_t bytes = 0;
    for (int64_t i = 0; i < cut % middle; ++i) bytes += decode_utf8(text, bytes).bytes;
    const std::string first = text.substr(0, bytes), rest = text.substr(bytes);
    const Documents documents{.files = source, .cut = cut};
    const Strings expected = cut == middle ? Strings{text, text} : cut < middle ? Strings{first, rest, text} : Strings{text, first, rest};
    CHECK(read_texts(documents, complete_utf8_prefix, pieces) == expected);
    CHECK(pieces.front().place == "half (train)");
    CHECK(pieces.back().place == "half.zst (validation)");
    CHECK(pieces.back().first_byte + std::ssize(pieces.back().text) == std::ssize(text));
    for (size_t done = 0; done < pieces.size(); ++done) {
      DocumentReader reader(documents, complete_utf8_prefix, pieces[done].end);
      DocumentPiece piece;
      for (size_t i = done + 1; i < pieces.size(); ++i) {
        REQUIRE(reader.next(piece));
        CHECK((piece.text == pieces[i].text && piece.first_byte == pieces[i].first_byte && piece.end == pieces[i].end));
        CHECK((piece.starts == pieces[i].starts && piece.ends == pieces[i].ends && piece.after_cut == pieces[i].after_cut));
      }
      CHECK(!reader.next(piece));
    }
  }
  const TextSource known(half);
  folder.write("half", std::string(1000, 'x'));
  CHECK(error_of([&] { read_texts({.files = known, .cut = 199'999}, complete_utf8_prefix, pieces); }) ==
        "data: half ends at character 1000, before the cut at character 199999");
}

TEST_CASE("texts: reading 16 MB does not raise resident memory by more than 4 MB, whatever the words") {
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
    DocumentReader reader({.files = TextSource(folder / "large")}, prefix);
    for (DocumentPiece piece; reader.next(piece);) {
      bytes += std::ssize(piece.text);
      most = std::max(most, resident_bytes());
    }
    CHECK(bytes >= 16'000'000);
    CHECK(most - before < 4'000'000 + kSanitizerBytes);
  }
}

// Values from Python 3.11: len(re.split(r"\s+", text)), the word count of lm-eval.
TEST_CASE("text size: words are the parts between white space, empty ones at the ends of a document") {
  const ScratchFolder folder;
  const struct {
    const char* text;
    int64_t words;
  } cases[] = {{"one", 1}, {"one\n", 2}, {" = Robert <unk> = \n", 6}, {" \n \n", 2}, {"a\tb\nc  d", 4}, {"\n\n\n", 2},
      {"caf\xc3\xa9 \xe2\x80\x93 x", 3}, {"a\vb\fc", 3},
      {"a\x1c"
       "b\x1d"
       "c\x1e"
       "d\x1f"
       "e",
          5},
      {"a\xc2\x85"
       "b",
          2},
      {"a\xc2\xa0"
       "b",
          2},
      {"a\xe2\x80\x83"
       "b",
          2},
      {"a\xe3\x80\x80"
       "b",
          2},
      {"a\xe2\x80\x8b"
       "b",
          1},
      {"a\xef\xbb\xbf"
       "b",
          1},
      {"a\xe1\xa0\x8e"
       "b",
          1},
      {"a\xe2\x80\xa8\xe2\x80\xa9 b", 2},
      {"a\x1b"
       "b",
          1}};
  for (const auto& [each_text, words] : cases) {
    const char* const text = each_text;
    CAPTURE(text);
    const TextSize size = size_of_text({TextSource(folder.write("a.txt", text))});
    CHECK(size.words == words);
    CHECK(size.bytes == static_cast<int64_t>(std::string_view(text).size()));
  }
  const std::string lines = folder.write("a.jsonl", "{\"text\": \"one two\"}\n{\"text\": \"\"}\n{\"text\": \" three\"}\n");
  const TextSize size = size_of_text({TextSource(lines), {.format = format_of(kJsonl)}});
  CHECK(size.words == 2 + 1 + 2);
  CHECK(size.bytes == 13);
}

TEST_CASE("text size: WikiText" * doctest::test_suite("needs WikiText-2")) {
  for (const auto& [name, words, bytes] : {std::tuple{"valid", 213'888, 1'121'681}, {"test", 241'213, 1'256'449}}) {
    const std::string path = corpus(std::string("wikitext-2/wiki.") + name + ".tokens.gz");
    if (path.empty()) return test::skip("needs wikitext-2 under $RICCI_DATA");
    const TextSize size = size_of_text({TextSource(path)});
    CHECK(size.words == words);
    CHECK(size.bytes == bytes);
  }
}

TEST_CASE("text size: words that lie across blocks of the stream, and files with a line end between them") {
  const ScratchFolder folder;
  std::string text;
  for (int64_t i = 0; i < 100'000; ++i) text += std::string(static_cast<size_t>(1 + i % 13), 'x') + (i % 10 == 9 ? "\n" : " ");
  const TextSize size = size_of_text({TextSource(folder.write("a.txt", text))});
  CHECK(size.words == 100'001);
  CHECK(size.bytes == static_cast<int64_t>(text.size()));
  const std::string first = folder.write("b.txt", "one tw"), second = folder.write("c.txt", "o three");
  CHECK(size_of_text({TextSource({first, second})}).words == 3 + 2);  // "one tw\n" and "o three"
  const TextSize end = size_of_text({TextSource({first, second})}, 2);
  CHECK(end.words == 3 + 2);
  CHECK(end.bytes == 12);
  CHECK(size_of_text({TextSource({first, second})}, 4).words == 2 + 2);                        // "tw\n" and "o three"
  CHECK(size_of_text({TextSource({first, second})}, 7).words == 2);                            // "o three"
  CHECK(size_of_text({TextSource(folder / "a.txt")}, 500'000).bytes == size.bytes - 500'000);  // more than a block
}
