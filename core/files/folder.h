// Folders held open, and the places of files. What is read or written in a folder that is held open stays in this folder, even
// when by now its path leads to another one.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ricci {

// A file or folder that the system has opened; closed at the end.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor();
  explicit operator bool() const { return value_ >= 0; }
  int get() const { return value_; }

 private:
  int value_ = -1;
};

// A value; copies share the open folder.
class Folder {
 public:
  // The folder at a path, which may lead through symbolic links. Error: names the path and the reason.
  explicit Folder(const std::string& path);

  const std::string& path() const { return path_; }  // as it was opened; for messages
  int descriptor() const { return descriptor_->get(); }

  // The folder of this name inside this one, or the one that a link of this name leads to; nothing where there is none. Errors: a file is
  // in its place, or it cannot be opened.
  std::optional<Folder> find(const std::string& name) const;
  // The same, made where there is none and then synced into this folder.
  Folder make(const std::string& name) const;

  // The names of everything inside, sorted. Error: the folder cannot be listed.
  std::vector<std::string> names() const;

  // Waits until the disk has the names. Some file systems cannot do that for a folder: there it does nothing. Error: the disk's.
  void sync() const;

  // Only one holder at a time has the lock of a folder, until the last copy of its value ends; the system frees the lock of a killed
  // program. Returns false if another holder has it. Some file systems have no locks; there the answer is true.
  bool lock() const;
  void wait_for_lock() const;  // the same, but another holder is waited for
  bool removed() const;        // its name is gone, so that no program can find it any more

 private:
  Folder(std::string path, int descriptor) : path_(std::move(path)), descriptor_(std::make_shared<Descriptor>(descriptor)) {}
  std::string path_;
  std::shared_ptr<const Descriptor> descriptor_;
};

// The place where a file is, or is to be: a path, which may lead through links, or a name in a folder that is held open.
struct FilePlace {
  FilePlace(const std::string& path) : path(path), name(path) {}
  FilePlace(const char* path) : FilePlace(std::string(path)) {}
  FilePlace(const Folder& folder, const std::string& name) : path(folder.path() + "/" + name), folder(folder), name(name) {}

  std::string path;              // for messages
  std::optional<Folder> folder;  // `name` is a path if it is not set
  std::string name;
};

// The target of the path; links are followed. A path that cannot be looked at does not count as missing. Error: names the path and the
// reason.
enum class PathKind { nothing, file, folder, other };
PathKind look_at(const std::string& path);
inline bool is_there(const std::string& path) { return look_at(path) != PathKind::nothing; }
inline bool is_file(const std::string& path) { return look_at(path) == PathKind::file; }
inline bool is_folder(const std::string& path) { return look_at(path) == PathKind::folder; }

// Makes a folder and the missing ones above it, each synced into the one that holds it. Returns the paths of the folders that were made,
// from the top. Error: names the first that cannot be made and the reason.
std::vector<std::string> make_folders(const std::string& path, unsigned rights = 0777);

}  // namespace ricci
