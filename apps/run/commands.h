// The commands of this folder, each defined in the file of its name.
#pragma once
#include "apps/terminal/cli.h"

namespace ricci::apps {

extern const Command train_command, eval_command, generate_command, predict_command, prepare_command, tokenize_command;

}  // namespace ricci::apps
