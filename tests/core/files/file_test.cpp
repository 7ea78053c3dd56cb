// Reading, replacing and locking: contents, and the files left by every kind of failure.
#include "core/files/file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>
#include <optional>
#include <stdexcept>

#include "core/files/checksum.h"
#include "tests/bounded.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace test_data;
using Names = std::vector<std::string>;

TEST_CASE("file: written bytes are read again") {
  const ScratchFolder folder;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4096}, size_t{70'001}}) {
    std::string text(size, 'x');
    for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 7 % 256);
    write_atomically(folder / "a", text);
    CHECK(read_text(folder / "a") == text);
    CHECK(find_text(folder / "a") == text);
    const File file(folder / "a");
    CHECK(file.size() == static_cast<int64_t>(size));
  }
  CHECK(names_in(folder.path()) == Names{"a"});
  CHECK_FALSE(find_text(folder / "none").has_value());
}

TEST_CASE("file: pipes and devices are errors, without waiting for their writers") {
  const ScratchFolder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::filesystem::create_symlink("/dev/zero", folder / "endless");
  for (const std::string& path : {pipe, folder / "endless", std::string("/dev/zero")}) {
    const std::string error = "cannot read " + path + ": not a regular file";
    CHECK(test::bounded_error([&] { read_text(path); }) == error);
    CHECK(test::bounded_error([&] { File file(path); }) == error);
  }
  CHECK(error_of([] { AppendFile("/dev/null"); }) == "cannot write /dev/null: it exists and is not a regular file");
}

TEST_CASE("file: a text is read up to a limit") {
  const ScratchFolder folder;
  const std::string path = folder.write("a", std::string(1000, 'x'));
  CHECK(read_text(path, 1000).size() == 1000);
  CHECK(error_of([&] { read_text(path, 999); }) == "cannot read " + path + ": it has more than 999 bytes");
  CHECK(error_of([&] { find_text(path, 999); }) == "cannot read " + path + ": it has more than 999 bytes");
  std::filesystem::resize_file(path, int64_t{1} << 40);  // with a hole
  CHECK(test::bounded_error([&] { read_text(path); }) == "cannot read " + path + ": it has more than 1073741824 bytes");
}

TEST_CASE("file: an open file is read anywhere, also after it was removed") {
  const ScratchFolder folder;
  const File file(folder.write("a", "0123456789"));
  CHECK_FALSE(File::find(folder / "none").has_value());
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
  const std::string none = folder / "none";
  CHECK(error_of([&] { read_text(none); }) == "cannot read " + none + ": No such file or directory");
  CHECK(error_of([&] { File file(none); }) == "cannot read " + none + ": No such file or directory");
  CHECK(error_of([&] { read_text(folder.path()); }) == "cannot read " + folder.path() + ": Is a directory");
  CHECK(error_of([&] { File::find(folder.path()); }) == "cannot read " + folder.path() + ": Is a directory");
  CHECK(error_of([&] { names_in(none); }) == "folder " + none + ": cannot be listed: No such file or directory");
}

TEST_CASE("file: readers see the old file until the new one is complete") {
  const ScratchFolder folder;
  folder.write("a", "old");
  write_atomically(folder / "a", [&](FileWriter& file) {
    file.write("one, ");
    CHECK(file.written() == 5);
    CHECK(read_text(folder / "a") == "old");
    const Names names = names_in(folder.path());
    REQUIRE(names.size() == 2);
    CHECK(names[0].starts_with(".a.tmp-"));
    CHECK(read_text(folder / names[0]) == "one, ");
    file.write("");
    file.write("two");
    file.overwrite(1, "N");
  });
  CHECK(read_text(folder / "a") == "oNe, two");
  CHECK(names_in(folder.path()) == Names{"a"});
}

TEST_CASE("file: a writer that throws leaves the old file, or none") {
  const ScratchFolder folder;
  folder.write("a", "old");
  for (const char* name : {"a", "b"}) {
    const auto interrupted = [&](FileWriter& file) {
      file.write("half");
      throw std::runtime_error("mine");
    };
    CHECK_THROWS_WITH_AS(write_atomically(folder / name, interrupted), "mine", std::runtime_error);
  }
  CHECK(read_text(folder / "a") == "old");
  CHECK(names_in(folder.path()) == Names{"a"});
}

TEST_CASE("file: a limit on files leaves the old file and is one line") {
  const ScratchFolder folder;
  folder.write("a", "old");
  std::string error;
  {
    const SizeLimit limit(10'000);
    error = error_of([&] { write_atomically(folder / "a", std::string(30'000, 'x')); });
  }
  CHECK(error == "cannot write " + folder / "a" + ": File too large (after 10000 bytes)");
  CHECK(read_text(folder / "a") == "old");
  CHECK(names_in(folder.path()) == Names{"a"});
}

TEST_CASE("file: a full disk is DiskFull, because a cache that does not fit is only a warning") {
  const ScratchFolder folder;
  folder.write("a", "old");
  // The descriptor of the writer becomes a device without room for any byte.
  const auto write = [&](FileWriter& file) {
    const int device = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
    for (const std::string& number : names_in("/proc/self/fd")) {
      std::error_code gone;
      if (contains(std::filesystem::read_symlink("/proc/self/fd/" + number, gone), folder / ".a.tmp-")) ::dup2(device, std::stoi(number));
    }
    ::close(device);
    file.write("text");
  };
  const std::string message = "cannot write " + folder / "a" + ": No space left on device (after 0 bytes)";
  CHECK_THROWS_WITH_AS(write_atomically(folder / "a", write), message.c_str(), DiskFull);
  CHECK(read_text(folder / "a") == "old");
  CHECK(names_in(folder.path()) == Names{"a"});
}

TEST_CASE("file: a killed writer leaves the old file, and a temporary file that the next writer removes") {
  const ScratchFolder folder;
  folder.write("a", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    write_atomically(folder / "a", [](FileWriter& file) {
      file.write("half");
      ::raise(SIGKILL);
    });
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(read_text(folder / "a") == "old");
  CHECK(names_in(folder.path()).size() == 2);
  write_atomically(folder / "a", "new");
  CHECK(read_text(folder / "a") == "new");
  CHECK(names_in(folder.path()) == Names{"a"});
}

TEST_CASE("file: only temporary names are removed, and by a writer only those of its own file") {
  const ScratchFolder folder;
  const Names kept = {".d.tmp-", ".e.tmp-0123456789abcdeX", ".hidden", "c.tmp-0123456789abcdef"};
  for (const std::string& name : kept) folder.write(name, "text");
  for (const char* name : {".a.tmp-0000000000000000", ".b.tmp-0123456789abcdef", ".a.tmp-0123456789abcdef"}) folder.write(name, "text");
  write_atomically(folder / "a", "new");
  CHECK(names_in(folder.path()) ==
        Names{".b.tmp-0123456789abcdef", ".d.tmp-", ".e.tmp-0123456789abcdeX", ".hidden", "a", "c.tmp-0123456789abcdef"});
  remove_temporaries(folder.path());
  CHECK(names_in(folder.path()) == Names{".d.tmp-", ".e.tmp-0123456789abcdeX", ".hidden", "a", "c.tmp-0123456789abcdef"});
}

TEST_CASE("file: a new file has the rights of the process, and replaces a link") {
  const ScratchFolder folder;
  const std::string store = folder.write("store", "kept for all runs");
  std::filesystem::create_symlink("store", folder / "link");
  CHECK(read_text(folder / "link") == "kept for all runs");
  const mode_t mask = ::umask(027);
  write_atomically(folder / "link", "new");
  ::umask(mask);
  CHECK_FALSE(std::filesystem::is_symlink(folder / "link"));
  CHECK(read_text(folder / "link") == "new");
  CHECK(read_text(store) == "kept for all runs");
  struct stat status = {};
  REQUIRE(::stat((folder / "link").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0640);
}

TEST_CASE("file: a name in the working folder, and paths that cannot be written") {
  const ScratchFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  write_atomically("plain", "text");
  std::filesystem::current_path(before);
  CHECK(read_text(folder / "plain") == "text");
  const auto error = [](const std::string& path) { return error_of([&] { write_atomically(path, "text"); }); };
  const std::string missing = folder / "none/a", below = folder / "plain/a", long_name = folder / std::string(250, 'n');
  CHECK(error(missing) == "cannot write " + missing + ": folder " + folder / "none" + ": No such file or directory");
  CHECK(error(below) == "cannot write " + below + ": folder " + folder / "plain" + ": Not a directory");
  CHECK(error("/dev/null") == "cannot write /dev/null: it exists and is not a regular file");
  CHECK(error(folder.path()) == "cannot write " + folder.path() + ": it exists and is not a regular file");
  CHECK(error("") == "cannot write '': the path has no file name");
  CHECK(error(folder / "new/") == "cannot write '" + folder / "new/" + "': the path has no file name");
  CHECK(error(long_name) == "cannot write " + long_name + ": File name too long");
  CHECK(names_in(folder.path()) == Names{"plain"});
}

TEST_CASE("file: a growing file is read by others, also through a link") {
  const ScratchFolder folder;
  std::filesystem::create_symlink("a", folder / "link");
  AppendFile file(folder / "link");
  file.append("one");
  CHECK(read_text(folder / "a") == "one");
  AppendFile(folder / "a").append(", two");
  file.append(", three");
  file.sync();
  CHECK(read_text(folder / "a") == "one, two, three");
  CHECK(error_of([&] { AppendFile(folder.path()); }) == "cannot write " + folder.path() + ": Is a directory");
}

TEST_CASE("folder: a path that cannot be looked at is not missing") {
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

TEST_CASE("folder: names are sorted, and a missing file is removed without an error") {
  const ScratchFolder folder;
  for (const char* name : {"c", ".hidden", "b", "a/x"}) folder.write(name, "");
  CHECK(names_in(folder.path()) == Names{".hidden", "a", "b", "c"});
  for (int i = 0; i < 2; ++i) CHECK_NOTHROW(remove_file(folder / "c"));
  CHECK(names_in(folder.path()) == Names{".hidden", "a", "b"});
  CHECK(error_of([&] { remove_file(folder / "a"); }) == "cannot remove " + folder / "a" + ": Is a directory");
}

TEST_CASE("folder: one holder at a time has its lock") {
  const ScratchFolder scratch;
  std::optional<FolderLock> first = FolderLock::take(scratch.path());
  REQUIRE(first.has_value());
  CHECK_FALSE(FolderLock::take(scratch.path()).has_value());
  std::optional<FolderLock> moved = std::move(first);
  first.reset();
  CHECK_FALSE(FolderLock::take(scratch.path()).has_value());
  moved.reset();
  const std::optional<FolderLock> last = FolderLock::take(scratch.path(), true);
  CHECK(last.has_value());
  CHECK_FALSE(FolderLock::take(scratch.path()).has_value());
  CHECK(error_of([&] { FolderLock::take(scratch / "none"); }) == "folder " + scratch / "none" + ": No such file or directory");
}

TEST_CASE("folder: a lock knows that its folder was removed, renamed or replaced") {
  const ScratchFolder scratch;
  const std::string run = scratch / "run";
  make_folders(run);
  const std::optional<FolderLock> lock = FolderLock::take(run);
  REQUIRE(lock.has_value());
  std::filesystem::create_symlink("run", scratch / "link");
  CHECK(lock->holds(run));
  CHECK(lock->holds(scratch / "link"));
  std::filesystem::rename(run, scratch / "moved");
  CHECK_FALSE(lock->holds(run));
  CHECK(lock->holds(scratch / "moved"));
  make_folders(run);
  CHECK_FALSE(lock->holds(run));
  CHECK(FolderLock::take(run).has_value());
}

TEST_CASE("folder: missing folders above it are made, too") {
  const ScratchFolder scratch;
  for (const char* path : {"a/b/c", "a/b/c", "a/d/"}) {
    make_folders(scratch / path);
    CHECK(is_folder(scratch / path));
  }
  scratch.write("a/file", "x");
  for (const std::string path : {"a/file", "a/file/b"})
    CHECK(error_of([&] { make_folders(scratch / path); }) == scratch / "a/file" + ": cannot be created: a file already has this name");
}
