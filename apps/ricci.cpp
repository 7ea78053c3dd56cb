// ricci: one program with a table of commands. `ricci train run.yaml` runs the command train, and so does the link ricci-train to this
// program. `ricci help train` means `ricci train --help`.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/interop/commands.h"
#include "apps/lab/commands.h"
#include "apps/run/commands.h"
#include "core/nearest.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

// The commands, in the order of the overview.
struct Entry {
  const char* task;
  const Command& command;
  std::string word() const { return std::string(command.text.name).substr(std::string_view("ricci ").size()); }
};
constexpr const char *kMake = "Make a model", *kUse = "Use it", *kLook = "Look at runs", *kDevelop = "Develop";
const Entry kCommands[] = {{kMake, train_command}, {kMake, tokenize_command}, {kMake, prepare_command}, {kMake, convert_command},
    {kUse, generate_command}, {kUse, eval_command}, {kUse, predict_command}, {kLook, runs_command}, {kLook, plot_command},
    {kLook, compare_command}, {kLook, inspect_command}, {kLook, analyze_command}, {kDevelop, plan_command}, {kDevelop, bench_command},
    {kDevelop, check_command}, {kDevelop, probe_command}};

std::string overview() {
  std::string text = "ricci train data=my.txt name=mine   trains a language model on a text\n"
                     "ricci generate mine                 lets it write\n";
  std::string task;
  for (const Entry& entry : kCommands) {
    if (entry.task != task) text += std::string("\n") + entry.task + ":\n";
    task = entry.task;
    text += two_columns(entry.word(), entry.command.text.summary);
  }
  return text + "\nricci help COMMAND explains a command.\n";
}

// Handles a missing command: the overview, --version, or an error with the nearest command.
std::function<int()> add_overview(CLI::App& app) {
  const auto print = [] {
    std::fputs(overview().c_str(), stdout);
    return 0;
  };
  app.prefix_command();
  app.set_help_flag();
  app.add_flag_callback("-h,--help", [print] {
    print();
    throw CLI::Success();
  });
  app.parse_complete_callback([&app] {
    if (app.remaining().empty()) return;
    std::vector<std::string> known;
    for (const Entry& entry : kCommands) known.push_back(entry.word());
    const std::string word = app.remaining()[0];
    throw CLI::ValidationError("no command '" + one_line(word) + "'" + nearest_note(word, known));
  });
  return print;
}

const Command kWithoutCommand{{.name = "ricci", .may_be_several = true}, add_overview};

}  // namespace

int main(int argc, char** argv) {
  std::vector<const char*> words(argv, argv + argc);
  const std::string program = argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "";
  const std::string link = program.starts_with("ricci-") ? program.substr(6) : "";
  if (!link.empty()) words.insert(words.begin() + 1, link.c_str());
  if (words.size() > 1 && std::string_view(words[1]) == "help") {
    words.erase(words.begin() + 1);
    words.resize(std::min<size_t>(words.size(), 2));
    words.push_back("--help");
  }
  for (const Entry& entry : kCommands)
    if (words.size() > 1 && words[1] == entry.word())
      return run_command(entry.command, static_cast<int>(words.size()) - 1, words.data() + 1);
  return run_command(kWithoutCommand, static_cast<int>(words.size()), words.data());
}
