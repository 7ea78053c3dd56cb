// Documents from text, JSONL and TSV, from archives and in their encodings; error texts for other files.
#include "data/formats/documents.h"

#include <doctest/doctest.h>

#include <sstream>
#include <tuple>

#include "data/text/utf8.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace test_data;

namespace {

// A text of the files with these names, separated by commas.
TextSource open_paths(const std::string& paths) {
  std::vector<std::string> list;
  std::istringstream names(paths);
  for (std::string name; std::getline(names, name, ',');) list.push_back(name);
  return TextSource(list);
}

std::vector<DocumentPiece> pieces_of(
    const std::string& paths, const DocumentOptions& options, const InputPlace& from = {}, Encoding encoding = Encoding::utf8) {
  DocumentReader reader({.files = open_paths(paths).read_as(encoding), .options = options}, complete_utf8_prefix, from);
  std::vector<DocumentPiece> pieces;
  for (DocumentPiece piece; reader.next(piece);) pieces.push_back(piece);
  return pieces;
}

std::vector<std::string> documents_of(const std::string& paths, const DocumentOptions& options, Encoding encoding = Encoding::utf8) {
  std::vector<std::string> documents;
  bool open = false;
  for (const DocumentPiece& piece : pieces_of(paths, options, {}, encoding)) {
    CHECK(piece.starts == !open);
    CHECK(piece.text.size() <= DocumentReader::kPiece);
    if (piece.starts) documents.emplace_back();
    documents.back() += piece.text;
    open = !piece.ends;
  }
  CHECK(!open);
  return documents;
}

using Strings = std::vector<std::string>;

std::string joined_text(const std::string& paths) {
  std::string text;
  DocumentReader reader({.files = open_paths(paths)}, complete_utf8_prefix);
  for (DocumentPiece piece; reader.next(piece);) text += piece.text;
  return text;
}

}  // namespace

TEST_CASE("files, lines, paragraphs and texts between separators") {
  const ScratchFolder folder;
  const std::string path = folder.write("a.txt", "one\ntwo\n\nthree\nfour\n\n\n\nfive");
  CHECK(documents_of(path, {}) == Strings{"one\ntwo\n\nthree\nfour\n\n\n\nfive"});
  CHECK(documents_of(path, {.documents = "line"}) == Strings{"one\n", "two\n", "\n", "three\n", "four\n", "\n", "\n", "\n", "five\n"});
  CHECK(
      documents_of(path, {.documents = "line", .keep_line_ends = false}) == Strings{"one", "two", "", "three", "four", "", "", "", "five"});
  CHECK(documents_of(path, {.documents = "blank_line"}) == Strings{"one\ntwo", "three\nfour", "five"});
  CHECK(documents_of(path, {.documents = "o"}) == Strings{"ne\ntw", "\n\nthree\nf", "ur\n\n\n\nfive"});
  CHECK(documents_of(path + "," + folder.write("b.txt", "six\n"), {}) == Strings{"one\ntwo\n\nthree\nfour\n\n\n\nfive\n", "six\n"});
}

TEST_CASE("long documents come in pieces, wherever their bytes come from") {
  const ScratchFolder folder;
  for (const size_t characters : {100'000u, 131'072u, 131'073u, 300'000u}) {
    std::string text;
    for (size_t i = 0; i < characters; ++i) text += i % 7 ? "é" : "ab";
    const std::string all = text + "<end>" + text + "<end>short", path = folder.write("long.txt", all);
    CHECK(documents_of(path, {.documents = "<end>"}) == Strings{text, text, "short"});
    const std::string packed = write_compressed(folder, "long.zst", all, ARCHIVE_FILTER_ZSTD);
    const auto plain = pieces_of(path, {.documents = "<end>"}), unpacked = pieces_of(packed, {.documents = "<end>"});
    REQUIRE(plain.size() == unpacked.size());
    for (size_t i = 0; i < plain.size(); ++i) CHECK((plain[i].text == unpacked[i].text && plain[i].end == unpacked[i].end));
    CHECK(plain.size() == 1 + 2 * ((text.size() + DocumentReader::kPiece - 1) / DocumentReader::kPiece));
  }
}

TEST_CASE("reading continues at the end of any piece") {
  const ScratchFolder folder;
  const std::string long_text = mixed_text(130'000, 1),
                    paths = folder.write("a.txt", "x<end>" + long_text + "<end>\n<end><end>y") + "," + folder.write("b.txt", long_text);
  const std::string lines =
      folder.write("c.jsonl", "{\"text\":\"a\"}\n{\"text\":\"" + std::string(300'000, 'b') + "\"}\n\n{\"text\":\"c\"}");
  const std::string table = folder.write("a.csv", "id,text\n1,a\n2,\"b\n\n\"\"c\"\n3," + std::string(600'000, 'd') + "\n") + "," +
                            folder.write("b.csv", "text\ne\n\"\n\"\n");
  const std::string wiki = folder.write("wiki", " \n = One = \n \n" + std::string(600'000, 'a') + " \n \n b \n");
  for (const auto& [path, options] : {std::pair{paths, DocumentOptions{.documents = "<end>"}}, {paths, DocumentOptions{}},
           {paths, DocumentOptions{.documents = "line"}}, {lines, DocumentOptions{.format = format_of(kJsonl)}},
           {table, DocumentOptions{.format = format_of(kCsv)}}, {wiki, DocumentOptions{.documents = "blank_line"}}}) {
    const auto all = pieces_of(path, options);
    for (size_t done = 0; done < all.size(); done += 1 + all.size() / 20) {
      const auto rest = pieces_of(path, options, all[done].end);
      REQUIRE(rest.size() == all.size() - done - 1);
      for (size_t i = 0; i < rest.size(); ++i)
        REQUIRE(
            (rest[i].text == all[done + 1 + i].text && rest[i].end == all[done + 1 + i].end && rest[i].starts == all[done + 1 + i].starts));
    }
  }
}

TEST_CASE("members of tar archives, compressed or not, but no folders and hidden files, as documents or as one text") {
  const ScratchFolder folder;
  const std::string large = mixed_text(300'000, 2) + "\n";
  const std::vector<std::pair<std::string, std::string>> files = {
      {"a/", ""}, {"a/one.txt", "one"}, {"a/.hidden", "no"}, {"./.git/config", "no"}, {"empty.txt", ""}, {"./b/../two.txt", large}};
  for (const auto& [name, filter] :
      {std::pair{"x.tar", ARCHIVE_FILTER_NONE}, {"x.tar.gz", ARCHIVE_FILTER_GZIP}, {"x.tar.zst", ARCHIVE_FILTER_ZSTD}}) {
    const std::string path = write_tar(folder, name, files, filter);
    CHECK(documents_of(path, {}) == Strings{"one\n", large});
    CHECK(pieces_of(path, {})[0].place == std::string(name) + ": a/one.txt");
    CHECK((joined_text(path + "," + folder.write("b.txt", "end")) == "one\n" + large + "end"));
  }
  const std::string whole = read_file(folder / "x.tar");
  const std::string cut = folder.write("cut.tar", whole.substr(0, whole.size() / 2));
  CHECK(contains(error_of([&] { documents_of(cut, {}); }), "data: cannot read " + folder / "cut.tar" + ": "));
  const std::string damaged = folder.write("cut.tar.gz", read_file(folder / "x.tar.gz").substr(0, 1000));
  CHECK(contains(error_of([&] { documents_of(damaged, {}); }), "cut.tar.gz: cut short"));
}

TEST_CASE("a file that is packed in another way is not taken for a text") {
  const ScratchFolder folder;
  const auto error = [&](const std::string& name, std::string_view bytes) {
    return error_of([&] { documents_of(folder.write(name, bytes), {}); });
  };
  const std::string zeros(10'240, '\0');  // also the end of an archive
  for (const std::string& bytes : {zeros, zeros + "x"}) {
    CHECK(error("zeros", bytes) ==
          "zeros: byte 0 (value 0x00) is not text; it looks like UTF-16 or no text at all; encoding bytes reads any file");
    CHECK(documents_of(folder / "zeros", {}, Encoding::bytes) == Strings{bytes});
  }
  const std::string gzip = read_file(write_compressed(folder, "a.gz", "text", ARCHIVE_FILTER_GZIP));
  const std::string tar = write_tar(folder, "x.tar", {{"a.txt", "text"}, {"b.txt.gz", gzip}}, ARCHIVE_FILTER_NONE);
  CHECK(error_of([&] { documents_of(tar, {}); }) == "data: x.tar: b.txt.gz is compressed as gzip; archive members must not be compressed");
  const std::string holes = write_tar(folder, "x.tar", {{"a.sparse", std::string(4'096, 'x')}}, ARCHIVE_FILTER_NONE);
  CHECK(error_of([&] { documents_of(holes, {}); }) ==
        "data: x.tar: a.sparse is a sparse member; to read it, pack the archive without --sparse");
}

TEST_CASE("archives that were joined are read to their end, and so is the checksum of a compressed one") {
  const ScratchFolder folder;
  for (const int filter : {ARCHIVE_FILTER_NONE, ARCHIVE_FILTER_GZIP, ARCHIVE_FILTER_ZSTD}) {
    const std::string one = read_file(write_tar(folder, "one.tar", {{"a", "one"}, {"b", "two"}}, filter)),
                      other = read_file(write_tar(folder, "other.tar", {{"c", "three"}}, filter));
    CAPTURE(filter);
    CHECK(documents_of(folder.write("both.tar", one + other), {}) == Strings{"one\n", "two\n", "three"});
    const std::string error = error_of([&] { documents_of(folder.write("both.tar", one + other.substr(0, other.size() / 4)), {}); });
    CHECK(contains(error, "both.tar: "));
  }
  std::string gzip = read_file(write_tar(folder, "x.tar.gz", {{"a", mixed_text(300'000, 4)}}, ARCHIVE_FILTER_GZIP));
  gzip[gzip.size() - 8] = static_cast<char>(gzip[gzip.size() - 8] ^ 1);
  CHECK(contains(error_of([&] { documents_of(folder.write("x.tar.gz", gzip), {}); }), "x.tar.gz: incorrect data check"));
}

TEST_CASE("a tar archive that was cut is an error, wherever it was cut") {
  const ScratchFolder folder;
  const std::string long_name(300, 'n'), text(600, 'x');  // a long name has its own headers
  const std::string whole =
      read_file(write_tar(folder, "x.tar", {{"one", text}, {long_name, text}, {"zeros", std::string(512, '\0')}}, ARCHIVE_FILTER_NONE));
  const size_t end = whole.find_last_not_of('\0') / 512 * 512 + 1024;  // end of the last member
  const auto cut_at = [&](size_t bytes) { return folder.write("cut.tar", whole.substr(0, bytes)); };
  for (const size_t bytes : {262, 300, 511})  // in its first header
    CHECK(contains(error_of([&] { documents_of(cut_at(bytes), {}, Encoding::bytes); }), "data: cannot read " + folder / "cut.tar" + ": "));
  int after_members = 0;
  for (size_t bytes = 512; bytes <= end; bytes += 512) {
    const std::string error = error_of([&] { documents_of(cut_at(bytes), {}, Encoding::bytes); });
    CAPTURE(bytes);
    CHECK(contains(error, "data: cannot read " + folder / "cut.tar" + ": "));
    after_members +=
        error == "data: cannot read " + folder / "cut.tar" + ": the end of the archive is missing: it was cut short after a member";
  }
  CHECK(after_members >= 3);
  for (const size_t blocks : {1, 2, 3}) CHECK(documents_of(cut_at(end + 512 * blocks), {}, Encoding::bytes).size() == 3);
}

TEST_CASE("encodings") {
  const ScratchFolder folder;
  const std::string latin = folder.write("latin.txt", "caf\xe9 \xff"), mixed = mixed_text(300'000, 3),
                    cut = folder.write("cut.txt", "abc\xe2\x82");
  CHECK(documents_of(latin, {}, Encoding::latin1) == Strings{"café ÿ"});
  CHECK(documents_of(latin, {}, Encoding::bytes) == Strings{"caf\xe9 \xff"});
  CHECK(error_of([&] { documents_of(latin, {}); }) ==
        "latin.txt: byte 3 (value 0xe9) is not valid UTF-8; encoding latin-1, or encoding bytes with tokenizer byte, reads any text");
  CHECK(error_of([&] { documents_of(cut, {}); }) ==
        "cut.txt: byte 3 (value 0xe2) is not valid UTF-8; encoding latin-1, or encoding bytes with tokenizer byte, reads any text");
  CHECK(documents_of(folder.write("mixed.txt", mixed), {}) == Strings{mixed});
  CHECK(error_of([&] { documents_of(folder.write("late.txt", mixed + "\x80"), {}); }) ==
        format_message(
            "late.txt: byte {} (value 0x80) is not valid UTF-8; encoding latin-1, or encoding bytes with tokenizer byte, reads any text",
            {mixed.size()}));
}

namespace {

std::string replaced(std::string text, std::string_view from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

// Changes of other programs to a text that looks the same to its reader.
const struct {
  const char* name;
  std::string (*make)(const std::string& clean, const std::string& between);  // between: text between two documents
} kDirt[] = {
    {"line ends of Windows", [](const std::string& clean, const std::string&) { return replaced(clean, "\n", "\r\n"); }},
    {"a mark", [](const std::string& clean, const std::string&) { return "\xef\xbb\xbf" + clean; }},
    {"both", [](const std::string& clean, const std::string&) { return "\xef\xbb\xbf" + replaced(clean, "\n", "\r\n"); }},
    {"more empty lines",
        [](const std::string& clean, const std::string& between) {
          return between.empty() ? clean : "\n" + replaced(clean, between, between + "\n\n") + "\n";
        }},
    {"no last line end",
        [](const std::string& clean, const std::string& between) { return between.empty() ? clean : clean.substr(0, clean.size() - 1); }},
    {"all of it",
        [](const std::string& clean, const std::string& between) {
          const std::string lines = between.empty() ? clean : "\n" + replaced(clean.substr(0, clean.size() - 1), between, between + "\n");
          return "\xef\xbb\xbf" + replaced(lines, "\n", "\r\n");
        }},
};

}  // namespace

TEST_CASE("dirt makes no other documents, labels or text: every reader") {
  const ScratchFolder folder;
  const std::string text = "one\ntwo\rtwo\n\nthr\u00e9e\nfour\n";
  const struct {
    const char* name;
    DocumentOptions options;
    std::string clean, between;
    Strings documents;
    bool lines_count = false;  // an empty line is a document
  } readers[] = {
      {"files", {}, text, "", {text}},
      {"lines", {.documents = "line"}, text, "", {"one\n", "two\rtwo\n", "\n", "thr\u00e9e\n", "four\n"}},
      {"lines without ends", {.documents = "line", .keep_line_ends = false}, text, "", {"one", "two\rtwo", "", "thr\u00e9e", "four"}},
      {"paragraphs", {.documents = "blank_line"}, text, "\n\n", {"one\ntwo\rtwo", "thr\u00e9e\nfour"}},
      {"jsonl", {.format = format_of(kJsonl), .label_field = "l", .classes = 2, .labels = {"no", "yes"}},
          "{\"text\":\"a\\r\\nb\",\"l\":\"yes\"}\n{\"text\":\"\u00e9\",\"l\":\"no\"}\n", "\n", {"a\r\nb", "\u00e9"}},
      {"tsv", {.format = format_of(kTsv), .text_field = "1", .label_field = "2", .classes = 2, .labels = {"no", "yes"}},
          "a b\tyes\n\u00e9\tno\n", "\n", {"a b", "\u00e9"}},
      {"csv", {.format = format_of(kCsv), .label_field = "l", .classes = 2, .labels = {"no", "yes"}}, "text,l\na b,yes\n\"\u00e9\",no\n",
          "\n", {"a b", "\u00e9"}},
      {"messages", {.format = format_of(kMessages)}, "{\"messages\":[]}\n{\"messages\":[1]}\n", "\n",
          {"{\"messages\":[]}", "{\"messages\":[1]}"}},
  };
  for (const auto& reader : readers) {
    CAPTURE(std::string(reader.name));
    const auto clean = pieces_of(folder.write("clean", reader.clean), reader.options);
    CHECK(documents_of(folder / "clean", reader.options) == reader.documents);
    for (const auto& dirt : kDirt) {
      CAPTURE(std::string(dirt.name));
      const std::string dirty = dirt.make(reader.clean, reader.between);
      const std::string path = folder.write("dirty", dirty), twice = path + "," + folder / "dirty";
      const std::string tar = write_tar(folder, "dirty.tar", {{"a", dirty}, {"b", dirty}}, ARCHIVE_FILTER_GZIP);
      for (const std::string& paths : {path, write_compressed(folder, "dirty.gz", dirty, ARCHIVE_FILTER_GZIP), twice, tar}) {
        const auto pieces = pieces_of(paths, reader.options);
        REQUIRE(pieces.size() == clean.size() * (paths == twice || paths == tar ? 2 : 1));
        for (size_t i = 0; i < pieces.size(); ++i)
          CHECK((pieces[i].text == clean[i % clean.size()].text && pieces[i].label == clean[i % clean.size()].label));
      }
    }
  }
  for (const auto& dirt : kDirt) {
    const std::string dirty = folder.write("dirty", dirt.make(text, "")),
                      tar = write_tar(folder, "a.tar", {{"a", read_file(dirty)}}, ARCHIVE_FILTER_NONE);
    CHECK(joined_text(dirty + "," + tar) == text + (text.ends_with('\n') ? "" : "\n") + text);
    CHECK(documents_of(dirty, {}, Encoding::bytes) == Strings{read_file(dirty)});
  }
}

TEST_CASE("bytes that are not text are an error with a guess at their encoding, for every reader") {
  const ScratchFolder folder;
  std::string ids;  // nanoGPT's ids, two bytes each
  for (const int id : {5962, 22307, 25, 198, 8421}) ids += {static_cast<char>(id & 0xff), static_cast<char>(id >> 8)};
  const std::string utf16("\xff\xfe"
                          "a\0b\0",
      6),
      utf16_big("\xfe\xff\0a", 4);
  const auto iconv = [](const std::string& name) { return "it looks like " + name + ", and iconv -f " + name + " -t UTF-8 converts it"; };
  const std::string bin = "it looks like ids without a header, such as nanoGPT's train.bin, which ricci prepare --format u16 reads; "
                          "if it holds anything else, leave it out",
                    utf = iconv("UTF-16"), nul = "it looks like UTF-16 or no text at all; encoding bytes reads any file";
  const std::tuple<const char*, std::string, std::string> files[] = {
      {"train.bin", ids, "train.bin: byte 5 (value 0x00) is not text; " + bin},
      {"other.bin", std::string("\x42\x01\x02\x03\x01\0\0\0", 8) + ids, "other.bin: byte 5 (value 0x00) is not text; " + bin},
      {"a.txt", utf16, "a.txt: byte 0 (value 0xff) is not valid UTF-8; " + utf},
      {"a.txt", utf16_big, "a.txt: byte 0 (value 0xfe) is not valid UTF-8; " + utf},
      {"a.txt", utf16.substr(2), "a.txt: byte 1 (value 0x00) is not text; " + iconv("UTF-16LE")},
      {"a.txt", utf16.substr(1, 4),
          "a.txt: byte 0 (value 0xfe) is not valid UTF-8; encoding latin-1, or encoding bytes with tokenizer byte, reads any text"},
      {"a.txt", std::string("\0a\0b", 4), "a.txt: byte 0 (value 0x00) is not text; " + iconv("UTF-16BE")},
      {"a.txt", std::string("\xff\xfe\0\0a\0\0\0", 8), "a.txt: byte 0 (value 0xff) is not valid UTF-8; " + iconv("UTF-32")},
      {"a.txt", std::string("\0\0\xfe\xff\0\0\0a", 8), "a.txt: byte 0 (value 0x00) is not text; " + iconv("UTF-32")},
      {"a.txt", std::string("a\0\0\0b\0\0\0", 8), "a.txt: byte 1 (value 0x00) is not text; " + nul},
      {"a.txt",
          std::string("\xef\xbb\xbf"
                      "a\r\n\0",
              7),
          "a.txt: byte 6 (value 0x00) is not text; " + nul}};
  for (const auto& [name, bytes, error] : files) {
    const std::string path = folder.write(name, bytes), innocent = folder.write("innocent.txt", "{\"text\":\"a\"}\n"),
                      table = folder.write("innocent.csv", "text\na\n");
    for (const FormatTraits* const row : kFormats)
      CHECK(error_of([&] { documents_of((row == &kCsv ? table : innocent) + "," + path, {.format = format_of(*row)}); }) == error);
    CHECK(error_of([&] { size_of_text({open_paths(innocent + "," + path)}); }) == error);
    CHECK(documents_of(path, {}, Encoding::bytes) == Strings{bytes});
  }
  const std::string packed = write_tar(folder, "x.tar", {{"a", "text"}, {"b", utf16}}, ARCHIVE_FILTER_GZIP);
  CHECK(error_of([&] { documents_of(packed, {}); }) == "x.tar: b: byte 0 (value 0xff) is not valid UTF-8; " + utf);
}

TEST_CASE("a text is decoded to the same, wherever its blocks end") {
  const std::string dirty = "\xef\xbb\xbf"
                            "a\r\n\r\r\nb\n\xef\xbb\xbf\u00e9\xf0\x9d\x84\x9e\r";
  for (size_t first = 0; first <= dirty.size(); ++first)
    for (size_t second = first; second <= dirty.size(); ++second) {
      TextDecoder decoder(Encoding::utf8);
      std::string text;
      for (int file = 0; file < 2; ++file) {
        for (const std::string& block : {dirty.substr(0, first), dirty.substr(first, second - first), dirty.substr(second)})
          decoder.append(block, "a", text);
        decoder.finish("a", text);
      }
      const std::string once = "a\n\r\nb\n\xef\xbb\xbf\u00e9\xf0\x9d\x84\x9e\r";
      REQUIRE(text == once + once);
    }
}

TEST_CASE("JSONL and TSV, with labels") {
  const ScratchFolder folder;
  const auto read = [&](const std::string& text, const DocumentOptions& options) {
    std::vector<std::pair<std::string, int32_t>> records;
    for (const DocumentPiece& piece : pieces_of(folder.write("r", text), options)) records.emplace_back(piece.text, piece.label);
    return records;
  };
  using Records = std::vector<std::pair<std::string, int32_t>>;
  const DocumentOptions json{.format = format_of(kJsonl)},
      labelled{.format = format_of(kJsonl), .text_field = "t", .label_field = "l", .classes = 3};
  CHECK(read("{\"text\":\"a\\nb\"}\r\n\n{\"x\":1,\"text\":\"\\u00e9\"}", json) == Records{{"a\nb", -1}, {"é", -1}});
  CHECK(read("{\"t\":\"a\",\"l\":2}\n{\"l\":0,\"t\":\"\"}", labelled) == Records{{"a", 2}, {"", 0}});
  const DocumentOptions tsv{.format = format_of(kTsv), .text_field = "2", .label_field = "1", .classes = 2};
  CHECK(read("0\ta b\tx\n1\tc\n", tsv) == Records{{"a b", 0}, {"c", 1}});
  CHECK(read("0\ta b\tx\n1\tc\n", {.format = format_of(kTsv)}) == Records{{"x", -1}, {"c", -1}});

  const auto error = [&](const std::string& text, const DocumentOptions& options) { return error_of([&] { read(text, options); }); };
  const std::string more = "; set more classes, or list all labels in the key labels, such as [1, 2, 5]",
                    words = "; list words in the key labels, such as [no, yes]";
  CHECK(error("{\"text\":\"a\"}\n{\"text\":\"b\"", json) == "r:2: invalid JSON at byte 12 of 11");
  CHECK(error("{\"text\":\"a\",\"score\":NaN}", json) == "r:1: invalid JSON at byte 21 of 24; JSON has no NaN");
  CHECK(error("{\"text\":\"a\",\"score\": -Infinity}", json) == "r:1: invalid JSON at byte 23 of 31; JSON has no Infinity");
  CHECK(error("{\"text\":None}", json) == "r:1: invalid JSON at byte 9 of 13; JSON has no None");
  CHECK(error("{\"messages\":[]}", json) == "r:1: has no text \"text\"; format messages reads conversations");
  CHECK(error("[1]", json) == "r:1: is not a JSON object");
  CHECK(error("{\"body\":\"a\"}", json) == "r:1: has no text \"text\"");
  CHECK(error("{\"text\":5}", json) == "r:1: has no text \"text\"");
  CHECK(error(std::string(100, '['), json) == "r:1: the JSON is nested more than 64 levels deep");
  CHECK(error("{\"t\":\"a\"}", labelled) == "r:1: has no label \"l\"");
  CHECK(error("{\"t\":\"a\",\"l\":3}", labelled) == "r:1: label 3 is out of range for 3 classes, expected 0 to 2" + more);
  CHECK(error("{\"t\":\"a\",\"l\":-1}", labelled) == "r:1: label -1 is out of range for 3 classes, expected 0 to 2" + more);
  CHECK(error("{\"t\":\"a\",\"l\":\"pos\"}", labelled) == "r:1: label \"pos\" is not an integer from 0 to 2" + words);
  CHECK(error("{\"t\":\"a\",\"l\":1.5}", labelled) == "r:1: label 1.5 is not an integer from 0 to 2");
  CHECK(error("1\ta\n2\tb\n", tsv) == "r:2: label 2 is out of range for 2 classes, expected 0 to 1" + more);
  CHECK(error("1\ta\npos\tb\n", tsv) == "r:2: label 'pos' is not an integer from 0 to 1" + words);
  CHECK(error("1\n", tsv) == "r:1: has 1 columns, but text_field is column 2");
  CHECK(error("{\"text\":\"\xff\"}", json) ==
        "r: byte 9 (value 0xff) is not valid UTF-8; encoding latin-1, or encoding bytes with tokenizer byte, reads any text");
  CHECK(contains(error(std::string(DocumentReader::kMaxLine + 300'000, 'x'), json), "r:1: the line has more than 67108864 bytes"));
}

TEST_CASE("options that do not belong together") {
  const auto error = [](const DocumentOptions& options) { return error_of([&] { check(options); }); };
  CHECK(error({.documents = ""}) == "documents: is empty, expected file, line, blank_line, or the text between two documents");
  CHECK(error({.format = format_of(kTsv), .documents = "line"}) == "documents: applies only to text; in tsv each line is a document");
  CHECK(error({.text_field = "a"}) == "text_field: only jsonl, tsv and csv have fields");
  CHECK(error({.label_field = "a"}) == "label_field: only jsonl, tsv and csv have fields");
  CHECK(error({.format = format_of(kJsonl), .label_field = "a"}) == "label_field: requires the key classes or labels");
  CHECK(error({.format = format_of(kJsonl), .classes = 2}) == "classes, labels: require the key label_field");
  CHECK(error({.format = format_of(kTsv), .text_field = "text"}) == "text_field: 'text' is not a column number (the first column is 1)");
  CHECK(error({.format = format_of(kTsv), .text_field = "0"}) == "text_field: '0' is not a column number (the first column is 1)");
  const ScratchFolder folder;
  const Documents columns{TextSource(folder.write("a.tsv", "good\tfilm\n")),
      {.format = format_of(kTsv), .text_field = "2", .label_field = "label", .classes = 2}};
  CHECK(error_of([&] { word_labels(columns); }) == "label_field: 'label' is not a column number (the first column is 1)");
}

TEST_CASE("lines of white space separate paragraphs") {
  const ScratchFolder folder;
  const DocumentOptions paragraphs{.documents = "blank_line"};
  CHECK(documents_of(folder.write("wiki", " \n = One = \n \n a \n b\n \t\r\n\f\n\u00a0\nc  \n \n  "), paragraphs) ==
        Strings{" = One = ", " a \n b", "\u00a0\nc  "});
  CHECK(documents_of(folder.write("blank", " \n\t"), paragraphs).empty());
  CHECK(documents_of(folder.write("two", "a\n \n"), paragraphs) == documents_of(folder.write("one", "a"), paragraphs));
  CHECK(documents_of(folder / "wiki", {.documents = "line", .keep_line_ends = false})[0] == " ");
  // White space between two blocks, more than a piece of it, and more than a blank line can have.
  for (const size_t blanks : {255'990u, 262'144u, 300'000u, 600'000u}) {
    const std::string text = "a\n" + std::string(blanks, ' ') + "\n" + std::string(blanks, ' ') + "b";
    const Strings found = documents_of(folder.write("long", text), paragraphs);
    CHECK(found.size() == (blanks <= DocumentReader::kPiece ? 2u : 1u));
    CHECK(found.back().ends_with(std::string(blanks, ' ') + "b"));
  }
}

TEST_CASE("documents as texts: each one, only the first, and the messages of conversations") {
  const ScratchFolder folder;
  const auto texts_of = [](const Documents& documents) {
    std::vector<std::string> all;
    for_each_text(documents, complete_utf8_prefix, [&](const DocumentPiece& piece) {
      CHECK(piece.first_byte == 0);
      CHECK((piece.starts && piece.ends));
      all.push_back(piece.place + " " + piece.text);
    });
    return all;
  };
  const TextSource lines(folder.write("a.jsonl", "{\"text\":\"ab\"}\n\n{\"text\":\"ab\\ncd\"}\n{\"text\":\"\"}\n{\"text\":\"x\"}"));
  const DocumentOptions jsonl{.format = format_of(kJsonl)}, messages{.format = format_of(kMessages)};
  CHECK(texts_of({.files = lines, .options = jsonl}) == Strings{"a.jsonl:1 ab", "a.jsonl:3 ab\ncd", "a.jsonl:5 x"});
  CHECK(texts_of({.files = lines, .options = jsonl, .limit = 2}) == Strings{"a.jsonl:1 ab", "a.jsonl:3 ab\ncd"});
  const std::string talk = R"({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]})";
  CHECK(texts_of({.files = TextSource(folder.write("t.jsonl", talk + "\n" + talk)), .options = messages}) ==
        Strings{"t.jsonl:1 user", "t.jsonl:1 hi", "t.jsonl:1 assistant", "t.jsonl:1 yo", "t.jsonl:2 user", "t.jsonl:2 hi",
            "t.jsonl:2 assistant", "t.jsonl:2 yo"});
  const TextSource bad(folder.write("bad.jsonl", talk + "\n{}"));
  CHECK(error_of([&] { texts_of({.files = bad, .options = messages}); }) == "bad.jsonl:2: expected an object with a list \"messages\"");
}
