// The folder of a store that is being made: locked, and removed at the end unless it is kept.
#pragma once
#include <string>

#include "core/files/folder.h"

namespace ricci {

class Draft {
 public:
  // place: what the names of all stores start with that may take each other's place. In the cache folder, or, where that is empty or cannot
  // be used, in a folder for temporary files. Error: there is none.
  Draft(const std::string& cache_folder, const std::string& place);
  ~Draft();
  Draft(const Draft&) = delete;

  const Folder& folder() const { return folder_; }
  const std::string& fault() const { return fault_; }  // why it is not in the cache folder; empty if it is, or no cache folder is given
  // Keeps it, and removes the ones that it replaces and the leftovers of killed programs.
  void keep();

 private:
  std::string place_, fault_;
  bool kept_ = false;
  Folder folder_;
};

// Removes a folder that no draft holds any more.
void remove_unlocked(const std::string& path);

}  // namespace ricci
