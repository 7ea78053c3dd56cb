// ricci bench: measures the time, memory and work of a training step for each mixer and sequence length. This command measures figure 2 of
// the Dispatcher paper with all mixers:
//   ricci bench --width 512 --layers 6 --heads 1 --tokens 4096 --lengths 128,512,1024,2048,4096 -o bench.html
#include <CLI/CLI.hpp>
#include <algorithm>

#include "apps/lab/benchmark/benchmark.h"
#include "apps/lab/commands.h"
#include "apps/run/options.h"
#include "core/error.h"
#include "core/nearest.h"
#include "cuda/device/device.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

constexpr auto kMixers = choices(MixerKind());

struct Options {
  std::vector<std::string> names{kMixers.begin(), kMixers.end()};
  BenchOptions bench{.mixers = {}};
  ComputeOptions compute;
  ReportOptions report;
};

int run(Options& options) {
  BenchOptions& bench = options.bench;
  check(options.report);
  for (const std::string& name : options.names) {
    const auto found = std::find(kMixers.begin(), kMixers.end(), name);
    if (found == kMixers.end())
      fail("no mixer is called '{}'{}; the mixers are {}",
          {one_line(name), nearest_note(name, {kMixers.begin(), kMixers.end()}), list_of<MixerKind>()});
    bench.mixers.push_back(static_cast<MixerKind>(found - kMixers.begin()));
  }
  bench.size.device = parse_device(options.compute.device.c_str());
  bench.size.dtype = parse_dtype(options.compute.dtype.c_str());
  publish(report_of(bench, measure(bench)), options.report);
  return 0;
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("mixers", options.names, "Mixer names; by default all");
  add_field_options(app, options.bench);
  app.get_option("--sequences")->excludes(app.get_option("--tokens"));
  add_output_option(app, options.report, "Draw the result into this file, .svg or .html");
  add_json_flag(app, options.report);
  add_compute_options(app, options.compute);
  add_threads_option(app);
}

}  // namespace

const Command ricci::apps::bench_command{{.name = "ricci bench",
                                             .summary = "Measures time, memory and FLOPs of a training step.",
                                             .examples = "ricci bench sdp metric dispatcher --lengths 128,512,2048 -o bench.html\n"
                                                         "ricci bench metric --alone --sequences 1 --lengths 256,1024 --json"},
    with_options<Options, add_options, run>};
