// Reading order: cli.h (arguments, errors, exit codes), table.h, model_options.h, progress.h, streams.h, signals.h.
//   int main(int argc, char** argv) {
//     return run_app<RunOptions>(argc, argv, {"ricci-train", "Trains a language model."}, add_run_options<TrainConfig>,
//         [](const RunOptions& options) { return train(load_config<TrainConfig>(options.file(), options.overrides())); });
//   }
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/config/config.h"

// CLI11 is a library of headers alone, which take seconds to compile: files that declare options include it, others need not.
namespace CLI {
class App;
}

namespace ricci::apps {

struct AppText {
  const char* name;             // before every error
  const char* summary;          // the first line of --help
  bool prints_result = true;    // its output is its result; otherwise its results are files, and its output may stay unread
  bool may_be_several = false;  // a launcher may start several processes of it (cuda/ranks/ranks.h)
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

// For ->check(): an integer; one of at least 1; of at least 0, as far as 64 bits reach; a number of threads, 0 (all) to 1024.
std::string any_integer(const std::string& text);
std::string at_least_one(const std::string& text);
std::string at_least_zero(const std::string& text);
std::string thread_number(const std::string& text);

// The arguments [FILE] [KEY=VALUE ...] of programs that read a run file, or several. A word with a slash before its equals sign is a file;
// --KEY=VALUE is KEY=VALUE. ~KEY removes a key that the file sets. Error: a key is given with dashes and without: it is not known which of
// the two came last.
class RunOptions {
 public:
  const std::string& file() const { return files_[0]; }  // empty if none was given
  const std::vector<std::string>& files() const { return files_; }
  const std::vector<std::string>& overrides() const { return overrides_; }

 private:
  friend void add_run_arguments(CLI::App& app, RunOptions& options, const char* help, bool several);
  std::vector<std::string> files_{""};
  std::vector<std::string> overrides_;
};
void add_run_arguments(CLI::App& app, RunOptions& options,
    const char* help = "Run file (YAML), then keys of it: model.layers=6 lr=3e-4; ~KEY removes a key that the file sets",
    bool several = false);
// Prints the text and ends the program with exit code 0, as soon as the flag is met.
void add_text_flag(CLI::App& app, const char* flag, const char* help, const std::function<std::string()>& text);

// An option for each member that visit_fields of the struct lists: --top-k for top_k, with its description and its bound of 0 or 1. Numbers
// have their default in --help; a bool is a flag, the integers of a list are divided by commas. Lists of other things have no option.
void add_field_options(CLI::App& app, const std::vector<Field>& fields);
template <class Struct> void add_field_options(CLI::App& app, Struct& members) { add_field_options(app, fields_of(members)); }

// The arguments, and --help-config: every key of Config with default and description.
template <class Config> void add_run_options(CLI::App& app, RunOptions& options) {
  add_run_arguments(app, options);
  add_text_flag(
      app, "--help-config", "Print every key of a run file with its default, as YAML, and exit", [] { return describe(Config()); });
}

}  // namespace ricci::apps
