// The places of runs, and of the files that they read.
#pragma once
#include <string>

#include "apps/run/config/train_config.h"

namespace ricci::apps {

// The folder in which the folders of runs are made: the key `runs`, else $RICCI_RUNS, else runs.
std::string folder_of_runs(const TrainConfig& config = {});

// A run by its folder or file, or by its name: NAME stands for the run of that name in folder_of_runs(), unless NAME itself is a file or
// the folder of a run. A path under which there is nothing comes back as it is.
std::string find_run(const std::string& path_or_name);

// The config with the places at which the files that it names were found: texts, tokenizer, init. So the run goes on and is evaluated from
// any folder, and without $RICCI_DATA. What is not found stays as it is.
TrainConfig with_found_files(TrainConfig config);

}  // namespace ricci::apps
