// Folders held open: their content stays theirs when paths change, and links inside are not followed.
#include "core/files/folder.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>

#include "core/files/file.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace test_data;
namespace fs = std::filesystem;

namespace {

mode_t rights_of(const std::string& path) {
  struct stat status = {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 0777;
}

}  // namespace

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
  CHECK(folder.is_at_its_path());
  fs::rename(scratch / "run", scratch / "moved");
  scratch.write("run/a", "another run's");
  CHECK_FALSE(folder.is_at_its_path());
  CHECK_FALSE(folder.removed());
  write_file_atomically(FilePlace(folder, "a"), "new");
  CHECK(read_text(FilePlace(folder, "a")) == "new");
  CHECK(read_file(scratch / "run/a") == "another run's");
  CHECK(read_file(scratch / "moved/a") == "new");
  fs::remove_all(scratch / "moved");
  CHECK(folder.removed());
  CHECK(error_of([&] { write_file_atomically(FilePlace(folder, "a"), "x"); }) ==
        "cannot write " + scratch / "run/a" + ": No such file or directory");
  CHECK(read_file(scratch / "run/a") == "another run's");
}

TEST_CASE("folder: links inside are not followed, whichever way they are used") {
  const ScratchFolder scratch;
  const std::string foreign = scratch.write("foreign", "not ours");
  scratch.write("outside/file", "not ours either");
  fs::create_directory(scratch / "run");
  fs::create_symlink(foreign, scratch / "run/link");
  fs::create_symlink(scratch / "outside", scratch / "run/folder");
  fs::create_symlink(scratch / "nowhere", scratch / "run/dangling");
  const Folder folder(scratch / "run");
  for (const char* name : {"link", "dangling"}) {
    const FilePlace place(folder, name);
    CHECK(error_of([&] { read_text(place); }) == "cannot read " + place.path + ": it is a symbolic link, which is not followed here");
    CHECK(error_of([&] { OpenFile::find(place); }) == "cannot read " + place.path + ": it is a symbolic link, which is not followed here");
    CHECK(error_of([&] { write_file_atomically(place, "x"); }) ==
          "cannot write " + place.path + ": it is a symbolic link, which is not followed here");
  }
  CHECK(error_of([&] { folder.make("folder"); }) ==
        "folder " + scratch / "run/folder" + ": a symbolic link is in its place, which is not followed");
  CHECK(error_of([&] { folder.find("folder"); }) ==
        "folder " + scratch / "run/folder" + ": a symbolic link is in its place, which is not followed");
  CHECK(error_of([&] { folder.find("link"); }) ==
        "folder " + scratch / "run/link" + ": a symbolic link is in its place, which is not followed");
  CHECK(read_file(foreign) == "not ours");
  CHECK_FALSE(fs::exists(scratch / "nowhere"));
  remove_file(FilePlace(folder, "link"));  // the link itself
  CHECK(read_file(foreign) == "not ours");
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
  CHECK(make_folders(scratch / "a/d") == std::vector<std::string>{scratch / "a/d"});
}

TEST_CASE("folder: one's own is closed to the writing of others") {
  const ScratchFolder scratch;
  CHECK(own_folder(scratch / "new/cache").path() == scratch / "new/cache");
  CHECK(rights_of(scratch / "new/cache") == 0700);
  CHECK(rights_of(scratch / "new") == 0700);
  fs::create_directory(scratch / "open");
  for (const auto& [before, after] : {std::pair{0777, 0755}, {0775, 0755}, {0755, 0755}, {0700, 0700}}) {
    REQUIRE(::chmod((scratch / "open").c_str(), static_cast<mode_t>(before)) == 0);
    own_folder(scratch / "open");
    CHECK(rights_of(scratch / "open") == static_cast<mode_t>(after));
  }
  const std::string foreign = ::geteuid() == 0 ? scratch / "foreign" : "/";
  if (::geteuid() == 0) {
    fs::create_directory(foreign);
    REQUIRE(::chown(foreign.c_str(), 12345, 12345) == 0);
  }
  CHECK(error_of([&] { own_folder(foreign); }) == "folder " + foreign + ": it belongs to another user");
}
