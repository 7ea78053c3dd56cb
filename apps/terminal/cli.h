// Reading order: cli.h (arguments, errors, exit codes, manual pages), nearest.h, table.h, progress.h, streams.h, signals.h.
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

// CLI11 is a library of headers alone, which take seconds to compile: files that declare options include it, others need not.
namespace CLI {
class App;
}

namespace ricci::apps {

struct AppText {
  const char* name;                       // before every error
  const char* summary;                    // the first line of --help
  bool prints_result = true;              // its output is its result; otherwise its results are files, and its output may stay unread
  bool may_be_several = false;            // a launcher may start several processes of it (cuda/ranks/ranks.h)
  std::string (*more_words)() = nullptr;  // words that a shell offers in addition to its options, a line each: "lr="
};

// Declares the options (setup), parses, runs main and returns the exit code: the result of main; 0 after --help, --version
// and other requests for information; 1 after an exception, or where the result cannot be printed, with the line
// "NAME: message" on stderr, of 1,100 bytes at most; 2 after a mistake in the usage, with a line that names it. An exception on one of
// several ranks ends them all. A program that runs as one process refuses to be started as several, as by mpirun, and its children do not
// take themselves for ranks.
int run_app(
    int argc, const char* const* argv, const AppText& text, const std::function<void(CLI::App&)>& setup, const std::function<int()>& main);

// The same for a program with options of its own: setup(app, options) and main(options).
template <class Options, class Setup, class Main>
int run_app(int argc, const char* const* argv, const AppText& text, const Setup& setup, const Main& main) {
  Options options;
  return run_app(
      argc, argv, text, [&](CLI::App& app) { setup(app, options); }, [&] { return main(options); });
}

// The parts of run_app, without processes and work. parse_arguments() declares the options and reads the words: nothing where main may run,
// else the exit code. report() prints "NAME: message" on stderr and returns the code. printable(): one line, whatever the message holds.
// Control characters, which could move the cursor of a terminal, become blanks, and what is too long loses its middle. after_output(): a
// result that did not reach its reader is no success.
std::optional<int> parse_arguments(
    CLI::App& app, int argc, const char* const* argv, const AppText& text, const std::function<void(CLI::App&)>& setup);
int report(const AppText& text, const std::string& message, int exit_code);
std::string printable(std::string message);
int after_output(const AppText& text, int exit_code);

// "ricci 0.1.0, commit 1a2b3c4d5e, g++ 12.2.0": the commit ends with + where files differed from it, and is unknown outside a git checkout.
std::string build_info();

// The words that no option took, in the order in which they were typed.
std::vector<std::string> remaining_words(const CLI::App& app);

// ", the nearest is '--temperature'" for --temp: the option, or the options, that a user may have meant; empty if none is near.
std::string nearest_option(const CLI::App& app, const std::string& word);

// For ->check(): an integer; one of at least 1; of at least 0, as far as 64 bits reach; a number of threads, 0 (all) to 1024.
std::string any_integer(const std::string& text);
std::string at_least_one(const std::string& text);
std::string at_least_zero(const std::string& text);
std::string thread_number(const std::string& text);

// Prints the text and ends the program with exit code 0, as soon as the flag is met.
void add_text_flag(CLI::App& app, const char* flag, const char* help, const std::function<std::string()>& text);

// An option for each member that visit_fields of the struct lists: --top-k for top_k, with its description and its bound of 0 or 1. Numbers
// have their default in --help; a bool is a flag, the integers of a list are divided by commas. Lists of other things have no option.
void add_field_options(CLI::App& app, const std::vector<Field>& fields);
template <class Struct> void add_field_options(CLI::App& app, Struct& members) { add_field_options(app, fields_of(members)); }

}  // namespace ricci::apps
