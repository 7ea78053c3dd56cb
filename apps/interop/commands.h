// The commands of this folder, each defined in the file with its name.
#pragma once
#include "apps/terminal/cli.h"

namespace ricci::apps {

extern const Command convert_command, probe_command;

}  // namespace ricci::apps
