// ricci plot: curves of runs, as SVG or as a page, and the list of runs, also while they train.
//   ricci plot runs/a runs/b -o plot.html
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "apps/lab/commands.h"
#include "apps/lab/plot/records.h"
#include "core/error.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  std::vector<std::string> runs;
  ReportOptions report;
  CurveOptions curves;
  std::string title;
  bool list = false;
};

// The list of the runs, and curves if they have records.
Report make_report(const Options& options) {
  Report report;
  const std::vector<ListedRun> all = read_runs(options.runs, report.notes);
  report.title = all.size() == 1 ? "1 run" : std::to_string(all.size()) + " runs";
  report.table = list_of(all);
  std::vector<RunRecords> runs;
  std::string names;
  for (const RunRecords& run : all) {
    if (run.records == 0) continue;
    runs.push_back(run);
    const auto is_namesake = [&](const RunRecords& other) { return other.name == run.name && other.path != run.path; };
    if (std::any_of(all.begin(), all.end(), is_namesake)) runs.back().name = run.path.substr(0, run.path.rfind('/'));
    names += (names.empty() ? "" : ", ") + runs.back().name;
  }
  if (options.list) return report;
  if (runs.empty()) fail("none of the {} runs has a record yet", {all.size()});
  report.title = options.title.empty() ? one_line(names, 70) : options.title;
  report.add(chart_of(runs, options.curves));
  return report;
}

int plot(Options options) {
  check(options.report, !options.list);
  if (const double steps = options.curves.smooth; steps != 0 && !(steps >= 1 && steps <= 1e9))
    fail("--smooth: expected a number of steps from 1 to 1e9, or 0, got {}", {steps});
  if (!options.list && options.report.out.empty()) options.report.out = "plot.svg";
  publish(make_report(options), options.report);
  if (!options.list) std::printf("saved %s\n", options.report.out.c_str());
  return 0;
}

void add_options(CLI::App& app, Options& options) {
  CLI::Option* const runs = app.add_option("runs", options.runs, "Folders or names of runs; with --list, by default all");
  add_output_option(app, options.report, "File to write, .svg or .html; by default plot.svg");
  CLI::Option* const list = app.add_flag("--list", options.list, "Print a table of the runs, like ricci runs");
  add_json_flag(app, options.report);
  app.get_option("--json")->needs(list);
  app.parse_complete_callback([=] {
    if (!*runs && !*list) throw CLI::RequiredError("runs");
  });
  app.add_option("--keys", options.curves.keys, "Metrics to draw: train_loss,lr; by default the usual ones")->delimiter(',');
  app.add_option("--x", options.curves.x, "step, tokens or time (of training, without evaluations and pauses)")->capture_default_str();
  app.add_option("--smooth", options.curves.smooth, "Draw noisy curves as their mean over about this many steps");
  app.add_flag("--log-y", options.curves.log_y, "Logarithmic y axes");
  app.add_option("--title", options.title, "Title; by default the names of the runs");
}

}  // namespace

const Command ricci::apps::plot_command{{.name = "ricci plot",
                                            .summary = "Draws curves of runs, as SVG or as an HTML page, and lists runs.",
                                            .examples = "ricci plot runs/quickstart -o plot.html\n"
                                                        "ricci plot --list"},
    with_options<Options, add_options, plot>};
