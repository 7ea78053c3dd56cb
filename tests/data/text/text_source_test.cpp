// Streams equal the file in any packing; paths, lists and folders; words counted by hand and the published counts of a real corpus; error
// texts; memory.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "data/text/text.h"
#include "data/text/utf8.h"
#include "tests/bounded.h"
#include "tests/data/files.h"
#include "tests/skip.h"

using namespace ricci;
using namespace test_data;

namespace {

std::string read_all(const TextSource& source) {
  std::string text;
  for (TextStream stream(source); stream.next_member();)
    for (std::string_view block; !(block = stream.next()).empty();) text += block;
  return text;
}

std::pair<int64_t, int64_t> change_time(const std::string& path) {
  struct stat status = {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return {status.st_ctim.tv_sec, status.st_ctim.tv_nsec};
}

std::string read_error(const std::string& path) {
  return error_of([&] { read_all(TextSource(path)); });
}

}  // namespace

TEST_CASE("text source: plain and compressed files give the same bytes") {
  const ScratchFolder folder;
  const std::string text = mixed_text(150'001, 1);
  folder.write("plain.txt", text);
  write_compressed(folder, "a.gz", text, ARCHIVE_FILTER_GZIP);
  write_compressed(folder, "a.zst", text, ARCHIVE_FILTER_ZSTD);
  write_compressed(folder, "a.xz", text, ARCHIVE_FILTER_XZ);
  write_compressed(folder, "a.bz2", text, ARCHIVE_FILTER_BZIP2);
  REQUIRE(std::filesystem::file_size(folder / "a.zst") < text.size() / 2);
  for (const char* name : {"plain.txt", "a.gz", "a.zst", "a.xz", "a.bz2"}) {
    CAPTURE(name);
    CHECK(read_all(TextSource(folder / name)) == text);
  }
  const std::string gz = read_file(folder / "a.gz");
  CHECK(read_all(TextSource(folder.write("twice.gz", gz + gz))) == text + text);  // members of one file are joined
}

TEST_CASE("text source: text that looks like another format stays as it is") {
  const ScratchFolder folder;
  for (const std::string text : {"begin 644 a\n#0V%T\n`\nend\n", "#mtree\na type=file\n", "x", "BZh", "\xef\xbb\xbe mark"})
    CHECK(read_all(TextSource(folder.write("odd", text))) == text);
}

TEST_CASE("text source: lists keep their order, folders are sorted, hidden files are left out") {
  const ScratchFolder folder;
  const std::string b = folder.write("texts/b.txt", "bee ");
  const std::string a = folder.write("texts/a.txt", "ape ");
  folder.write("texts/.hidden", "no ");
  folder.write("texts/.git/config", "no ");
  folder.write("texts/c/d.txt", "dog ");
  CHECK(read_all(TextSource(folder / "texts")) == "ape bee dog ");
  CHECK(read_all(TextSource({b, folder / "texts", b})) == "bee ape bee dog bee ");
  CHECK(TextSource(folder / "texts").name() == "a.txt and 2 more");
  CHECK(TextSource(folder.write("a\x1b[31m\u009bred.txt", "red")).name() == "a [31m  red.txt");  // no escape sequence is printed
  const std::string zst = write_compressed(folder, "e.zst", "eel ", ARCHIVE_FILTER_ZSTD);
  CHECK(read_all(TextSource({a, zst, b})) == "ape eel bee ");
}

TEST_CASE("text source: a relative path is also looked for under $RICCI_DATA") {
  const ScratchFolder folder;
  folder.write("corpora/here.txt", "found");
  const std::string name = "corpora/here.txt";
  {
    const ScopedVariable data("RICCI_DATA", folder.path().c_str());
    CHECK(read_all(TextSource(name)) == "found");
    CHECK(error_of([] { TextSource("corpora/gone.txt"); }) ==
          "data: found neither corpora/gone.txt nor " + folder / "corpora/gone.txt" + " ($RICCI_DATA)");
    folder.write("corpora/train.tsv.zst", "x");
    CHECK(error_of([] { TextSource("corpora/train.tsv"); }) == "data: found neither corpora/train.tsv nor " + folder / "corpora/train.tsv" +
                                                                   " ($RICCI_DATA); " + folder / "corpora/train.tsv.zst" + " is there");
    for (const char* file : {"ptb/ptb.test.txt.gz", "ptb/ptb.train.txt-old", "ptb/ptb.train.txt.gz", "ptb/ptb.valid.txt.gz"})
      folder.write(file, "x");
    for (const auto& [asked, found] : {std::pair{"ptb.train.txt", "ptb.train.txt.gz"}, {"ptb.valid", "ptb.valid.txt.gz"},
             {"ptb.vaild.txt", "ptb.valid.txt.gz"}, {"ptb.txt", "ptb.test.txt.gz"}})
      CHECK(error_of([&, name = "ptb/" + std::string(asked)] { TextSource(folder / name); }) ==
            "data: " + folder / "ptb/" + asked + " does not exist; " + folder / "ptb/" + found + " is there");
    for (const char* asked : {"here.md", "her.txt", "here", "here.txt.gz"})
      CHECK(error_of([&] { TextSource(folder / "corpora/" + asked); }) ==
            "data: " + folder / "corpora/" + asked + " does not exist; " + folder / "corpora/here.txt" + " is there");
  }
  const ScopedVariable data("RICCI_DATA", nullptr);
  CHECK(error_of([&] { TextSource source(name); }) == "data: corpora/here.txt does not exist, and $RICCI_DATA, searched next, is not set");
}

TEST_CASE("text source: a file that cannot be read is an error that names it") {
  const ScratchFolder folder;
  CHECK(read_error(folder.write("empty", "")) == "data: " + folder / "empty" + " is empty");
  write_compressed(folder, "empty.zst", "", ARCHIVE_FILTER_ZSTD);
  CHECK(read_error(folder / "empty.zst") == "data: " + folder / "empty.zst" + " is empty after decompression");
  std::filesystem::create_directory(folder / "nothing");
  CHECK(read_error(folder / "nothing") == "data: the folder " + folder / "nothing" + " contains no files");
  CHECK(read_error("/dev/null") == "data: /dev/null is neither a file nor a folder");
  CHECK(error_of([] { TextSource(std::string{}); }) == "data: an empty file name was given");
}

TEST_CASE("text source: damage shows in the checksums") {
  const ScratchFolder folder;
  const std::string words = "to be or not to be";
  // The words as written by zstd: raw bytes and a checksum.
  const std::string zst("\x28\xb5\x2f\xfd\x04\x58\x91\x00\x00\x74\x6f\x20\x62\x65\x20\x6f\x72\x20\x6e\x6f\x74\x20\x74\x6f\x20\x62\x65\x23"
                        "\x0d\x1c\xfb",
      31);
  CHECK(read_all(TextSource(folder.write("good", zst))) == words);
  const std::string text = mixed_text(100, 8);
  const auto packed = [&](int filter) { return read_file(write_compressed(folder, "packed", text, filter)); };
  const std::string gz = packed(ARCHIVE_FILTER_GZIP), xz = packed(ARCHIVE_FILTER_XZ), bz2 = packed(ARCHIVE_FILTER_BZIP2);
  for (const auto& [each_bytes, expected] : {std::pair{zst, words}, {gz, text}, {gz + gz, text + text}, {xz, text}, {bz2, text}}) {
    const std::string& bytes = each_bytes;
    for (size_t at = 0; at < bytes.size(); ++at) {
      std::string damaged = bytes;
      damaged[at] ^= at % 2 ? '\x01' : '\x80';
      const std::string path = folder.write("bad", damaged);
      std::string read;
      const std::string error = error_of([&] { read = read_all(TextSource(path).read_as(Encoding::bytes)); });
      CAPTURE(at);
      CAPTURE(bytes.size());
      // A file with a damaged mark is read as plain bytes.
      if (error == "no error") CHECK((read == expected || read == damaged));
      else CHECK(contains(error, path));
    }
  }
}

TEST_CASE("text source: a .gz that is cut, continued or empty") {
  const ScratchFolder folder;
  const std::string text = mixed_text(150'000, 9);
  const std::string gz = read_file(write_compressed(folder, "a.gz", text, ARCHIVE_FILTER_GZIP));
  for (const size_t bytes : {size_t{10}, gz.size() / 2, gz.size() - 9, gz.size() - 8, gz.size() - 4, gz.size() - 1}) {
    const std::string path = folder.write("cut", gz.substr(0, bytes));
    CHECK(read_error(path) == "data: cannot read " + path + ": cut short");
    CHECK(read_error(folder.write("cut", gz + gz.substr(0, bytes))) == "data: cannot read " + path + ": cut short");
  }
  const std::string path = folder.write("continued", gz + "more");
  CHECK(read_error(path) == "data: cannot read " + path + ": bytes that are not gzip follow its end");
  std::string wrong = gz;
  wrong[gz.size() - 8] ^= 1;  // the CRC
  CHECK(read_error(folder.write("continued", wrong)) == "data: cannot read " + path + ": incorrect data check");
  wrong = gz;
  wrong[gz.size() - 1] ^= 1;  // the length
  CHECK(read_error(folder.write("continued", wrong)) == "data: cannot read " + path + ": incorrect length check");
  const std::string none = write_compressed(folder, "none.gz", "", ARCHIVE_FILTER_GZIP);
  CHECK(read_error(none) == "data: " + none + " is empty after decompression");
}

TEST_CASE("text source: a compressed stream that is cut is an error, and nothing behind one is lost without a word") {
  const ScratchFolder folder;
  const std::string text = mixed_text(3'000, 11), zeros(1'000, '\0');
  const std::pair<const char*, int> formats[] = {
      {"gzip", ARCHIVE_FILTER_GZIP}, {"bzip2", ARCHIVE_FILTER_BZIP2}, {"xz", ARCHIVE_FILTER_XZ}, {"zstd", ARCHIVE_FILTER_ZSTD}};
  for (const auto& [name, filter] : formats) {
    const std::string format = name, packed = read_file(write_compressed(folder, "packed", text, filter));
    const auto behind = [&](const std::string& rest) { return folder.write("file", packed + rest); };
    CAPTURE(format);
    CHECK((read_all(TextSource(behind(packed))) == text + text));
    const std::string nothing = read_file(write_compressed(folder, "nothing", "", filter));
    CHECK((read_all(TextSource(behind(nothing + packed))) == text + text));
    CHECK((read_all(TextSource(folder.write("file", nothing + packed))) == text));
    for (const size_t bytes : {packed.size() / 2, packed.size() - 1})
      CHECK(contains(read_error(folder.write("file", packed.substr(0, bytes))), "data: cannot read " + folder / "file" + ": "));
    if (filter != ARCHIVE_FILTER_ZSTD) CHECK((read_all(TextSource(behind(zeros))) == text));
    if (filter != ARCHIVE_FILTER_XZ) CHECK(contains(read_error(behind(zeros + packed)), "data: cannot read "));  // .xz can continue there
    for (const std::string& rest : {packed.substr(1), "more" + packed, packed.substr(0, 3), packed.substr(0, 9)}) {
      CAPTURE(rest.size());
      CHECK(contains(read_error(behind(rest)), "data: cannot read " + folder / "file" + ": "));
    }
  }
  const std::string bzip2 = read_file(write_compressed(folder, "packed", text, ARCHIVE_FILTER_BZIP2));
  CHECK(read_error(folder.write("file", bzip2 + bzip2.substr(0, 8))) ==
        "data: cannot read " + folder / "file" + ": bytes that are not bzip2 follow its end");
  CHECK(read_all(TextSource(folder.write("file", "BZh it is"))) == "BZh it is");
}

TEST_CASE("text source: every folder is visited once, whatever links lead back to it") {
  const ScratchFolder folder;
  folder.write("texts/a/one.txt", "one ");
  folder.write("texts/b/two.txt", "two ");
  for (const char* place : {"texts/a", "texts/b", "texts"})
    for (const char* name : {"loop", "other"})
      std::filesystem::create_directory_symlink(folder / "texts", folder / (std::string(place) + "/" + name));
  for (const char* start : {"texts", "texts/a/loop/b/other"}) {
    CHECK(test::bounded_error([&] { TextSource(folder / start); }) == "no error");
    CHECK(read_all(TextSource(folder / start)) == "one two ");
  }
  folder.write("elsewhere/three.txt", "three ");
  std::filesystem::create_directory_symlink(folder / "elsewhere", folder / "texts/c");  // a link to the outside is followed
  std::filesystem::create_directory_symlink(folder / "elsewhere", folder / "texts/d");
  CHECK(read_all(TextSource(folder / "texts")) == "one two three ");
  std::filesystem::create_directory_symlink("itself", folder / "texts/itself");
  CHECK(contains(test::bounded_error([&] { TextSource(folder / "texts"); }), "data: cannot read " + folder / "texts/itself" + ": "));
}

TEST_CASE("text source: a pipe among the files of a folder is an error, and is not waited for") {
  const ScratchFolder folder;
  folder.write("texts/a.txt", "a");
  REQUIRE(::mkfifo((folder / "texts/pipe").c_str(), 0600) == 0);
  CHECK(test::bounded_error([&] { TextSource(folder / "texts"); }) ==
        "data: " + folder / "texts/pipe" +
            " is a pipe, expected a file or folder; a text is read more than once, so write it to a file first");
  CHECK(test::bounded_error([&] { TextSource(folder / "texts/pipe"); }) ==
        "data: " + folder / "texts/pipe" +
            " is a pipe, expected a file or folder; a text is read more than once, so write it to a file first");
}

TEST_CASE("text source: a text that the program carries stands where a path does") {
  const ScratchFolder folder;
  const std::string large = mixed_text(150'000, 10), file = folder.write("a.txt", "file ");
  const BuiltInText texts[] = {{"large", large}, {"small", "small "}};
  CHECK(read_all(TextSource({"large"}, texts)) == large);
  CHECK(read_all(TextSource({"small", file, "large", "small"}, texts)) == "small file " + large + "small ");
  const TextSource source = TextSource({"small", file}, texts);
  CHECK(source.name() == "small and 1 more");
  CHECK_NOTHROW(source.check_unchanged());
  const BuiltInText nothing[] = {{"nothing", ""}, {"small", "small "}};
  const TextSource empty = TextSource({"nothing"}, nothing);
  CHECK_NOTHROW(empty.check_unchanged());
  CHECK(read_all(empty) == "");
  CHECK(read_all(TextSource({"nothing", file, "nothing", "small"}, nothing)) == "file small ");
  const BuiltInText other[] = {{"small", "Small "}};
  CHECK(TextSource({"small"}, texts).place_hash() == TextSource({"small"}, other).place_hash());
  CHECK(TextSource({"small"}, texts).content_hash() != TextSource({"small"}, other).content_hash());
}

TEST_CASE("text source: identity changes with path, encoding and file") {
  const ScratchFolder folder;
  const auto open = [&](const std::string& name) { return TextSource(folder / name); };
  const TextSource a(folder.write("a", "12345")), b(folder.write("b", "12345"));
  const auto content = a.content_hash();
  const uint64_t stamp = a.stamp_hash();
  CHECK(content == open("a").content_hash());
  CHECK(stamp == open("a").stamp_hash());
  CHECK(content == b.content_hash());  // independent of the path
  CHECK(stamp != b.stamp_hash());      // a different inode
  CHECK(a.place_hash() != b.place_hash());
  CHECK(a.place_hash() != a.read_as(Encoding::latin1).place_hash());
  CHECK(TextSource({folder / "a", folder / "b"}).content_hash() != content);

  const auto time = std::filesystem::last_write_time(folder / "a");
  while (change_time(folder.write("clock", "")) == change_time(folder / "a")) {  // until the clock of the file system ticks
  }
  folder.write("a", "12354");
  std::filesystem::last_write_time(folder / "a", time);
  CHECK(open("a").stamp_hash() != stamp);
  CHECK(open("a").place_hash() == a.place_hash());
  CHECK(open("a").content_hash() != content);
  CHECK(error_of([&] { a.check_unchanged(); }) ==
        "data: " + folder / "a" + " changed while it was in use (size before: 5 bytes, now: 5 bytes)");
}
