// The folder of a store that is being made: locked, and removed at the end unless it is kept.
#pragma once
#include <string>

#include "core/files/folder.h"

namespace ricci {

class Draft {
 public:
  // place: what the names of all stores start with that may take each other's place. In the cache folder, which is this user's own; or,
  // where that cannot be, in the first folder for temporary files that has room for it. Error: there is none.
  Draft(const std::string& cache_folder, const std::string& place);
  ~Draft();
  Draft(const Draft&) = delete;

  const Folder& folder() const { return folder_; }
  bool is_in_cache() const { return in_cache_; }
  // Keeps it, and removes the ones that it replaces and the leftovers of killed programs.
  void keep();

 private:
  std::string place_;
  bool in_cache_ = true, kept_ = false;
  Folder folder_;
};

// Removes a folder that no draft holds any more.
void remove_unlocked(const std::string& path);

}  // namespace ricci
