// ricci compare: trains multiple models with multiple seeds on the same data, at equal parameters, FLOPs or memory, and reports the results
// in a table and a drawing.
//   ricci compare apps/configs/multiscale/table2_small.yaml --equal parameters --change ff --seeds 3 -o table2.html
//   ricci compare run.yaml 'lr=[1e-3, 3e-4]' --seeds 3
// Each training run is a `ricci train` in runs/NAME_MODEL_SEED, so repeating the command continues an interrupted comparison.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "apps/lab/commands.h"
#include "apps/lab/comparison/comparison.h"
#include "apps/run/options.h"
#include "apps/run/run_folder.h"
#include "apps/terminal/cli.h"
#include "apps/terminal/streams.h"
#include "core/error.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  RunOptions comparison;  // the file, and keys for all models
  std::string equal = "nothing", change = "width", name;
  ReportOptions report;
  std::vector<uint64_t> seeds = {1};
  std::vector<std::string> only;
  bool only_plans = false;
};

// Runs `ricci train`, and returns its exit code, above 128 after a request to end. Error: an unexpected signal killed the child.
// The child's output goes to stderr; stdout is for the result. The child shares the process group, so Ctrl-C and Ctrl-Z reach both
// processes. Other requests to end are forwarded as SIGUSR1, at the second poll: if a SIGTERM was sent to both processes, a second signal
// would end training before it saves.
int train(const std::vector<std::string>& arguments) {
  constexpr useconds_t kWait = 20'000;  // microseconds between polls
  std::vector<std::string> words{"ricci", "train"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) fail("cannot start ricci train: {}", {std::strerror(errno)});
  if (child == 0) {
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    ::execv("/proc/self/exe", argv.data());
    ::_exit(127);
  }
  int status = 0, looks = 0;  // looks: polls since a request to end
  while (true) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR) fail("cannot wait for ricci train: {}", {std::strerror(errno)});
    if (Interrupt::requested()) ++looks;
    if (looks == 2) ::kill(child, SIGUSR1);
    ::usleep(kWait);
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  if (!Interrupt::requested()) fail("ricci train: ended by signal {}", {WTERMSIG(status)});
  return 128 + WTERMSIG(status);
}

// Trains a model unless it is already trained. Returns false if training was interrupted. `place`: "run 1 of 4".
bool train_one(const std::vector<std::string>& words, const RunRequest& request, const std::string& place) {
  const auto is_finished = [&] { return RunFolder::to_train(request).finished().has_value(); };
  if (is_finished()) return true;
  const bool starts = !Interrupt::requested();
  if (starts) {
    write_output(STDERR_FILENO, place + ": " + request.folder + "\n");
    const int code = train(words);
    if (code > 0 && code < 128) fail("{}: ricci train ended with exit code {}", {request.folder, code});
    if (is_finished()) return true;
  }
  if (!Interrupt::requested()) fail("{}: the run is not finished; repeat the command to continue it", {request.folder});
  write_output(STDERR_FILENO, format_message("interrupted {} {}; repeat the command to continue\n", {starts ? "in" : "before", place}));
  return false;
}

// Trains the models and reads their results, seed by seed. Returns false if interrupted.
bool train_all(std::vector<Contestant>& models, const std::vector<uint64_t>& seeds, const std::string& name) {
  const Interrupt interrupt(false);
  size_t number = 0;
  for (const uint64_t seed : seeds)
    for (Contestant& model : models) {
      std::vector<std::string> keys{"sample.tokens=0"};
      keys.insert(keys.end(), model.overrides.begin(), model.overrides.end());
      keys.push_back(format_message("seed={}", {seed}));
      keys.push_back(format_message("name={}{}_{}", {name, model.name.empty() ? "" : "_" + model.name, seed}));
      const RunRequest request = request_run(model.file, keys);
      if (!model.file.empty()) keys.insert(keys.begin(), model.file);
      ++number;
      if (!train_one(keys, request, format_message("run {} of {}", {number, models.size() * seeds.size()}))) return false;
      model.outcomes.push_back(read_outcome(request.folder, seed));
    }
  return true;
}

// The command line of this process.
std::string command_line() {
  std::ifstream file("/proc/self/cmdline");
  std::string words, word;
  while (std::getline(file, word, '\0')) words += (words.empty() ? "" : " ") + word;
  return words.substr(words.find_last_of('/', words.find(' ')) + 1);
}

// Returns the key `name` of a run file that makes all models, else the file name.
std::string default_name(const Contestant& first, const std::string& file) {
  const TrainConfig config = load_run_file(first.file, first.overrides);
  const bool is_sweep = first.model.empty();
  if (is_sweep && config.given.contains("name")) return config.name;
  return file.empty() ? "sweep" : std::filesystem::path(file).stem().string();
}

// The listed seeds, or 1 to N for a single number N.
std::vector<uint64_t> seeds_of(const std::vector<uint64_t>& given) {
  constexpr uint64_t kMost = 20;
  if (given.size() == 1) {
    if (given[0] < 1 || given[0] > kMost)
      fail("--seeds: expected 1 to {} seeds for each model, got {}; to choose seeds, list them, such as 4,{}", {kMost, given[0], given[0]});
    std::vector<uint64_t> seeds(given[0]);
    std::iota(seeds.begin(), seeds.end(), 1);
    return seeds;
  }
  for (auto seed = given.begin(); seed != given.end(); ++seed)
    if (std::find(given.begin(), seed, *seed) != seed) fail("--seeds: {} is given twice", {*seed});
  return given;
}

int compare(const Options& options) {
  const std::vector<uint64_t> seeds = seeds_of(options.seeds);
  for (const std::string& word : options.comparison.overrides)
    if (word.starts_with("name=") || word.starts_with("seed=")) fail("{}: use --name and --seeds instead", {word});
  check(options.report);
  const Equal equal = choice_of<Equal>("--equal", options.equal);
  const Change change = choice_of<Change>("--change", options.change);
  std::vector<Contestant> models = read_contestants(options.comparison.file(), options.comparison.overrides);
  const std::string name = options.name.empty() ? default_name(models[0], options.comparison.file()) : options.name;
  if (models.size() == 1 && models[0].name.empty() && seeds.size() == 1)
    fail("nothing to compare: one model and one seed; give a list of values, such as 'lr=[1e-3, 3e-4]', or --seeds 3");
  models = matched(models, equal, change, options.only);
  Comparison comparison{name + (equal == Equal::nothing ? "" : ", equal " + options.equal), command_line(), equal, models};
  ReportOptions output = options.report;
  if (options.only_plans) output.out.clear();
  else if (!train_all(comparison.models, seeds, name)) return Interrupt::exit_code();
  publish(report_of(comparison), output);
  if (!output.out.empty() && output.json.empty()) print("saved " + output.out);
  return 0;
}

void add_options(CLI::App& app, Options& options) {
  add_run_arguments(app, options.comparison,
      "Run file, or comparison file with models as NAME: [RUN FILE, KEY=VALUE, ...], then keys for all models: steps=500. A list trains "
      "a model for each value: lr=[1e-3,3e-4]");
  app.add_option("--equal", options.equal, "Quantity to keep equal to the first model's: " + list_of<Equal>())->capture_default_str();
  app.add_option("--change", options.change, "Key to change in the other models: " + list_of<Change>())->capture_default_str();
  app.add_option("--seeds", options.seeds, "Seeds of each model: a number (3 means 1, 2 and 3) or a list, such as 4,7; by default 1")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(at_least_zero);
  app.add_option("--only", options.only, "Train only these models of the file, such as vanilla,top-down")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--name", options.name, "Name in runs/NAME_MODEL_SEED; by default the key `name` of the file, else the file name");
  app.add_flag("--plan", options.only_plans, "Print the table of the models without training");
  add_output_option(app, options.report, "Draw the result into this file, .svg or .html");
  add_json_flag(app, options.report);
}

}  // namespace

const Command ricci::apps::compare_command{{.name = "ricci compare",
                                               .summary = "Trains multiple models on the same data and compares them.",
                                               .examples = "ricci compare apps/configs/multiscale/table2_small.yaml --plan\n"
                                                           "ricci compare data=my.txt 'lr=[1e-3,3e-4]' --seeds 3 -o rates.html"},
    with_options<Options, add_options, compare>};
