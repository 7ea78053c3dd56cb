// ricci runs: the list of runs, also while they train.
//   ricci runs 'cmp3*' --sort loss --limit 10
#include <CLI/CLI.hpp>

#include "apps/lab/commands.h"
#include "apps/lab/plot/records.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  std::vector<std::string> runs;
  std::string sort = "age";
  int64_t limit = 0;
  ReportOptions report;
};

int run(const Options& options) {
  const SortBy order = choice_of<SortBy>("--sort", options.sort);
  publish(report_of(read_runs(options.runs), order, options.limit), options.report);
  return 0;
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("runs", options.runs, "Run folders, run names or name patterns, such as 'cmp3*'; by default all");
  app.add_option("--sort", options.sort, "Sort by age (newest first), loss (best first), name or step (most steps first)")
      ->capture_default_str();
  app.add_option("--limit", options.limit, "Maximum number of runs to list, from the top")->check(at_least_one);
  add_json_flag(app, options.report);
}

}  // namespace

const Command ricci::apps::runs_command{{.name = "ricci runs",
                                            .summary = "Lists runs, also while they train.",
                                            .examples = "ricci runs\nricci runs 'cmp3*' --sort loss --limit 10"},
    with_options<Options, add_options, run>};
