// Reading, mapping and replacing files: contents, and what is left behind after every kind of failure.
#include "core/files/file.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <stdexcept>
#include <thread>

#include "tests/data/files.h"

using namespace ricci;
using namespace test_data;

namespace {

size_t files_in(const std::string& folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

std::string own_temporary(const std::string& name) { return "." + name + ".tmp-" + std::to_string(::getpid()); }

// Files of this process end at a size, as on a full disk; the system's reason is "File too large".
class SizeLimit {
 public:
  explicit SizeLimit(rlim_t bytes) {
    old_handler_ = ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    ::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_ = {};
  void (*old_handler_)(int);
};

}  // namespace

TEST_CASE("file: what is written is what is read and mapped") {
  const ScratchFolder folder;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4096}, size_t{70'001}}) {
    CAPTURE(size);
    std::string text(size, 'x');
    for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 7 % 256);
    write_file_atomically(folder / "a", text);
    CHECK(read_text(folder / "a") == text);
    const MappedFile mapped(folder / "a");
    CHECK(mapped.bytes() == text);
    CHECK(mapped.size() == static_cast<int64_t>(size));
    CHECK(mapped.path() == folder / "a");
  }
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("file: a mapping moves, and outlives the replacement and the removal of its file") {
  const ScratchFolder folder;
  MappedFile first(folder.write("a", "old text"));
  write_file_atomically(folder / "a", "new");
  MappedFile second = std::move(first);
  CHECK(second.bytes() == "old text");
  std::filesystem::remove(folder / "a");
  first = MappedFile(folder.write("b", "other"));
  std::swap(first, second);
  CHECK(first.bytes() == "old text");
  CHECK(second.bytes() == "other");
}

TEST_CASE("file: text comes from a pipe, too; a mapping does not, and does not wait for one") {
  const ScratchFolder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(error_of([&] { MappedFile mapped(pipe); }) == "cannot read " + pipe + ": not a regular file");
  std::thread writer([&] { std::ofstream(pipe) << std::string(100'000, 'p'); });
  CHECK(read_text(pipe) == std::string(100'000, 'p'));
  writer.join();
}

TEST_CASE("file: errors of reading name the path and the reason") {
  const ScratchFolder folder;
  CHECK(error_of([&] { read_text(folder / "none"); }) ==
        "cannot read " + folder / "none" + ": No such file or directory");
  CHECK(error_of([&] { read_text(folder.path()); }) == "cannot read " + folder.path() + ": Is a directory");
  CHECK(error_of([&] { MappedFile m(folder / "none"); }) ==
        "cannot read " + folder / "none" + ": No such file or directory");
  CHECK(error_of([&] { MappedFile m(folder.path()); }) == "cannot read " + folder.path() + ": not a regular file");
}

TEST_CASE("file: the pieces of a writer come one after the other, under a hidden name until all are there") {
  const ScratchFolder folder;
  folder.write("a", "old");
  write_file_atomically(folder / "a", [&](FileWriter& file) {
    file.write("one, ");
    CHECK(file.written() == 5);
    CHECK(read_text(folder / "a") == "old");
    CHECK(read_text(folder / own_temporary("a")) == "one, ");
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

TEST_CASE("file: a temporary file that a killed process left is no obstacle") {
  const ScratchFolder folder;
  folder.write(own_temporary("a"), "left behind");
  write_file_atomically(folder / "a", "new");
  CHECK(read_text(folder / "a") == "new");
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("file: what killed processes left is removed, what is being written stays") {
  const ScratchFolder folder;
  for (const char* name : {".a.tmp-1", ".b.tmp-23", ".hidden", "c.tmp-4"}) folder.write(name, "text");
  write_file_atomically(folder / "d", [&](FileWriter& writer) {
    writer.write("new");
    remove_abandoned_files(folder.path());
    CHECK_FALSE(std::filesystem::exists(folder / ".a.tmp-1"));
    CHECK_FALSE(std::filesystem::exists(folder / ".b.tmp-23"));
    CHECK(std::filesystem::exists(folder / own_temporary("d")));
  });
  CHECK(read_text(folder / "d") == "new");
  CHECK(files_in(folder.path()) == 3);
  remove_abandoned_files(folder / "none");
}

TEST_CASE("file: links are followed, access rights are kept") {
  const ScratchFolder folder;
  folder.write("sub/target", "old");
  REQUIRE(::chmod((folder / "sub/target").c_str(), 0640) == 0);
  std::filesystem::create_symlink("sub/target", folder / "link");
  write_file_atomically(folder / "link", "new");
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(read_text(folder / "sub/target") == "new");
  struct stat status = {};
  REQUIRE(::stat((folder / "sub/target").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0640);
}

TEST_CASE("file: a name in the working folder needs no folder") {
  const ScratchFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  write_file_atomically("plain", "text");
  std::filesystem::current_path(before);
  CHECK(read_text(folder / "plain") == "text");
}

TEST_CASE("file: what cannot be replaced") {
  const ScratchFolder folder;
  const std::string missing = folder / "none/a";
  CHECK(error_of([&] { write_file_atomically(missing, ""); }) ==
        "cannot write " + missing + ": folder " + folder / "none" + ": No such file or directory");
  CHECK(error_of([&] { write_file_atomically("/dev/null", ""); }) ==
        "cannot write /dev/null: it exists and is not a regular file");
  CHECK(error_of([&] { write_file_atomically(folder.path(), ""); }) ==
        "cannot write " + folder.path() + ": it exists and is not a regular file");
  CHECK(error_of([&] { write_file_atomically("", ""); }) == "cannot write '': it names no file");
  CHECK(error_of([&] { write_file_atomically(folder / "new/", ""); }) ==
        "cannot write '" + folder / "new/" + "': it names no file");
  const std::string long_name(250, 'n');
  CHECK(error_of([&] { write_file_atomically(folder / long_name, ""); }) ==
        "cannot write " + folder / long_name + ": File name too long");
  CHECK(files_in(folder.path()) == 0);
}

TEST_CASE("file: folders are made with those above them") {
  const ScratchFolder folder;
  make_folders(folder / "a/b/c");
  CHECK(std::filesystem::is_directory(folder / "a/b/c"));
  CHECK_NOTHROW(make_folders(folder / "a/b/c/"));
  write_file_atomically(folder / "a/file", "x");
  const auto message = [](const std::string& path) {
    try {
      make_folders(path);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK(message(folder / "a/file") == folder / "a/file" + ": cannot be made: a file is in its place");
  CHECK(message(folder / "a/file/b") == folder / "a/file" + ": cannot be made: a file is in its place");
}
