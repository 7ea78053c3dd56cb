// ricci compare: trains multiple models with multiple seeds on the same data, at equal parameters, FLOPs or memory, and reports the results
// in one table and one drawing.
//   ricci compare apps/configs/multiscale/families_wikitext2.yaml --equal parameters --change ff --seeds 1,2,3 -o families.html
//   ricci compare apps/configs/multiscale/families_wikitext2.yaml 'lr=[1e-3, 3e-4]' --only vanilla
// Each training is a ricci train in runs/NAME_MODEL_SEED, so the same command continues an interrupted comparison.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "apps/lab/commands.h"
#include "apps/lab/comparison/comparison.h"
#include "apps/run/options.h"
#include "apps/run/run_folder.h"
#include "apps/terminal/cli.h"
#include "apps/terminal/streams.h"
#include "core/error.h"
#include "core/files/file.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  RunOptions comparison;  // its file, and keys for all models
  std::string equal = "nothing", change = "width", name;
  ReportOptions report;
  std::vector<uint64_t> seeds = {1};
  std::vector<std::string> only;
  bool only_plans = false;
};

// Runs `ricci train`, and returns its exit code, above 128 after a request to end. Error: an unexpected signal
// killed it. Its output goes to stderr, because stdout is for the result. It shares the process group, so Ctrl-C and Ctrl-Z reach both.
// Other requests are passed on as SIGUSR1, and only at the second look: if a SIGTERM was sent to both, a second SIGTERM would end the
// training before it has saved.
int train(const std::vector<std::string>& arguments) {
  constexpr useconds_t kWait = 20'000;  // microseconds between looks
  std::string program = "/proc/self/exe";
  std::vector<std::string> words{"ricci", "train"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error) fail("cannot start ricci train: {}", {std::strerror(error)});
  int status = 0;
  for (pid_t ended = 0, looks = 0; (ended = ::waitpid(child, &status, WNOHANG)) != child; ::usleep(kWait)) {
    if (ended < 0 && errno != EINTR) fail("cannot wait for ricci train: {}", {std::strerror(errno)});
    if (Interrupt::requested() && ++looks == 2) ::kill(child, SIGUSR1);
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  if (!Interrupt::requested()) fail("ricci train: ended by signal {}", {WTERMSIG(status)});
  return 128 + WTERMSIG(status);
}

// Trains the models that are not trained yet, and reads their results, seed by seed. Returns false if interrupted.
bool train_all(std::vector<Contestant>& models, const std::vector<uint64_t>& seeds, const std::string& name) {
  const Interrupt interrupt(false);
  const auto is_finished = [](const RunRequest& request) { return RunFolder::to_train(request).finished().has_value(); };
  size_t number = 0;
  for (const uint64_t seed : seeds)
    for (Contestant& model : models) {
      std::vector<std::string> words{model.file, "sample.tokens=0"};
      words.insert(words.end(), model.overrides.begin(), model.overrides.end());
      words.push_back(format_message("seed={}", {seed}));
      words.push_back(format_message("name={}_{}_{}", {name, model.name, seed}));
      const RunRequest request = request_run(model.file, {words.begin() + 1, words.end()});
      const std::string place = format_message("run {} of {}", {++number, models.size() * seeds.size()});
      const bool starts = !Interrupt::requested();
      if (!is_finished(request)) {
        if (starts) write_output(STDERR_FILENO, place + ": " + request.folder + "\n");
        const int code = starts ? train(words) : 0;
        if (code > 0 && code < 128) fail("{}: ricci train ended with exit code {}", {request.folder, code});
        if (!starts || !is_finished(request)) {
          if (!Interrupt::requested()) fail("{}: the run is not finished; repeat the command to continue it", {request.folder});
          write_output(
              STDERR_FILENO, format_message("interrupted {} {}; repeat the command to continue\n", {starts ? "in" : "before", place}));
          return false;
        }
      }
      model.outcomes.push_back(read_outcome(request.folder, seed));
    }
  return true;
}

// The words of this command line.
std::string command_line() {
  std::string words = read_text("/proc/self/cmdline", 1 << 20);
  if (!words.empty()) words.pop_back();
  std::replace(words.begin(), words.end(), '\0', ' ');
  return words.substr(words.find_last_of('/', words.find(' ')) + 1);
}

int compare(const Options& options) {
  const std::string file = options.comparison.file(),
                    name = options.name.empty() ? std::filesystem::path(file).stem().string() : options.name;
  if (file.empty()) fail("no comparison file given; it lists models as NAME: RUN FILE (--help)");
  for (auto seed = options.seeds.begin(); seed != options.seeds.end(); ++seed)
    if (std::find(options.seeds.begin(), seed, *seed) != seed) fail("--seeds: {} is given twice", {*seed});
  for (const std::string& word : options.comparison.overrides)
    if (word.starts_with("name=") || word.starts_with("seed=")) fail("{}: use --name and --seeds instead", {word});
  check(options.report);
  const Equal equal = choice_of<Equal>("--equal", options.equal);
  Comparison comparison{name + (equal == Equal::nothing ? "" : ", equal " + options.equal), command_line(), equal, {}};
  comparison.models =
      matched(read_contestants(file, options.comparison.overrides), equal, choice_of<Change>("--change", options.change), options.only);
  ReportOptions output = options.report;
  if (options.only_plans) output.out.clear();
  else if (!train_all(comparison.models, options.seeds, name)) return Interrupt::exit_code();
  publish(report_of(comparison), output);
  if (!output.out.empty() && output.json.empty()) print("saved " + output.out);
  return 0;
}

void add_options(CLI::App& app, Options& options) {
  add_run_arguments(app, options.comparison,
      "Comparison file (YAML) with models as NAME: [RUN FILE, KEY=VALUE, ...], then keys for all of them: steps=500. A list trains a "
      "model for each value: lr=[1e-3,3e-4]");
  app.add_option("--equal", options.equal, "Amount that all models share with the first model of the file: " + list_of<Equal>())
      ->capture_default_str();
  app.add_option("--change", options.change, "Key of the other models to change for that: " + list_of<Change>())->capture_default_str();
  app.add_option("--seeds", options.seeds, "Train each model once for each of these seeds: 1,2,3")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(at_least_zero)
      ->capture_default_str();
  app.add_option("--only", options.only, "Train only these models of the file: vanilla,top-down")->delimiter(',')->allow_extra_args(false);
  app.add_option("--name", options.name, "Name in runs/NAME_MODEL_SEED; by default the name of the file");
  app.add_flag("--plan", options.only_plans, "Print the table of the models without training");
  add_output_option(app, options.report, "Draw it into this file, .svg or .html");
  add_json_flag(app, options.report);
}

}  // namespace

const Command ricci::apps::compare_command{{.name = "ricci compare",
                                               .summary = "Trains multiple models on the same data and compares them.",
                                               .examples = "ricci compare apps/configs/multiscale/families_wikitext2.yaml --plan\n"
                                                           "ricci compare models.yaml 'lr=[1e-3,3e-4]' --seeds 1,2,3 -o models.html"},
    with_options<Options, add_options, compare>};
