// ricci-compare: trains multiple models on one data order, multiple seeds each, at equal parameters, FLOPs or memory, and prints their
// results: one table, one drawing.
//   ricci-compare apps/configs/multiscale/families_wikitext2.yaml --equal parameters --change ff --seeds 1,2,3 -o families.html
//   ricci-compare apps/configs/multiscale/families_wikitext2.yaml 'lr=[1e-3, 3e-4]' --only vanilla
// Each training is a ricci-train in runs/NAME_MODEL_SEED. Called again after an interruption, it continues.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <optional>

#include "apps/lab/comparison/report.h"
#include "apps/run/init.h"
#include "apps/run/options.h"
#include "apps/run/run.h"
#include "apps/terminal/cli.h"
#include "apps/terminal/streams.h"
#include "core/error.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  RunOptions comparison;  // its file, and keys for all models
  std::string equal = "nothing", change = "width", name, command;
  ReportOptions report;
  std::vector<uint64_t> seeds = {1};
  std::vector<std::string> only;
  bool only_plans = false;
};

struct Job {
  size_t model;
  uint64_t seed;
  std::vector<std::string> arguments;  // for ricci-train: the run file, then all overrides
  RunRequest request;

  bool is_finished() const { return RunFolder::to_train(request).finished().has_value(); }
};

// True if the run file or a key gives another number than the default: samples of all runs would hide the results.
bool asks_for_samples(const Matched& model) {
  const auto is_key = [](const std::string& word) { return word.starts_with("sample.tokens="); };
  return std::any_of(model.overrides.begin(), model.overrides.end(), is_key) ||
         load_run_file(model.file, model.overrides).sample.tokens != SampleConfig().tokens;
}

// Seed by seed, so that an interrupted comparison has results for all models.
std::vector<Job> jobs_of(const Options& options, const std::string& name, const std::vector<Matched>& models) {
  std::vector<Job> jobs;
  for (const uint64_t seed : options.seeds)
    for (size_t i = 0; i < models.size(); ++i) {
      std::vector<std::string> overrides = models[i].overrides, arguments{models[i].file};
      if (!asks_for_samples(models[i])) overrides.push_back("sample.tokens=0");
      overrides.push_back(format_message("seed={}", {seed}));
      overrides.push_back(format_message("name={}_{}_{}", {name, models[i].name, seed}));
      arguments.insert(arguments.end(), overrides.begin(), overrides.end());
      jobs.push_back({i, seed, arguments, request_run(models[i].file, overrides)});
    }
  return jobs;
}

// Trains what is not trained yet. Returns false if interrupted.
bool train_all(const std::vector<Job>& jobs) {
  const Interrupt interrupt(false);
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].is_finished()) continue;
    const bool starts = !Interrupt::requested();
    if (starts) {
      tell(STDERR_FILENO, format_message("run {} of {}: {}\n", {i + 1, jobs.size(), jobs[i].request.folder}));
      const std::optional<int> code = run_program("train", jobs[i].arguments);
      if (code.value_or(0)) fail("{}: ricci-train ended with exit code {}", {jobs[i].request.folder, *code});
      if (jobs[i].is_finished()) continue;
      if (code && !Interrupt::requested()) fail("{}: the run is not finished; the same command continues it", {jobs[i].request.folder});
    }
    tell(STDERR_FILENO,
        format_message("interrupted {} run {} of {}; the same command continues\n", {starts ? "in" : "before", i + 1, jobs.size()}));
    return false;
  }
  return true;
}

void check(const Options& options) {
  if (options.comparison.file().empty()) fail("no comparison file given: models as NAME: RUN FILE (--help)");
  for (auto seed = options.seeds.begin(); seed != options.seeds.end(); ++seed)
    if (std::find(options.seeds.begin(), seed, *seed) != seed) fail("--seeds: {} is there twice", {*seed});
  for (const std::string& word : options.comparison.overrides)
    if (word.starts_with("name=") || word.starts_with("seed=")) fail("{}: the runs of a comparison have --name and --seeds", {word});
  check(options.report);
}

int compare(const Options& options) {
  check(options);
  const std::string file = options.comparison.file(),
                    name = options.name.empty() ? std::filesystem::path(file).stem().string() : options.name;
  const Equal equal = choice_of<Equal>("--equal", options.equal);
  std::vector<std::string> common = options.comparison.overrides;
  const std::vector<Contestant> contestants = with_grid(read_contestants(file), common);
  const std::vector<Matched> models = matched(contestants, common, equal, choice_of<Change>("--change", options.change), options.only);
  const std::vector<Job> jobs = jobs_of(options, name, models);
  if (!options.only_plans && !train_all(jobs)) return 0;
  Comparison comparison{name + (equal == Equal::nothing ? "" : ", equal " + options.equal), options.command, equal, {}};
  for (const Matched& model : models) comparison.models.push_back({model});
  ReportOptions output = options.report;
  if (options.only_plans) output.out.clear();
  else
    for (const Job& job : jobs) comparison.models[job.model].outcomes.push_back(read_outcome(job.request.folder, job.seed));
  tell(report_of(comparison), output);
  if (!output.out.empty() && output.json.empty()) print("saved " + output.out);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.command = "ricci-compare";
  for (int i = 1; i < argc; ++i) options.command += std::string(" ") + argv[i];
  return run_app(
      argc, argv,
      {.name = "ricci-compare",
          .summary = "Trains multiple models and prints a table of results.",
          .examples = "ricci-compare apps/configs/multiscale/families_wikitext2.yaml --plan\n"
                      "ricci-compare models.yaml 'lr=[1e-3,3e-4]' --seeds 1,2,3 -o models.html"},
      [&](CLI::App& app) {
        add_run_arguments(app, options.comparison,
            "Comparison file (YAML) with models as NAME: [RUN FILE, KEY=VALUE, ...], then keys for all of them: steps=500. A list makes a "
            "model for each value: lr=[1e-3,3e-4]");
        app.add_option("--equal", options.equal, "Make this equal to the first model of the file: " + list_of<Equal>())
            ->capture_default_str();
        app.add_option("--change", options.change, "Change this key of the other models for it: " + list_of<Change>())
            ->capture_default_str();
        app.add_option("--seeds", options.seeds, "Train each model once for each of these seeds: 1,2,3")
            ->delimiter(',')
            ->allow_extra_args(false)
            ->check(at_least_zero)
            ->capture_default_str();
        app.add_option("--only", options.only, "Train only these models of the file: vanilla,top-down")
            ->delimiter(',')
            ->allow_extra_args(false);
        app.add_option("--name", options.name, "The runs are runs/NAME_MODEL_SEED; the name of the file if not given");
        app.add_flag("--plan", options.only_plans, "Print the table of the models without training");
        add_output_options(app, options.report, "Draw it into this file, .svg or .html");
        add_json_flag(app, options.report);
      },
      [&] { return compare(options); });
}
