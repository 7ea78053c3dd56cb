// ricci-plot: curves of one or several runs, as an SVG drawing or a page with values under the pointer.
//   ricci-plot runs/a runs/b -o plot.html
#include <CLI/CLI.hpp>
#include <cstdio>

#include "apps/lab/plot/curves.h"
#include "apps/lab/report/report.h"
#include "core/error.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  std::vector<std::string> runs;
  ReportOptions report{.json = {}, .out = "plot.svg"};
  ChartOptions chart = {.smooth = 20};
};

// Measured values that lie outside of their panels.
int64_t count_outside(const Chart& chart) {
  const Layout layout = layout_of(chart);
  int64_t count = 0;
  for (size_t i = 0; i < chart.panels.size(); ++i) {
    const Outside outside = outside_of(chart.panels[i], layout.boxes[i].y);
    count += outside.above + outside.below;
  }
  return count;
}

int plot(const Options& options) {
  check(options.report);
  if (const double steps = options.chart.smooth; steps != 0 && !(steps >= 1 && steps <= 1e9))
    fail("--smooth: expected a number of steps from 1 to 1e9, or 0, got {}", {steps});
  std::vector<std::string> skipped;
  const std::vector<RunRecords> runs = read_all_records(options.runs, &skipped);
  for (const std::string& run : skipped) std::fprintf(stderr, "left out: %s\n", run.c_str());
  const Chart chart = make_chart(runs, options.chart);
  draw({.title = chart.title, .table = summary(runs), .chart = chart}, options.report.out, options.report.theme);
  int64_t records = 0;
  for (const RunRecords& run : runs) records += run.records;
  std::printf("%s: runs %zu, records %lld, panels %zu", options.report.out.c_str(), runs.size(), static_cast<long long>(records),
      chart.panels.size());
  if (chart.left_out)
    std::printf("; %lld values left out: not finite, too large or too small to draw, or not above 0 on a logarithmic axis",
        static_cast<long long>(chart.left_out));
  if (const int64_t outside = count_outside(chart))
    std::printf("; values far from all others, outside of their panels: %lld (--full-range shows them)", static_cast<long long>(outside));
  std::puts("");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  ChartOptions& chart = options.chart;
  return run_app(
      argc, argv, {"ricci-plot", "Curves of one or several runs, as an SVG drawing or a page with values under the pointer."},
      [&](CLI::App& app) {
        app.add_option("runs", options.runs, "Folders of runs, such as runs/quickstart")->required();
        add_output_options(app, options.report, "The file to write: .svg or .html");
        app.add_option("--keys", chart.keys, "Metrics to draw, such as train_loss; the usual ones if not given")->delimiter(',');
        app.add_option("--x", chart.x,
               "step, tokens or time: that of training, without evaluations and without pauses between two sessions of a run")
            ->capture_default_str();
        app.add_option("--smooth", chart.smooth,
               "Steps over which noisy curves are averaged: what lies so many steps back has 1/e of the weight, however often a run wrote "
               "a record; 0 draws what was measured")
            ->capture_default_str();
        app.add_flag("--log-x", chart.log_x, "Logarithmic x axis");
        app.add_flag("--log-y", chart.log_y, "Logarithmic y axes");
        app.add_flag("--full-range", chart.full_range,
            "Let y axes reach to the few values that lie far from all others, which are otherwise marks at the border");
        app.add_option("--title", chart.title, "The title; the name of the run if not given");
      },
      [&] { return plot(options); });
}
