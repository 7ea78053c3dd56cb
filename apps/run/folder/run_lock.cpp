#include "apps/run/folder/run_lock.h"

#include <unistd.h>

#include "core/error.h"
#include "core/files/file.h"

namespace ricci::apps {
namespace {

constexpr const char* kIdFile = "run_id";
constexpr int64_t kMaxId = 100;  // bytes

}  // namespace

// Between its opening and its locking the folder may have been removed, and another one made: then that one is entered.
Folder RunLock::enter(const std::string& path, std::vector<std::string>& made) {
  for (;;) {
    const std::vector<std::string> now = make_folders(path);
    made.insert(made.end(), now.begin(), now.end());
    Folder folder(path);
    if (!folder.lock()) fail("{}: another ricci-train is at work in it", {path});
    if (folder.is_at_its_path()) return folder;
  }
}

RunLock::RunLock(const std::string& path) : folder_(enter(path, made_)) {}

RunLock::~RunLock() {
  if (!id_.empty() || made_.empty() || !folder_.is_at_its_path()) return;
  for (auto path = made_.rbegin(); path != made_.rend(); ++path) ::rmdir(path->c_str());  // one that holds something stays
}

void RunLock::begin() {
  const FilePlace place(folder_, kIdFile);
  if (OpenFile::find(place)) id_ = read_text(place, kMaxId);
  if (!id_.empty()) return;
  id_ = random_digits() + random_digits() + "\n";
  write_file_atomically(place, id_);
}

void RunLock::check() const {
  const std::string& path = folder_.path();
  if (folder_.removed()) fail("{}: the folder was removed while this run was at work in it", {path});
  const FilePlace place(folder_, kIdFile);
  if (!OpenFile::find(place) || read_text(place, kMaxId) != id_)
    fail("{}: its files were removed or replaced while this run was at work in it", {path});
}

}  // namespace ricci::apps
