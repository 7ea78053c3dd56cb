// Reading order: cli.h (arguments, errors, exit codes), table.h, progress.h, streams.h (signals, stdin and stdout).
//   int main(int argc, char** argv) {
//     return run_app<Options>(argc, argv, {"ricci-convert", "Models of other programs as run folders."}, add_options,
//         [](const Options& options) { return convert(options); });
//   }
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/fields.h"

// CLI11 takes seconds to compile, and so only files that declare options include it.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ricci::apps {

struct AppText {
  const char* name;                // before every error
  const char* summary;             // the first line of --help
  bool prints_result = true;       // its output is its result; otherwise its results are files, and its output may stay unread
  bool may_be_several = false;     // a launcher may start several processes of it (cuda/ranks/ranks.h)
  const char* examples = nullptr;  // two command lines at the end of --help, one above the other
};

// Declares the options (setup), parses, runs main and returns the exit code: the result of main; 0 after --help and --version; 1 after an
// exception, or if the result cannot be printed, with the line "NAME: message" on stderr; 2 after a mistake in the usage, with a line that
// names it. An exception on one of several ranks ends them all. A program that runs as one process refuses to be started as several.
int run_app(
    int argc, const char* const* argv, const AppText& text, const std::function<void(CLI::App&)>& setup, const std::function<int()>& main);

// The same for a program that holds its options in a struct: setup(app, options) and main(options).
template <class Options, class Setup, class Main>
int run_app(int argc, const char* const* argv, const AppText& text, const Setup& setup, const Main& main) {
  Options options;
  return run_app(
      argc, argv, text, [&](CLI::App& app) { setup(app, options); }, [&] { return main(options); });
}

// The parts of run_app. parse_arguments(): nothing if main shall run, else the exit code. report() prints "NAME: message" on stderr and
// returns the code. printable(): one line of at most 1,000 bytes without control characters, because they could move the cursor.
std::string printable(const std::string& message);
std::optional<int> parse_arguments(
    CLI::App& app, int argc, const char* const* argv, const AppText& text, const std::function<void(CLI::App&)>& setup);
int report(const AppText& text, const std::string& message, int exit_code);
int after_output(const AppText& text, int exit_code);

// "ricci 0.1.0, commit 1a2b3c4d5e, g++ 12.2.0": the commit ends with + if files differed from it, and is unknown outside a git checkout.
std::string build_info();

// Words in lines of at most 80 columns. The first line begins at this column, and the others after as many blanks. Ends with a line end.
std::string wrapped(const std::string& text, size_t blanks = 0, size_t column = 0);
// A name, and its text in a second column. A long name has lines of its own above.
std::string two_columns(const std::string& name, const std::string& text);

// ", the nearest is '--temperature'" for --temp. Empty if no option of the program or of its command is near.
std::string nearest_option(const CLI::App& app, const std::string& word);

// For ->check(): an integer; one of at least 1; of at least 0, as far as 64 bits reach; a number of threads, 0 (all) to 1024.
std::string any_integer(const std::string& text);
std::string at_least_one(const std::string& text);
std::string at_least_zero(const std::string& text);
std::string thread_number(const std::string& text);

// For an optional list of texts, because CLI11 takes [a,b] for two words of a list.
void keep_brackets(CLI::Option* texts);

// An option for each member that visit_fields of the struct lists: --top-k for top_k, with its description and its bound of 0 or 1. Numbers
// have their default in --help; a bool is a flag, the integers of a list are divided by commas. Lists of other things have no option.
void add_field_options(CLI::App& app, const std::vector<Field>& fields);
template <class Struct> void add_field_options(CLI::App& app, Struct& members) { add_field_options(app, fields_of(members)); }

}  // namespace ricci::apps
