// ricci plot: curves of runs as SVG or a page, and the list of runs, also while they train.
//   ricci plot runs/a runs/b -o plot.html
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "apps/lab/commands.h"
#include "apps/lab/plot/curves.h"
#include "apps/terminal/numbers.h"
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

// The names of the curves, or the number of runs if the names are long.
std::string title_of(const std::vector<ListedRun>& runs) {
  constexpr size_t kMost = 70;  // characters
  std::vector<std::string> names;
  for (const ListedRun& run : runs)
    if (std::find(names.begin(), names.end(), run.name) == names.end()) names.push_back(run.name);
  std::string title;
  for (const std::string& name : names) title += (title.empty() ? "" : ", ") + name;
  const bool is_long = title.size() > kMost && names.size() > 1;
  return is_long ? counted(std::ssize(runs), "run") : one_line(title, kMost);
}

// The curves of the runs with records, and the list of all runs below.
Report make_report(const Options& options) {
  const RunList list = read_runs(options.runs);
  Report report = report_of(list);
  std::vector<ListedRun> runs;
  for (const ListedRun& run : list.runs) {
    if (run.records == 0) continue;
    runs.push_back(run);
    const auto is_namesake = [&](const RunRecords& other) { return other.name == run.name && other.path != run.path; };
    if (std::any_of(list.runs.begin(), list.runs.end(), is_namesake)) runs.back().name = run.path.substr(0, run.path.rfind('/'));
  }
  if (runs.empty()) fail("none of the {} runs has a record yet", {list.runs.size()});
  name_by_setting(runs);
  report.title = options.title.empty() ? title_of(runs) : options.title;
  report.add(chart_of({runs.begin(), runs.end()}, options.curves));
  return report;
}

int plot(Options options) {
  check(options.report, !options.list);
  if (options.list) {
    publish(report_of(read_runs(options.runs)), options.report);
    return 0;
  }
  if (const double steps = options.curves.smooth; steps != 0 && !(steps >= 1 && steps <= 1e9))
    fail("--smooth: expected 0 or from 1 to 1e9 steps, got {}", {steps});
  if (options.report.out.empty()) options.report.out = "plot.svg";
  publish(make_report(options), options.report);
  std::printf("saved %s\n", options.report.out.c_str());
  return 0;
}

void add_options(CLI::App& app, Options& options) {
  CLI::Option* const runs = app.add_option("runs", options.runs, "Run folders or names; with --list, by default all");
  add_output_option(app, options.report, "File to write, .svg or .html; by default plot.svg");
  CLI::Option* const list = app.add_flag("--list", options.list, "Print a table of the runs, like ricci runs");
  add_json_flag(app, options.report);
  app.get_option("--json")->needs(list);
  app.parse_complete_callback([=] {
    if (!*runs && !*list) throw CLI::RequiredError("runs");
  });
  app.add_option("--keys", options.curves.keys, "Metrics to draw, such as lr,'grad_norm.*'; by default the usual ones")->delimiter(',');
  app.add_option("--x", options.curves.x, "x axis: step, tokens or time (of training, without pauses)")->capture_default_str();
  app.add_option("--smooth", options.curves.smooth, "Draw noisy curves as means over about this many steps");
  app.add_flag("--log-y", options.curves.log_y, "Logarithmic y axes");
  app.add_option("--title", options.title, "Title; by default the run names");
}

}  // namespace

const Command ricci::apps::plot_command{{.name = "ricci plot",
                                            .summary = "Draws curves of runs, as SVG or as an HTML page, and lists runs.",
                                            .examples = "ricci plot runs/quickstart -o plot.html\n"
                                                        "ricci plot --list"},
    with_options<Options, add_options, plot>};
