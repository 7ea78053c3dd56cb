// ricci-bench: time, memory and work of a training step against the length of sequences, for every mixer, and its ops beside the roofs of
// the device. The Dispatcher paper's figure 2 is, for all mixers:
//   ricci-bench --width 512 --layers 6 --heads 1 --tokens 4096 --lengths 128,512,1024,2048,4096 -o bench.html
// And one layer at several scales, the multi-scale paper's figure 2:
//   ricci-bench --layer --width 768 --heads 12 --lengths 128,256,512,1024,2048 -o layer.html
#include <CLI/CLI.hpp>
#include <cstdio>

#include "apps/lab/benchmark/layer.h"
#include "apps/run/config/nearest.h"
#include "apps/terminal/model_options.h"
#include "core/cpu/parallel.h"
#include "core/error.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  std::vector<std::string> mixers;
  BenchOptions bench{.mixers = {}, .lengths = {128, 256, 512, 1024, 2048}, .size = {}};
  ComputeOptions compute;
  int threads = 0;
  ReportOptions report;
  bool layer = false;
  std::vector<int64_t> scales = LayerOptions().scales;
};

std::vector<MixerKind> chosen_mixers(const std::vector<std::string>& names) {
  const auto known = choices(MixerKind());
  std::vector<MixerKind> chosen;
  for (const std::string& name : names) {
    const auto number = static_cast<size_t>(std::find(known.begin(), known.end(), name) - known.begin());
    if (number == known.size()) fail("no mixer is called '{}'{}", {one_line(name), nearest_note(name, {known.begin(), known.end()})});
    if (const auto kind = static_cast<MixerKind>(number); std::find(chosen.begin(), chosen.end(), kind) == chosen.end())
      chosen.push_back(kind);
  }
  for (size_t i = 0; names.empty() && i < known.size(); ++i) chosen.push_back(static_cast<MixerKind>(i));
  return chosen;
}

// Each once, in their order.
std::vector<int64_t> each_once(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> chosen;
  for (const int64_t length : lengths)
    if (std::find(chosen.begin(), chosen.end(), length) == chosen.end()) chosen.push_back(length);
  return chosen;
}

// bench.svg -> bench_roofline.svg
std::string roofline_name(const std::string& name) { return name.substr(0, name.rfind('.')) + "_roofline" + name.substr(name.rfind('.')); }

int run_layer(const Options& options) {
  LayerOptions layer{
      .scales = each_once(options.scales), .lengths = options.bench.lengths, .rounds = options.bench.rounds, .size = options.bench.size};
  if (options.bench.sequences) layer.sequences = options.bench.sequences;
  check(layer);
  const std::vector<LayerRow> rows = [&] {
    Progress progress({.steps = steps_of(layer), .out = stderr});
    return measure_layer(layer, progress);
  }();
  tell(report_of(layer, rows), options.report);
  return 0;
}

int run(Options& options) {
  BenchOptions& bench = options.bench;
  check(options.report);
  bench.mixers = chosen_mixers(options.mixers);
  bench.lengths = each_once(bench.lengths);
  bench.size.device = options.compute.place();
  bench.size.dtype = options.compute.numbers();
  if (options.threads) set_thread_count(options.threads);
  if (options.layer) return run_layer(options);
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

// How large a step is; returns the options that a layer alone does not read.
std::vector<CLI::Option*> add_size_options(CLI::App& app, BenchOptions& bench) {
  app.add_option("--lengths", bench.lengths, "Positions of a sequence: 128,512")
      ->delimiter(',')
      ->check(at_least_one)
      ->capture_default_str();
  CLI::Option* const tokens =
      app.add_option("--tokens", bench.tokens, "Tokens of a step, the same at every length")->check(at_least_one)->capture_default_str();
  app.add_option("--sequences", bench.sequences, "Sequences of a step, the same at every length, in place of --tokens")
      ->check(at_least_one)
      ->excludes(tokens);
  app.add_option("--width", bench.size.width, "Width of the blocks")->check(at_least_one)->capture_default_str();
  CLI::Option* const layers =
      app.add_option("--layers", bench.size.layers, "Post-norm blocks with a relu")->check(at_least_one)->capture_default_str();
  app.add_option("--heads", bench.size.heads, "Heads of mixers that have some")->check(at_least_one)->capture_default_str();
  app.add_option("--ff", bench.size.feed_forward, "Width of the feed-forward layers; the width if not given")->check(at_least_one);
  return {tokens, layers, app.add_flag("--alone", bench.size.alone, "One mixer with its maps, in place of blocks")};
}

// `unread`: what a layer alone does not read.
void add_layer_options(CLI::App& app, Options& options, const std::vector<CLI::Option*>& unread) {
  CLI::Option* const layer = app.add_flag("--layer", options.layer,
      "In place of mixers: one pre-norm layer of sdp, its forward time and what it keeps for the backward, at several scales; "
      "--ff is then 4 times the width, --sequences 1 if not given");
  for (CLI::Option* const each : unread) layer->excludes(each);
  app.add_option("--scales", options.scales, "With --layer: tokens for each position")
      ->delimiter(',')
      ->check(at_least_one)
      ->capture_default_str()
      ->needs(layer);
}

void add_options(CLI::App& app, Options& options) {
  BenchOptions& bench = options.bench;
  CLI::Option* const mixers = app.add_option("mixers", options.mixers, "Names as in model.mixer; all if none is given");
  std::vector<CLI::Option*> unread = add_size_options(app, bench);
  app.add_option("--rounds", bench.rounds, "Steps of each mixer and length, in turn with the other mixers'")
      ->check(at_least_one)
      ->capture_default_str();
  unread.push_back(mixers);
  unread.push_back(app.add_flag(
      "--roofline", bench.roofline, "Tell of every op at the greatest length how close to the measured peaks of the device it is"));
  add_layer_options(app, options, unread);
  add_output_options(app, options.report, "Draw it: a name that ends in .svg or .html; the roofline beside it as NAME_roofline");
  add_json_flag(app, options.report);
  add_compute_options(app, options.compute);
  app.add_option("--threads", options.threads, "CPU threads; 0: all")->check(thread_number);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return run_app(
      argc, argv,
      {"ricci-bench", "Time, memory and FLOPs of a step, forward and backward, against the length of sequences, for every mixer."},
      [&](CLI::App& app) { add_options(app, options); }, [&] { return run(options); });
}
