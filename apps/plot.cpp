// ricci-plot: curves of one or several runs, as an SVG drawing or a page with values under the pointer.
//   ricci-plot runs/a runs/b -o plot.html
#include <cstdio>

#include "apps/plot/page.h"
#include "apps/plot/records.h"
#include "apps/plot/svg.h"
#include "apps/terminal/cli.h"
#include "core/error.h"
#include "core/files/file.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  std::vector<std::string> runs;
  std::string out = "plot.svg", theme = "auto";
  ChartOptions chart = {.smooth = 0.6};
};

int plot(const Options& options) {
  const Theme theme = parse_theme(options.theme);
  if (std::isnan(options.chart.smooth)) fail("--smooth: expected a number from 0 to 0.9999, got nan");
  const bool page = options.out.ends_with(".html");
  if (!page && !options.out.ends_with(".svg")) fail("{}: expected a name that ends in .svg or .html", {options.out});
  const std::vector<RunRecords> runs = read_all_records(options.runs);
  const Chart chart = make_chart(runs, options.chart);
  write_file_atomically(options.out, page ? to_page(chart, summary(runs), theme) : to_svg(chart, theme));
  int64_t records = 0;
  for (const RunRecords& run : runs) records += run.records;
  std::printf("%s: runs %zu, records %lld, panels %zu", options.out.c_str(), runs.size(), static_cast<long long>(records),
              chart.panels.size());
  if (chart.left_out)
    std::printf("; %lld values left out: not finite, too large or too small to draw, or not above 0 on a logarithmic axis", static_cast<long long>(chart.left_out));
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
        app.add_option("-o,--out", options.out, "The file to write: .svg or .html")->capture_default_str();
        app.add_option("--keys", chart.keys, "Metrics to draw, such as train_loss; the usual ones if not given")->delimiter(',');
        app.add_option("--x", chart.x, "step, tokens or time")->capture_default_str();
        app.add_option("--smooth", chart.smooth, "Weight of the past in the moving average of noisy curves; 0 draws what was measured")
            ->check(CLI::Range(0.0, 0.9999))
            ->capture_default_str();
        app.add_flag("--log-x", chart.log_x, "Logarithmic x axis");
        app.add_flag("--log-y", chart.log_y, "Logarithmic y axes");
        app.add_option("--title", chart.title, "The title; the name of the run if not given");
        app.add_option("--theme", options.theme, "auto (as the reader's system is set), light or dark")->capture_default_str();
      },
      [&] { return plot(options); });
}
