#include "data/shards/draft.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "core/files/file.h"

namespace ricci {

namespace fs = std::filesystem;

namespace {

Folder start(const Folder& base, const std::string& place) {
  for (;;) {
    const Folder made = base.make(place + random_digits());
    if (made.lock() && !made.removed()) return made;  // else another program took it for one that a killed program left
  }
}

// A folder that the user names has the usual rights, so that others can use it as well; the others are for this user only.
Folder start(const std::string& cache_folder, const std::string& place, std::string& fault) {
  try {
    const char* const named = std::getenv("RICCI_CACHE");
    if (!cache_folder.empty()) {
      make_folders(cache_folder, named && cache_folder == named ? 0777 : 0700);
      return start(Folder(cache_folder), place);
    }
  } catch (const Error& error) {
    fault = error.what();
  }
  const auto temporary = [&](const fs::path& path) {
    const Folder made = start(Folder(path.string()), place);
    ::fchmod(made.descriptor(), 0700);
    return made;
  };
  std::error_code error;
  const fs::path asked = fs::temp_directory_path(error);  // $TMPDIR, where that is a folder
  try {
    return temporary(error ? "/tmp" : asked);
  } catch (const Error&) {  // there is another
    return temporary("/var/tmp");
  }
}

}  // namespace

Draft::Draft(const std::string& cache_folder, const std::string& place) : place_(place), folder_(start(cache_folder, place, fault_)) {}

Draft::~Draft() {
  std::error_code ignored;
  if (!kept_) fs::remove_all(folder_.path(), ignored);
}

void Draft::keep() {
  kept_ = true;
  std::error_code ignored;
  const std::string base = fs::path(folder_.path()).parent_path().string();
  for (const std::string& name : Folder(base).names()) {
    const std::string path = base + "/" + name;
    const bool is_other = name.starts_with(place_) && path != folder_.path() && fs::is_directory(path, ignored);
    if (is_other) remove_unlocked(path);
  }
}

void remove_unlocked(const std::string& path) {
  try {
    std::error_code ignored;
    if (const Folder folder(path); folder.lock()) fs::remove_all(path, ignored);
  } catch (const Error&) {  // another program has removed it
  }
}

}  // namespace ricci
