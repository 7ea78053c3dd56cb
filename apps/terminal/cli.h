// The command line of a program, or of a command of `ricci`:
//   const Command ricci::apps::predict_command{
//       {.name = "ricci predict", .summary = "Predicts the classes of documents."}, with_options<Options, add_options, predict>};
// Reading order: cli.h (arguments, errors, exit codes), table.h, progress.h, streams.h (signals, stdin and stdout).
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/fields.h"

// CLI11 takes seconds to compile, so only files that declare options include it.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ricci::apps {

struct AppText {
  const char* name;                // begins every error message
  const char* summary = "";        // the first line of --help
  bool prints_result = true;       // false if the result is in files; then unread output is not an error
  bool may_be_several = false;     // if mpirun or torchrun can start multiple processes (cuda/ranks/ranks.h)
  const char* examples = nullptr;  // two command lines at the end of --help, one per line
};

// Declares the options (setup), parses them, calls run and returns the exit code:
//   0   after --help and --version
//   1   after an exception, or if the result cannot be printed, with "NAME: message" on stderr
//   2   after a usage error, with a line about it on stderr
//   or the result of run.
// If one rank throws, all ranks end. The other ranks would wait for it forever.
int run_app(
    int argc, const char* const* argv, const AppText& text, const std::function<void(CLI::App&)>& setup, const std::function<int()>& run);

// A command of `ricci`: declare() declares its options, and returns the function that runs the command with them.
struct Command {
  AppText text;  // its name is "ricci train"
  std::function<int()> (*declare)(CLI::App&);
};
int run_command(const Command& command, int argc, const char* const* argv);

// A Command::declare for options in a struct.
template <class Options, auto add_options, auto run> std::function<int()> with_options(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  add_options(app, *options);
  return [options] { return run(*options); };
}

// The first half of run_app: declares and parses the options. Returns the exit code if run should not be called.
std::optional<int> parse_arguments(
    CLI::App& app, int argc, const char* const* argv, const AppText& text, const std::function<void(CLI::App&)>& setup);

// The message as one line of at most 1,000 bytes, without control characters (they could move the cursor).
std::string printable(const std::string& message);

// "ricci 0.3.0, commit 1a2b3c4d5e, g++ 12.2.0". The commit ends with + if files changed since the commit, and is unknown outside a git
// checkout.
std::string build_info();

// Wraps words at 80 columns. The first line begins at `column`, the others after `blanks` blanks. Ends with a line end.
std::string wrapped(const std::string& text, size_t blanks = 0, size_t column = 0);
// Returns a name, with its text in a second column. A long name gets its own lines above the text.
std::string two_columns(const std::string& name, const std::string& text);

// ", the nearest is '--temperature'" for --temp. Empty if no option of the program or its command is near.
std::string nearest_option(const CLI::App& app, const std::string& word);

// For ->check(): an integer of at least 1, an integer from 0 to 2^64 - 1, a thread count from 0 (all) to 1024.
std::string at_least_one(const std::string& text);
std::string at_least_zero(const std::string& text);
std::string thread_number(const std::string& text);

// Keeps brackets in the values of an option for a list of texts: CLI11 would split the text [a,b] into two.
void keep_brackets(CLI::Option* texts);

// Declares an option for each member that the struct's visit_fields lists: --top-k for top_k, with its description and its lower bound of 0
// or 1. --help shows the defaults of numbers. A bool is a flag. Commas separate the integers of a list. Other lists get no option.
void add_field_options(CLI::App& app, const std::vector<Field>& fields);
template <class Struct> void add_field_options(CLI::App& app, Struct& members) { add_field_options(app, fields_of(members)); }

}  // namespace ricci::apps
