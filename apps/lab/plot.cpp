// ricci-plot: curves of runs, as a picture or a page, and the list of runs.
//   ricci-plot runs/a runs/b -o plot.html
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <ctime>

#include "apps/lab/plot/records.h"
#include "core/error.h"
#include "core/files/file.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  std::vector<std::string> runs;
  ReportOptions report;
  CurveOptions curves;
  std::string title;
  bool list = false;
  std::string watched;  // a page
};

constexpr int kWatchSeconds = 5;

// The list of the runs, and the curves of those that have a record.
Report look_at(const Options& options) {
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
  if (options.list || (runs.empty() && !options.watched.empty())) return report;
  if (runs.empty()) fail("none of {} runs has a record yet", {all.size()});
  report.title = options.title.empty() ? one_line(names, 70) : options.title;
  report.add(chart_of(runs, options.curves));
  return report;
}

// Writes the page again and again until SIGINT, SIGTERM or SIGHUP. They are blocked meanwhile, because the last page must be one that does
// not reload.
int watch(const Options& options) {
  sigset_t ending = {};
  ::sigemptyset(&ending);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&ending, signal);
  ::pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  const timespec pause{.tv_sec = kWatchSeconds, .tv_nsec = 0};
  const auto write = [&](int reload) { write_atomically(options.watched, page_of(look_at(options), reload)); };
  write(kWatchSeconds);
  std::printf("%s: written every %d s, and loads itself again; Ctrl-C ends\n", options.watched.c_str(), kWatchSeconds);
  std::fflush(stdout);
  while (::sigtimedwait(&ending, nullptr, &pause) < 0) write(kWatchSeconds);
  write(0);
  return 0;
}

int plot(Options options) {
  ReportOptions files = options.report;
  if (!options.watched.empty()) files.out = options.watched;
  check(files, !options.list && options.watched.empty());
  if (const double steps = options.curves.smooth; steps != 0 && !(steps >= 1 && steps <= 1e9))
    fail("--smooth: expected a number of steps from 1 to 1e9, or 0, got {}", {steps});
  if (!options.watched.empty()) return watch(options);
  if (!options.list && options.report.out.empty()) options.report.out = "plot.svg";
  tell(look_at(options), options.report);
  if (!options.list) std::printf("saved %s\n", options.report.out.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return run_app(
      argc, argv,
      {.name = "ricci-plot",
          .summary = "Draws curves of runs, as SVG or as an HTML page, and lists runs.",
          .examples = "ricci-plot runs/quickstart -o plot.html\n"
                      "ricci-plot --list"},
      [&](CLI::App& app) {
        CLI::Option* const runs = app.add_option("runs", options.runs, "Folders or names of runs; --list and --watch take all by default");
        add_output_option(app, options.report, "File to write, .svg or .html; plot.svg if not given");
        CLI::Option* const list = app.add_flag("--list", options.list, "Print a table of the runs, as ricci runs does");
        add_json_flag(app, options.report);
        app.get_option("--json")->needs(list);
        CLI::Option* const watched = app.add_option("--watch", options.watched, "Write this page (.html) every 5 seconds until Ctrl-C")
                                         ->excludes(list)
                                         ->excludes("--output");
        app.parse_complete_callback([=] {
          if (!*runs && !*list && !*watched) throw CLI::RequiredError("runs");
        });
        app.add_option("--keys", options.curves.keys, "Metrics to draw: train_loss,lr; the usual ones if not given")->delimiter(',');
        app.add_option("--x", options.curves.x, "step, tokens or time (of training, without evaluations and pauses)")
            ->capture_default_str();
        app.add_option("--smooth", options.curves.smooth, "Draw noisy curves as their mean over about this many steps");
        app.add_flag("--log-y", options.curves.log_y, "Logarithmic y axes");
        app.add_option("--title", options.title, "Title; the names of the runs if not given");
      },
      [&] { return plot(options); });
}
