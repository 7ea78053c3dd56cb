// Formats chosen by names and first lines, and CSV.
#include "data/formats/formats.h"

#include <doctest/doctest.h>

#include "data/formats/documents.h"
#include "data/text/utf8.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace test_data;

namespace {

using Records = std::vector<std::pair<std::string, int32_t>>;

// The pieces of the documents, with their labels.
Records read(const std::vector<std::string>& paths, const DocumentOptions& options) {
  Records records;
  DocumentReader reader({.files = TextSource(paths), .options = options}, complete_utf8_prefix);
  for (DocumentPiece piece; reader.next(piece);) records.emplace_back(piece.text, piece.label);
  return records;
}

}  // namespace

TEST_CASE("the names of files ask for a format") {
  const ScratchFolder folder;
  folder.write("talks/a.jsonl.zst", "x");
  folder.write("plain/a.txt", "x");
  folder.write("deep/sub/sub/b.CSV", "x");
  folder.write("deep/.hidden/a.jsonl", "x");
  const auto format = [](const std::vector<std::string>& paths) { return std::string(name_of(format_of_names(paths).format)); };
  for (const char* name : {"a.jsonl", "x/a.jsonl.gz", "a.jsonl.zst", "a.jsonl.xz", "a.jsonl.bz2", "A.JSONL", "a.ndjson", "a.Jsonlines.GZ"})
    CHECK(format({name}) == "jsonl");
  for (const char* name : {"a.tsv", "a.tsv.gz", "a.TSV.Zst"}) CHECK(format({name}) == "tsv");
  for (const char* name : {"a.csv", "a.CSV.XZ"}) CHECK(format({name}) == "csv");
  for (const char* name : {"a.txt", "jsonl", "a.jsonl.tar.gz", "a.tsv.txt", "a.json", "acsv", "embedded", ""})
    CHECK(format({name}) == "text");
  CHECK(format({folder / "talks"}) == "jsonl");
  CHECK(format({folder / "plain"}) == "text");
  CHECK(format({folder / "deep"}) == "csv");
  CHECK(format({folder / "plain", "b.jsonl"}) == "jsonl");
  CHECK(format_of_names({folder / "plain", folder / "talks"}).file == "a.jsonl.zst");
}

TEST_CASE("an error of a file in a mixed folder says whose name chose the format") {
  const ScratchFolder folder;
  const std::string object = "{\"text\":\"a\"}\n", json = folder.write("d.jsonl", object), text = folder.write("one.txt", "plain\n");
  const auto error = [](const std::vector<std::string>& paths, const DocumentOptions& options) {
    return error_of([&] { read(paths, options); });
  };
  const DocumentOptions chosen{.format = format_of(kJsonl), .chosen_by = "d.jsonl"};
  CHECK(error({json, text}, chosen) == "one.txt:1: invalid JSON at byte 1 of 5 (format jsonl because of d.jsonl)");
  CHECK(error({folder.write("e.ndjson", object + "x"), json}, chosen) == "e.ndjson:2: invalid JSON at byte 1 of 1");
  CHECK(error({text}, {.format = format_of(kJsonl)}) == "one.txt:1: invalid JSON at byte 1 of 5");
}

TEST_CASE("a text that begins with JSON gets a line that names the format") {
  const ScratchFolder folder;
  const auto note = [&](const std::string& text) {
    return note_on({.files = TextSource(std::vector{folder.write("1.txt", "words"), folder.write("2.json", text)})}, false);
  };
  CHECK(note("\n[\n  {\"text\": \"a\"}]") == "2.json: is read as a text, but begins with a JSON array; format jsonl reads an object per "
                                             "line, as jq -c '.[]' 2.json writes them");
  const std::string object = "2.json: is read as a text, but begins with a JSON object; format jsonl reads an object per line";
  CHECK(note("{\"text\": \"a\"}\r\n{") == object);
  CHECK(note(" { \"text\": \"" + std::string(1'000'000, 'a')) == object);
  for (const char* text : {"{\n  \"pretty\": 1\n}", "[1] said", "{{\"a\"}}", "[", "\n \n"}) CHECK(note(text) == "");
}

TEST_CASE("conversations with keys that have no effect get a line that names them") {
  const ScratchFolder folder;
  const auto note = [&](const std::string& lines) {
    return note_on({.files = TextSource(std::vector{folder.write("a", lines)}), .options = {.format = format_of(kMessages)}}, true);
  };
  const std::string known =
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "weight": 0, "train": true}]})";
  CHECK(note(known + "\n" + known) == "");
  CHECK(
      note(R"({"id": "a", "tools": [], "messages": [{"role": "user", "content": "a", "tool_calls": [], "train": false, "weight": 0}]})") ==
      "");
  CHECK(note(R"({"messages": ["a"]})") == "");
  CHECK(note(known + "\n" + R"({"system": "s", "messages": [{"role": "user", "content": "a", "weight": 1, "name": "n"}]})") ==
        R"(a: these keys have no effect: "name", "system", "weight")");
  CHECK(note("no JSON\n" + known) == "");
}

TEST_CASE("CSV, as in RFC 4180") {
  const ScratchFolder folder;
  const auto records = [&](const std::string& text, const DocumentOptions& options) { return read({folder.write("r", text)}, options); };
  const DocumentOptions csv{.format = format_of(kCsv)},
      named{.format = format_of(kCsv), .text_field = "b c", .label_field = "l", .classes = 2, .labels = {"no", "yes"}};
  CHECK(records("id,text\n1,one\n\n2,\"a, \"\"b\"\"\r\n\r\nc\"\n3,\"\"\n4,\n", csv) ==
        Records{{"one", -1}, {"a, \"b\"\n\nc", -1}, {"", -1}, {"", -1}});
  CHECK(records("\xef\xbb\xbf\"l\",\"b c\"\r\nyes,\"\"\"\"\r\n\"0\",x y ", named) == Records{{"\"", 1}, {"x y ", 0}});
  CHECK(word_labels({.files = TextSource(folder.write("w.csv", "text,l\na,yes\nb,\"n\no\"\n")),
            .options = {.format = format_of(kCsv), .label_field = "l", .classes = 2}}) == std::vector<std::string>{"n\no", "yes"});
  CHECK(records("text\n" + std::string(300'000, 'x') + "\n", csv).size() == 2);  // two pieces

  const auto error = [&](const std::string& text, const DocumentOptions& options) { return error_of([&] { records(text, options); }); };
  CHECK(error("text,l\na,1\n\"b\nc\",2\nd\n", csv) == "r:5: has 1 columns, expected 2 as in the header");
  CHECK(error("text\na\n\"b\n\nc\n", csv) == "r:3: the quote that begins column 1 is not closed");
  CHECK(error("text,l\n\"a\nb\"c,1\n", csv) == "r:2: text follows the closing quote of column 1");
  CHECK(error("text,l\n1,5\" disk\nx\n", csv) == "r:2: column 2 contains a quote, but does not begin with a quote");
  CHECK(error("\"text\na\n", csv) == "r:1: the quote that begins column 1 is not closed");
  CHECK(error("body,l\na,1\n", csv) == "r:2: has no column 'text', only body and l");
  CHECK(error("b c,label\na,yes\n", named) == "r:2: has no column 'l', only b c and label");
  CHECK(error("b c,l\na,maybe\n", named) == "r:2: label 'maybe' is not one of no, yes");
  CHECK(contains(error("text\n\"" + std::string(DocumentReader::kMaxLine + 300'000, '\n'), csv),
      "r:2: the line has more than 67108864 bytes, or a quote is not closed"));
}

TEST_CASE("labels that are words: a line without the format ends the search, a damaged file is an error") {
  const ScratchFolder folder;
  const auto labels = [](const std::string& path) {
    return word_labels({.files = TextSource(path), .options = {.format = format_of(kTsv), .label_field = "2", .classes = 2}});
  };
  CHECK(labels(folder.write("bad.tsv", "a\tyes\nb\tno\nc\nd\tmaybe\n")) == std::vector<std::string>{"no", "yes"});
  std::string lines;
  for (int i = 0; i < 100'000; ++i) lines += "text " + std::to_string(i) + (i % 2 ? "\tyes\n" : "\tno\n");
  const std::string packed = read_file(write_compressed(folder, "a.tsv.gz", lines, ARCHIVE_FILTER_GZIP));
  const std::string cut = folder.write("cut.tsv.gz", packed.substr(0, packed.size() / 2));
  CHECK(labels(folder / "a.tsv.gz") == std::vector<std::string>{"no", "yes"});
  CHECK(error_of([&] { labels(cut); }) == "data: cannot read " + cut + ": cut short");
}
