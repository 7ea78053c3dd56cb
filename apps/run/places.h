// The places of runs, and of the files that they read; and the lock of a place in which a run is trained.
#pragma once
#include <string>
#include <vector>

#include "apps/run/train_config.h"
#include "core/files/folder.h"

namespace ricci::apps {

// The folder in which the folders of runs are made: the key `runs`, else $RICCI_RUNS, else runs.
std::string folder_of_runs(const TrainConfig& config = {});

// A run by its folder or file, or by its name: NAME is the run of that name in folder_of_runs(), unless NAME itself is a file or
// the folder of a run. A path under which there is nothing comes back as it is.
std::string find_run(const std::string& path_or_name);

// "; runs has a, b, c": the runs that a user may have meant by a name, the nearest as it; nothing where there are none, or for a path.
std::string runs_note(const std::string& name);

// Error: there is nothing under the path of a run file. The run file whose name is nearest is named, or some of the present ones:
// beside it, in apps/configs and where the programs are installed.
void check_run_file(const std::string& path);

// The config with the places at which the files that it names were found: texts, tokenizer, init. So the run goes on and is evaluated from
// any folder, and without $RICCI_DATA. What is not found stays as it is. A place that cannot be looked at is an error for a request; in the
// config of an old run it stays as it is.
enum class FilesOf { request, old_run };
TrainConfig with_found_files(TrainConfig config, FilesOf whose = FilesOf::request);

// A run folder while a run is trained in it: no other process trains there, and it is still the folder of this run.
class RunLock {
 public:
  // Makes the folder where there is none, and locks it. Error: another process is at work in it, or it cannot be made.
  explicit RunLock(const std::string& path);
  // Gives the folder free. One that was made and in which no run has begun is removed again.
  ~RunLock();
  RunLock(const RunLock&) = delete;

  const Folder& folder() const { return folder_; }

  // From now on the folder is this run's, which is known by a random number in the file run_id. A run that goes on keeps its number.
  void begin();
  // To be called before what is in the folder is replaced or removed. Errors: the folder was removed, or its content was
  // replaced by another run's.
  void check() const;

 private:
  std::vector<std::string> made_;  // folders that this made
  Folder folder_;
  std::string id_;  // empty before begin()
};

}  // namespace ricci::apps
