// A run folder while a run is trained in it: no other process trains there, and it is still the folder of this run.
#pragma once
#include <string>
#include <vector>

#include "core/files/folder.h"

namespace ricci::apps {

class RunLock {
 public:
  // Makes the folder where there is none, and locks it. Error: another process is at work in it, or it cannot be made.
  explicit RunLock(const std::string& path);
  // Gives the folder free. One that was made and in which no run has begun is removed again.
  ~RunLock();
  RunLock(const RunLock&) = delete;

  const Folder& folder() const { return folder_; }

  // From now on the folder is that of this run, which is known by a random number in the file run_id. A run that goes on
  // keeps its number.
  void begin();
  // To be called before what is in the folder is replaced or removed. Errors: the folder was removed, or its content was
  // replaced by another run's.
  void check() const;

 private:
  static Folder enter(const std::string& path, std::vector<std::string>& made);

  std::vector<std::string> made_;  // folders that this made
  Folder folder_;
  std::string id_;  // empty before begin()
};

}  // namespace ricci::apps
