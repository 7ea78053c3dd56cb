// Reading, mapping and replacing files, and folders held open: contents, and what is left behind after every kind of failure.
#include "core/files/file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <thread>

#include "core/files/folder.h"
#include "tests/bounded.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace test_data;

namespace {

size_t files_in(const std::string& folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

// The temporary files of `name` in a folder.
std::vector<std::string> temporaries(const std::string& folder, const std::string& name) {
  std::vector<std::string> found;
  for (const std::string& each : Folder(folder).names())
    if (each.starts_with("." + name + ".tmp-")) found.push_back(folder + "/" + each);
  return found;
}

}  // namespace

TEST_CASE("file: what is written is what is read") {
  const ScratchFolder folder;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4096}, size_t{70'001}}) {
    CAPTURE(size);
    std::string text(size, 'x');
    for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 7 % 256);
    write_file_atomically(folder / "a", text);
    CHECK(read_text(folder / "a") == text);
    const OpenFile file(folder / "a");
    CHECK(file.size() == static_cast<int64_t>(size));
    CHECK(file.path() == folder / "a");
  }
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("file: pipes and devices are no files, and are not waited for") {
  const ScratchFolder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::filesystem::create_symlink("/dev/zero", folder / "endless");
  for (const std::string& path : {pipe, folder / "endless", std::string("/dev/zero"), std::string("/dev/stdin"), std::string("/dev/tty")}) {
    CAPTURE(path);
    const std::string error = test::bounded_error([&] { read_text(path); });
    CHECK(error.starts_with("cannot read " + path + ": "));
    if (path == pipe || path.ends_with("zero")) CHECK(error.ends_with(": not a regular file"));
    CHECK(test::bounded_error([&] { OpenFile file(path); }) == error);
  }
}

TEST_CASE("file: a text is read up to a limit") {
  const ScratchFolder folder;
  const std::string path = folder.write("a", std::string(1000, 'x'));
  CHECK(read_text(path, 1000).size() == 1000);
  CHECK(error_of([&] { read_text(path, 999); }) == "cannot read " + path + ": it has more than 999 bytes");
  std::filesystem::resize_file(path, int64_t{1} << 40);  // with a hole that takes no room
  CHECK(test::bounded_error([&] { read_text(path); }) == "cannot read " + path + ": it has more than 1073741824 bytes");
  CHECK(read_text("/proc/self/status").size() > 100);  // which says that it has no bytes
}

TEST_CASE("file: an open file is read anywhere, also when it has lost its name") {
  const ScratchFolder folder;
  const OpenFile file(folder.write("a", "0123456789"));
  CHECK_FALSE(OpenFile::find(folder / "none").has_value());
  std::filesystem::remove(folder / "a");
  char bytes[4] = {};
  CHECK(file.read(bytes, 4, 3) == 4);
  CHECK(std::string(bytes, 4) == "3456");
  CHECK(file.read(bytes, 4, 8) == 2);
  CHECK(file.read(bytes, 4, 100) == 0);
  CHECK(file.size() == 10);
}

TEST_CASE("file: errors of reading name the path and the reason") {
  const ScratchFolder folder;
  CHECK(error_of([&] { read_text(folder / "none"); }) == "cannot read " + folder / "none" + ": No such file or directory");
  CHECK(error_of([&] { read_text(folder.path()); }) == "cannot read " + folder.path() + ": Is a directory");
  CHECK(error_of([&] { OpenFile file(folder / "none"); }) == "cannot read " + folder / "none" + ": No such file or directory");
  CHECK(error_of([&] { OpenFile file(folder.path()); }) == "cannot read " + folder.path() + ": Is a directory");
}

TEST_CASE("file: the pieces of a writer come one after the other, under a hidden name until all are there") {
  const ScratchFolder folder;
  folder.write("a", "old");
  write_file_atomically(folder / "a", [&](FileWriter& file) {
    file.write("one, ");
    CHECK(file.written() == 5);
    CHECK(read_text(folder / "a") == "old");
    REQUIRE(temporaries(folder.path(), "a").size() == 1);
    CHECK(read_text(temporaries(folder.path(), "a")[0]) == "one, ");
    file.write("");
    file.write("two");
  });
  CHECK(read_text(folder / "a") == "one, two");
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("file: an exception of the callback leaves the old file, or none") {
  const ScratchFolder folder;
  folder.write("a", "old");
  for (const char* name : {"a", "b"}) {
    const auto interrupted = [&](FileWriter& file) {
      file.write("half");
      throw std::runtime_error("mine");
    };
    CHECK_THROWS_WITH_AS(write_file_atomically(folder / name, interrupted), "mine", std::runtime_error);
  }
  CHECK(read_text(folder / "a") == "old");
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("file: a disk without room leaves the old file and says so in one line") {
  const ScratchFolder folder;
  folder.write("a", "old");
  std::string error;
  {
    const SizeLimit limit(10'000);
    error = error_of([&] { write_file_atomically(folder / "a", std::string(30'000, 'x')); });
  }
  CHECK(error == "cannot write " + folder / "a" + ": File too large (after 10000 bytes)");
  CHECK(read_text(folder / "a") == "old");
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("file: two writers of one name do not share a temporary file, whatever their process numbers are") {
  const ScratchFolder folder;
  write_file_atomically(folder / "a", [&](FileWriter& outer) {
    outer.write("outer, ");
    write_file_atomically(folder / "a", [&](FileWriter& inner) {
      inner.write("inner");
      CHECK(temporaries(folder.path(), "a").size() == 2);
    });
    CHECK(read_text(folder / "a") == "inner");
    outer.write("to its end");
  });
  CHECK(read_text(folder / "a") == "outer, to its end");
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("file: what killed processes left is removed, what is being written stays") {
  const ScratchFolder folder;
  const char* const left[] = {".a.tmp-1", ".b.tmp-23", ".a.tmp-0123456789abcdef"};
  const char* const kept[] = {".hidden", "c.tmp-4", ".d.tmp-", ".e.tmp-xyz"};
  const auto write_all = [&] {
    for (const char* name : left) folder.write(name, "text");
    for (const char* name : kept) folder.write(name, "text");
  };
  write_all();
  write_file_atomically(folder / "d", [&](FileWriter& writer) {
    writer.write("new");
    remove_abandoned_files(Folder(folder.path()));
    for (const char* name : left) CHECK_FALSE(std::filesystem::exists(folder / name));
    CHECK(temporaries(folder.path(), "d").size() == 2);  // .d.tmp- and the one being written
  });
  CHECK(read_text(folder / "d") == "new");
  CHECK(files_in(folder.path()) == 5);

  write_all();  // a writer takes care of the files of its own name
  write_file_atomically(folder / "a", "new");
  CHECK_FALSE(std::filesystem::exists(folder / left[0]));
  CHECK_FALSE(std::filesystem::exists(folder / left[2]));
  CHECK(std::filesystem::exists(folder / left[1]));
}

TEST_CASE("file: what is written stays readable in its own right") {
  const ScratchFolder folder;
  const OpenFile first = write_file_atomically(folder / "a", "first");
  write_file_atomically(folder / "a", "second");
  char bytes[8] = {};
  CHECK(std::string(bytes, first.read(bytes, 8, 0)) == "first");
}

TEST_CASE("file: access rights are kept, but no setuid; the link of a path is followed") {
  const ScratchFolder folder;
  for (const mode_t before : {04777, 0640, 0664, 0600}) {
    folder.write("sub/target", "old");
    REQUIRE(::chmod((folder / "sub/target").c_str(), before) == 0);
    std::filesystem::remove(folder / "link");
    std::filesystem::create_symlink("sub/target", folder / "link");
    write_file_atomically(folder / "link", "new");
    CHECK(std::filesystem::is_symlink(folder / "link"));
    CHECK(read_text(folder / "sub/target") == "new");
    struct stat status = {};
    REQUIRE(::stat((folder / "sub/target").c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == (before & 0777));
  }
}

TEST_CASE("file: what cannot be replaced, and a name in the working folder, which needs no folder") {
  const ScratchFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  write_file_atomically("plain", "text");
  std::filesystem::current_path(before);
  CHECK(read_text(folder / "plain") == "text");
  const std::string missing = folder / "none/a";
  CHECK(error_of([&] { write_file_atomically(missing, ""); }) ==
        "cannot write " + missing + ": folder " + folder / "none" + ": No such file or directory");
  CHECK(error_of([&] { write_file_atomically("/dev/null", ""); }) == "cannot write /dev/null: it exists and is not a regular file");
  CHECK(error_of([&] { write_file_atomically(folder.path(), ""); }) ==
        "cannot write " + folder.path() + ": it exists and is not a regular file");
  CHECK(error_of([&] { write_file_atomically("", ""); }) == "cannot write '': it names no file");
  CHECK(error_of([&] { write_file_atomically(folder / "new/", ""); }) == "cannot write '" + folder / "new/" + "': it names no file");
  const std::string long_name(250, 'n');
  CHECK(error_of([&] { write_file_atomically(folder / long_name, ""); }) == "cannot write " + folder / long_name + ": File name too long");
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("folder: what cannot be looked at is not missing") {
  const ScratchFolder folder;
  folder.write("sub/file", "text");
  std::filesystem::create_symlink("itself", folder / "itself");
  std::filesystem::create_symlink("none", folder / "dangling");
  CHECK(look_at(folder / "sub/file") == PathKind::file);
  CHECK(look_at(folder / "sub") == PathKind::folder);
  CHECK(look_at("/dev/null") == PathKind::other);
  for (const std::string missing : {"none", "none/file", "sub/file/below", "dangling"})
    CHECK(look_at(folder / missing) == PathKind::nothing);
  CHECK(look_at(folder / std::string(300, 'x')) == PathKind::nothing);
  CHECK(error_of([&] { look_at(folder / "itself"); }) == "cannot read " + folder / "itself" + ": Too many levels of symbolic links");
}

TEST_CASE("folder: what is written goes into the folder that was opened, not into its successor") {
  const ScratchFolder scratch;
  scratch.write("run/a", "old");
  const Folder folder(scratch / "run");
  std::filesystem::rename(scratch / "run", scratch / "moved");
  scratch.write("run/a", "another run's");
  CHECK_FALSE(folder.removed());
  write_file_atomically(FilePlace(folder, "a"), "new");
  CHECK(read_text(FilePlace(folder, "a")) == "new");
  CHECK(read_file(scratch / "run/a") == "another run's");
  CHECK(read_file(scratch / "moved/a") == "new");
  std::filesystem::remove_all(scratch / "moved");
  CHECK(folder.removed());
  CHECK(error_of([&] { write_file_atomically(FilePlace(folder, "a"), "x"); }) ==
        "cannot write " + scratch / "run/a" + ": No such file or directory");
  CHECK(read_file(scratch / "run/a") == "another run's");
}

TEST_CASE("folder: links inside are followed; a file that is written takes the place of its link") {
  const ScratchFolder scratch;
  const std::string store = scratch.write("store/object", "kept for several runs");
  scratch.write("outside/file", "on another disk");
  std::filesystem::create_directory(scratch / "run");
  std::filesystem::create_symlink(store, scratch / "run/link");
  std::filesystem::create_symlink(scratch / "outside", scratch / "run/folder");
  std::filesystem::create_symlink(scratch / "nowhere", scratch / "run/dangling");
  const Folder folder(scratch / "run");
  const FilePlace link(folder, "link"), dangling(folder, "dangling");
  CHECK(read_text(link) == "kept for several runs");
  CHECK(read_text(FilePlace(*folder.find("folder"), "file")) == "on another disk");
  write_file_atomically(FilePlace(folder.make("folder"), "new"), "more");
  CHECK(read_file(scratch / "outside/new") == "more");
  CHECK_FALSE(OpenFile::find(dangling).has_value());
  CHECK(error_of([&] { folder.find("link"); }) == "folder " + scratch / "run/link" + ": a file is in its place");
  CHECK(error_of([&] { folder.make("dangling"); }) == "folder " + scratch / "run/dangling" + ": a link in its place leads nowhere");
  CHECK(error_of([&] { write_file_atomically(FilePlace(folder, "folder"), "x"); }) ==
        "cannot write " + scratch / "run/folder" + ": it exists and is not a regular file");
  for (const FilePlace& place : {link, dangling}) {
    write_file_atomically(place, "new");
    CHECK(read_text(place) == "new");
    CHECK_FALSE(std::filesystem::is_symlink(place.path));
  }
  CHECK(read_file(store) == "kept for several runs");
  CHECK_FALSE(std::filesystem::exists(scratch / "nowhere"));
  std::filesystem::create_symlink(store, scratch / "run/again");
  remove_file(FilePlace(folder, "again"));  // the link itself
  CHECK(read_file(store) == "kept for several runs");
}

TEST_CASE("folder: what is inside is found, made and listed") {
  const ScratchFolder scratch;
  const Folder folder(scratch.path());
  CHECK_FALSE(folder.find("a").has_value());
  write_file_atomically(FilePlace(folder.make("a"), "x"), "text");
  CHECK(read_text(FilePlace(*folder.find("a"), "x")) == "text");
  CHECK(folder.make("a").path() == scratch / "a");
  for (const char* name : {"c", ".hidden", "b"}) scratch.write(name, "");
  CHECK(folder.names() == std::vector<std::string>{".hidden", "a", "b", "c"});
  CHECK(folder.names().size() == 4);  // once more, from its start
  CHECK(error_of([&] { folder.find("b"); }) == "folder " + scratch / "b" + ": a file is in its place");
  CHECK(error_of([&] { folder.make("b"); }) == "folder " + scratch / "b" + ": a file is in its place");
  CHECK(error_of([&] { Folder none(scratch / "none"); }) == "folder " + scratch / "none" + ": No such file or directory");
  remove_file(FilePlace(folder, "c"));
  CHECK_NOTHROW(remove_file(FilePlace(folder, "c")));
  CHECK(error_of([&] { remove_file(FilePlace(folder, "a")); }) == "cannot remove " + scratch / "a" + ": Is a directory");
}

TEST_CASE("folder: one holder at a time has its lock") {
  const ScratchFolder scratch;
  std::optional<Folder> first(scratch.path());
  CHECK(first->lock());
  CHECK(first->lock());
  std::optional<Folder> copy = first;
  const Folder second(scratch.path());
  CHECK_FALSE(second.lock());
  first.reset();
  CHECK_FALSE(second.lock());  // the copy has it still
  copy.reset();
  CHECK(second.lock());
}

TEST_CASE("folder: those that are made are told") {
  const ScratchFolder scratch;
  CHECK(make_folders(scratch / "a/b/c") == std::vector<std::string>{scratch / "a", scratch / "a/b", scratch / "a/b/c"});
  CHECK(make_folders(scratch / "a/b/c").empty());
  CHECK(make_folders(scratch / "a/d/") == std::vector<std::string>{scratch / "a/d"});
  scratch.write("a/file", "x");
  for (const std::string path : {"a/file", "a/file/b"})
    CHECK(error_of([&] { make_folders(scratch / path); }) == scratch / "a/file" + ": cannot be made: a file is in its place");
}
