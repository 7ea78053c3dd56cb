// Another program of this build as a child process.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace ricci::apps {

// Runs ricci-NAME, which is beside this program, and returns its exit code. Its output goes to stderr, so that stdout is left to the
// result. While an Interrupt is alive, a request to end is passed on to the child once, which then saves and ends. Returns nothing if the
// request came before the child was ready to save: it then ended at once. Ctrl-Z stops the child, too; the child never outlives this
// process. Errors: the program cannot be started, or another signal ended it.
std::optional<int> run_program(const std::string& name, const std::vector<std::string>& arguments);

}  // namespace ricci::apps
