// Where runs lie, and where their data does.
#pragma once
#include <string>

#include "apps/config/train_config.h"

namespace ricci::apps {

// The folder in which the folders of runs are made: the key `runs`, else $RICCI_RUNS, else runs.
std::string folder_of_runs(const TrainConfig& config = {});

// A run by its folder or file, or by its name: NAME stands for the run of that name in folder_of_runs() where there is nothing else
// of that name. A path under which there is nothing comes back as it is.
std::string find_run(const std::string& path_or_name);

// The config with the places at which its data was found, so that the run goes on and is evaluated from any folder, and without
// $RICCI_DATA. What is not found stays as it is.
TrainConfig with_found_data(TrainConfig config);

}  // namespace ricci::apps
