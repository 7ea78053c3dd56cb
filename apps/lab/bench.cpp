// ricci-bench: time, memory and work of a training step against the length of sequences, for every mixer, and its ops beside the roofs of
// the device. The Dispatcher paper's figure 2 is, for all mixers:
//   ricci-bench --width 512 --layers 6 --heads 1 --tokens 4096 --lengths 128,512,1024,2048,4096 -o bench.html
// And one layer at several scales, the multi-scale paper's figure 2:
//   ricci-bench --layer --width 768 --heads 12 --lengths 128,256,512,1024,2048 -o layer.html
// And the rungs of the ladder of an op, from its definition to the fast kernel:
//   ricci-bench --rungs attention
#include <CLI/CLI.hpp>
#include <cstdio>

#include "apps/lab/benchmark/measure.h"
#include "apps/lab/benchmark/rungs.h"
#include "apps/run/options.h"
#include "core/cpu/parallel.h"
#include "core/error.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  std::vector<std::string> names;
  std::vector<int64_t> scales = {1, 4, 16, 64};
  bool layer = false, rungs = false;
  BenchOptions bench{.mixers = {}};
  ComputeOptions compute;
  int threads = 0;
  ReportOptions report;
};

// Each once, in their order.
template <class T> std::vector<T> each_once(const std::vector<T>& all) {
  std::vector<T> chosen;
  for (const T& each : all)
    if (std::find(chosen.begin(), chosen.end(), each) == chosen.end()) chosen.push_back(each);
  return chosen;
}

// The values of these names; all if there are none.
template <Choice Kind> std::vector<Kind> chosen(const char* what, const std::vector<std::string>& names) {
  const auto known = choices(Kind());
  std::vector<Kind> kinds;
  for (const std::string& name : names) {
    const auto number = std::find(known.begin(), known.end(), name) - known.begin();
    if (number == std::ssize(known))
      fail("no {} is called '{}'{}; there are {}",
          {what, one_line(name), nearest_note(name, {known.begin(), known.end()}), list_of<Kind>()});
    kinds.push_back(static_cast<Kind>(number));
  }
  for (size_t i = 0; names.empty() && i < known.size(); ++i) kinds.push_back(static_cast<Kind>(i));
  return each_once(kinds);
}

// bench.svg -> bench_roofline.svg
std::string roofline_name(const std::string& name) { return name.substr(0, name.rfind('.')) + "_roofline" + name.substr(name.rfind('.')); }

int run_ladders(const Options& options) {
  const BenchOptions& bench = options.bench;
  const LadderOptions ladders{.ladders = chosen<LadderKind>("ladder", options.names),
      .tokens = bench.tokens,
      .width = bench.size.width,
      .heads = bench.size.heads,
      .rounds = bench.rounds,
      .device = options.compute.place()};
  const LadderTimes times = [&] {
    Progress progress({.steps = steps_of(ladders), .unit = "round", .out = stderr});
    return measure(ladders, progress);
  }();
  if (!options.report.json.empty()) print(to_text(json_of(times), 1));
  else
    for (const char* between = ""; const Report& report : reports_of(times)) {
      print(between + text_of(report));
      between = "\n";
    }
  return 0;
}

int run(Options& options) {
  BenchOptions& bench = options.bench;
  check(options.report);
  if (options.threads) set_thread_count(options.threads);
  if (options.rungs) {
    bench.lengths = {bench.tokens};
    check(bench);
    return run_ladders(options);
  }
  bench.mixers = options.layer ? std::vector{kind_of<Sdp>} : chosen<MixerKind>("mixer", options.names);
  bench.lengths = each_once(bench.lengths);
  bench.size.device = options.compute.place();
  bench.size.dtype = options.compute.numbers();
  if (options.layer) {
    bench.scales = each_once(options.scales);
    bench.sequences = bench.sequences.value_or(1);
  }
  check(bench);
  const Benchmark result = [&] {
    Progress progress({.steps = steps_of(bench), .out = stderr});
    return measure(bench, progress);
  }();
  tell(report_of(result), options.report);
  if (!bench.roofline) return 0;
  const Report roofline = roofline_of(result);
  if (options.report.json.empty()) print("\n" + text_of(roofline));
  if (!options.report.out.empty()) draw(roofline, roofline_name(options.report.out), options.report.theme);
  return 0;
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("mixers", options.names, "Names of mixers, or of ladders; all if none is given");
  add_field_options(app, options.bench);
  app.get_option("--sequences")->excludes(app.get_option("--tokens"));
  CLI::Option* const layer = app.add_flag("--layer", options.layer,
      "Measure one pre-norm layer of sdp at multiple scales: the time of its forward, and the bytes that it keeps for the backward. "
      "--ff is then 4 times the width, and --sequences 1, if not given");
  for (const char* const unread : {"--tokens", "--layers", "--alone", "mixers", "--roofline"}) layer->excludes(app.get_option(unread));
  app.add_option("--scales", options.scales, "With --layer: tokens of a position")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(at_least_one)
      ->capture_default_str()
      ->needs(layer);
  add_output_options(app, options.report, "Draw it into this file, .svg or .html; the roofline into NAME_roofline");
  add_json_flag(app, options.report);
  add_compute_options(app, options.compute);
  app.add_option("--threads", options.threads, "CPU threads; 0: all")->check(thread_number);
  CLI::Option* const rungs = app.add_flag("--rungs", options.rungs,
      "Measure ladders of ops, from the definition to the fast kernel: " + list_of<LadderKind>() +
          ". A rung has the time of its forward at --tokens, --width and --heads, and the least time at the peaks of the device");
  for (const char* const unread :
      {"--lengths", "--sequences", "--layers", "--ff", "--alone", "--roofline", "--layer", "--output", "--precision"})
    rungs->excludes(app.get_option(unread));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return run_app(
      argc, argv,
      {.name = "ricci-bench",
          .summary = "Measures time, memory and FLOPs of a training step.",
          .examples = "ricci-bench sdp metric dispatcher --lengths 128,512,2048 -o bench.html\n"
                      "ricci-bench --rungs attention"},
      [&](CLI::App& app) { add_options(app, options); }, [&] { return run(options); });
}
