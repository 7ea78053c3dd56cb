// What a pipe or a terminal gives to a program.
#pragma once
#include <string>

namespace ricci::apps {

// All of stdin, as it is. Error: it cannot be read.
std::string read_stdin();

}  // namespace ricci::apps
