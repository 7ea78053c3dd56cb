// ricci: one name for all programs. Without a word it lists them; `ricci train run.yaml` is `ricci-train run.yaml`, `ricci help train` is
// `ricci-train --help`, and `ricci runs` is `ricci-plot --list`. It finds the programs in its own folder.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/terminal/cli.h"
#include "core/error.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

const std::vector<std::string> kPrograms{RICCI_PROGRAM_NAMES};

std::filesystem::path folder() { return std::filesystem::read_symlink("/proc/self/exe").parent_path(); }

// The summary of a program: its help up to the usage. The programs are in the current folder.
std::string summary_of(const std::string& name) {
  std::FILE* const help = ::popen(("./ricci-" + name + " --help 2>/dev/null").c_str(), "r");
  if (!help) fail("cannot start ricci-{}: {}", {name, std::strerror(errno)});
  std::string text;
  for (int c = std::fgetc(help); c != EOF; c = std::fgetc(help)) text += static_cast<char>(c);
  ::pclose(help);
  return text.substr(0, text.find("\nUsage:"));
}

std::string list() {
  std::filesystem::current_path(folder());
  std::string text;
  for (const std::string& name : kPrograms)
    if (::access(("ricci-" + name).c_str(), X_OK) == 0) text += two_columns(name, summary_of(name));
  return text;
}

// Replaces this process with the program. Error: it cannot be started.
int start(const std::string& name, const std::vector<std::string>& arguments) {
  const std::string program = folder() / ("ricci-" + name);
  std::vector<char*> words{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  ::execv(program.c_str(), words.data());
  fail("{}: {}", {program, std::strerror(errno)});
}

void check_known(const std::string& name) {
  if (std::find(kPrograms.begin(), kPrograms.end(), name) == kPrograms.end())
    throw CLI::ValidationError("no program '" + one_line(name) + "'" + nearest_note(name, kPrograms));
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words;
  return run_app(
      argc, argv,
      {"ricci", "ricci PROGRAM ... starts ricci-PROGRAM; ricci help PROGRAM explains one; ricci runs lists runs.", true, true,
          "ricci train data=my.txt name=mine\nricci generate mine"},
      [&](CLI::App& app) {
        app.prefix_command();
        app.footer([] { return "Programs:\n" + list(); });
        app.parse_complete_callback([&] {
          words = app.remaining();
          if (words.size() == 2 && words[0] == "help") words = {words[1], "--help"};
          if (words == std::vector<std::string>{"help"}) throw CLI::CallForHelp();
          if (!words.empty() && words[0] == "runs") {
            words[0] = "--list";
            words.insert(words.begin(), "plot");
          }
          if (!words.empty()) check_known(words[0]);
        });
      },
      [&] {
        if (!words.empty()) return start(words[0], {words.begin() + 1, words.end()});
        std::fputs(list().c_str(), stdout);
        return 0;
      });
}
