// The list of runs: the state of each, how far it is, and what differs between their configs.
#pragma once
#include <string>
#include <vector>

#include "apps/lab/report/report.h"

namespace ricci::apps {

// The folders of runs in the folder of runs, by their names. Error: there is none.
std::vector<std::string> all_runs();

// A row for each run, in the order of their last records, the newest first. Its state is `running` while a process trains it; `finished`
// once all steps are done, or patience has run out; else `interrupted`; `new` where it has no record. A run is given by its folder or name.
// A folder that is no run, or whose config.yaml cannot be read, is left out, and a note names it. Error: none of them is a run.
Report list_runs(const std::vector<std::string>& runs);

}  // namespace ricci::apps
