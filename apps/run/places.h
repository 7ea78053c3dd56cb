// Places of runs, run files and the files that they name.
#pragma once
#include <string>

#include "apps/run/train_config.h"

namespace ricci::apps {

inline constexpr const char* kConfigFile = "config.yaml";  // of a run

std::string folder_of_runs(const TrainConfig& config = {});  // the key `runs`, else $RICCI_RUNS, else runs
// The path of a run by its name in folder_of_runs(), unless a file or a run folder here has this name. Other paths are not changed. Error:
// a folder of Hugging Face, or its weights.
std::string find_run(const std::string& path_or_name);
std::string folder_name(const std::string& path);  // the name of a run in tables and pictures
std::string runs_note(const std::string& name);    // "; runs has a, b, c": the known runs, after the nearest; empty for a path
// Error: no run file has this path. It names the nearest run file next to it, in apps/configs or in the installation.
void check_run_file(const std::string& path);
// The config with the full paths of the files that it names, so the run continues from any folder; unknown ones are unchanged.
TrainConfig with_found_files(TrainConfig config);

}  // namespace ricci::apps
