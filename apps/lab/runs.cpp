// ricci runs: the list of runs, also while they train.
#include <CLI/CLI.hpp>

#include "apps/lab/commands.h"
#include "apps/lab/plot/records.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  std::vector<std::string> runs;
  ReportOptions report;
};

int run(const Options& options) {
  Report report;
  const std::vector<ListedRun> all = read_runs(options.runs, report.notes);
  report.title = all.size() == 1 ? "1 run" : std::to_string(all.size()) + " runs";
  report.table = list_of(all);
  publish(report, options.report);
  return 0;
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("runs", options.runs, "Folders or names of runs; by default all");
  add_json_flag(app, options.report);
}

}  // namespace

const Command ricci::apps::runs_command{
    {.name = "ricci runs", .summary = "Lists runs, also while they train.", .examples = "ricci runs\nricci runs quickstart --json"},
    with_options<Options, add_options, run>};
