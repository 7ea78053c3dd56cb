// The commands of this folder, each defined in the file with its name.
#pragma once
#include "apps/terminal/cli.h"

namespace ricci::apps {

extern const Command analyze_command, bench_command, check_command, compare_command, inspect_command, plan_command, plot_command,
    runs_command;

}  // namespace ricci::apps
