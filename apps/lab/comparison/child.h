// Another program of this build as a child process.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace ricci::apps {

// Runs ricci-NAME, which stands beside the program that asks, and returns its exit code. What it prints goes to stderr, so that stdout
// is left to the result. While an Interrupt is alive, a request to end is passed on to the child once, which then saves and ends.
// Nothing is returned where the request came before the child was ready to save: it then ended at once. Ctrl-Z stops the child, too;
// the child never outlives this process. Errors: the program cannot be started, or another signal ended it.
std::optional<int> run_program(const std::string& name, const std::vector<std::string>& arguments);

}  // namespace ricci::apps
