// ricci-plot: curves of runs, as an SVG drawing or a page with values under the pointer; or the list of runs.
//   ricci-plot runs/a runs/b -o plot.html
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <ctime>

#include "apps/lab/plot/curves.h"
#include "apps/lab/report/report.h"
#include "apps/run/run.h"
#include "core/error.h"
#include "core/files/file.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  std::vector<std::string> runs;
  ReportOptions report;
  ChartOptions chart = {.smooth = 20};
  bool list = false;
  std::string watched;  // a page
};

constexpr int kWatchSeconds = 5;

// Measured values that are outside of their panels.
int64_t count_outside(const Chart& chart) {
  const Layout layout = layout_of(chart);
  int64_t count = 0;
  for (size_t i = 0; i < chart.panels.size(); ++i) {
    const Outside outside = outside_of(chart.panels[i], layout.boxes[i].y);
    count += outside.above + outside.below;
  }
  return count;
}

// The list of the runs, with a chart as soon as one of them has a record.
Report watched_report(const Options& options) {
  const std::vector<std::string> paths = options.runs.empty() ? all_runs() : options.runs;
  Report report = list_runs(paths);
  std::vector<std::string> begun;
  for (const std::string& path : paths) {
    std::string nothing;
    if (is_folder(find_run(path)) && read_run(path, nothing).records > 0) begun.push_back(path);
  }
  if (!begun.empty()) report.chart = make_chart(read_all_records(begun), options.chart);
  return report;
}

// Until SIGINT, SIGTERM or SIGHUP comes, which is blocked elsewhere, the page is written again; the last page does not load itself again.
int watch(const Options& options) {
  sigset_t ending = {};
  ::sigemptyset(&ending);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&ending, signal);
  ::pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  const Theme theme = parse_theme(options.report.theme);
  const timespec pause{.tv_sec = kWatchSeconds, .tv_nsec = 0};
  for (bool first = true;; first = false) {
    const Report report = watched_report(options);
    write_atomically(options.watched, page_of(report, theme, kWatchSeconds));
    if (first) std::printf("%s: written every %d s, and loads itself again; Ctrl-C ends\n", options.watched.c_str(), kWatchSeconds);
    std::fflush(stdout);
    if (::sigtimedwait(&ending, nullptr, &pause) < 0) continue;
    write_atomically(options.watched, page_of(report, theme));
    return 0;
  }
}

void check(const Options& options) {
  ReportOptions files = options.report;
  if (!options.watched.empty()) files.out = options.watched;
  check(files, !options.list && options.watched.empty());
  if (const double steps = options.chart.smooth; steps != 0 && !(steps >= 1 && steps <= 1e9))
    fail("--smooth: expected a number of steps from 1 to 1e9, or 0, got {}", {steps});
}

int plot(Options options) {
  check(options);
  if (!options.watched.empty()) return watch(options);
  if (options.list) {
    tell(list_runs(options.runs.empty() ? all_runs() : options.runs), options.report);
    return 0;
  }
  if (options.report.out.empty()) options.report.out = "plot.svg";
  std::vector<std::string> skipped;
  const std::vector<RunRecords> runs = read_all_records(options.runs, &skipped);
  for (const std::string& run : skipped) std::fprintf(stderr, "left out: %s\n", run.c_str());
  const Chart chart = make_chart(runs, options.chart);
  draw({.title = chart.title, .table = summary(runs), .chart = chart}, options.report.out, options.report.theme);
  int64_t records = 0;
  for (const RunRecords& run : runs) records += run.records;
  std::string line =
      format_message("{}: runs {}, records {}, panels {}", {printable(options.report.out), runs.size(), records, chart.panels.size()});
  if (chart.left_out)
    line += format_message(
        "; {} values left out: not finite, too large or too small to draw, or not above 0 on a logarithmic axis", {chart.left_out});
  if (const int64_t outside = count_outside(chart))
    line += format_message("; values far from all others, outside of their panels: {} (--full-range shows them)", {outside});
  std::fputs(wrapped(line, 2).c_str(), stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  ChartOptions& chart = options.chart;
  return run_app(
      argc, argv,
      {.name = "ricci-plot",
          .summary = "Draws curves of runs, as SVG or as an HTML page.",
          .examples = "ricci-plot runs/quickstart -o plot.html\n"
                      "ricci-plot --list"},
      [&](CLI::App& app) {
        CLI::Option* const runs = app.add_option("runs", options.runs, "Folders or names of runs; --list and --watch take all by default");
        add_output_options(app, options.report, "File to write, .svg or .html; plot.svg if not given");
        CLI::Option* const list = app.add_flag("--list", options.list, "Print a table of the runs, as ricci runs does");
        add_json_flag(app, options.report);
        app.get_option("--json")->needs(list);
        CLI::Option* const watched = app.add_option("--watch", options.watched, "Write this page (.html) every 5 seconds until Ctrl-C")
                                         ->excludes(list)
                                         ->excludes("--output");
        app.parse_complete_callback([=] {
          if (!*runs && !*list && !*watched) throw CLI::RequiredError("runs");
        });
        app.add_option("--keys", chart.keys, "Metrics to draw: train_loss,lr; the usual ones if not given")->delimiter(',');
        app.add_option("--x", chart.x, "step, tokens or time (of training, without evaluations and pauses)")->capture_default_str();
        app.add_option("--smooth", chart.smooth, "Steps over which noisy curves are averaged; 0: not averaged")->capture_default_str();
        app.add_flag("--log-x", chart.log_x, "Logarithmic x axis");
        app.add_flag("--log-y", chart.log_y, "Logarithmic y axes");
        app.add_flag("--full-range", chart.full_range, "Let y axes reach to outliers, otherwise marks at the border");
        app.add_option("--title", chart.title, "Title; the name of the run if not given");
      },
      [&] { return plot(options); });
}
