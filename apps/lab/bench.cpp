// ricci-bench: time, memory and work of a training step against the length of sequences, for every mixer, and its ops beside the roofs of
// the device. The Dispatcher paper's figure 2 is, for all mixers:
//   ricci-bench --width 512 --layers 6 --heads 1 --tokens 4096 --lengths 128,512,1024,2048,4096 -o bench.html
// And one layer at several scales, the multi-scale paper's figure 2:
//   ricci-bench --layer --width 768 --heads 12 --lengths 128,256,512,1024,2048 -o layer.html
#include <cstdio>
#include <filesystem>

#include "apps/lab/benchmark/layer.h"
#include "apps/lab/benchmark/report.h"
#include "apps/lab/drawing/page.h"
#include "apps/run/config/nearest.h"
#include "apps/terminal/model_options.h"
#include "core/cpu/parallel.h"
#include "core/error.h"
#include "core/files/file.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  std::vector<std::string> mixers;
  BenchOptions bench{.mixers = {}, .lengths = {128, 256, 512, 1024, 2048}, .size = {}};
  ComputeOptions compute;
  int threads = 0;
  std::string out, theme = "auto";
  bool as_json = false, layer = false;
  std::vector<int64_t> scales = LayerOptions().scales;
};

std::vector<MixerKind> chosen_mixers(const std::vector<std::string>& names) {
  const auto known = choices(MixerKind());
  std::vector<MixerKind> chosen;
  for (const std::string& name : names) {
    const auto at = static_cast<size_t>(std::find(known.begin(), known.end(), name) - known.begin());
    if (at == known.size()) fail("no mixer is called '{}'{}", {one_line(name), nearest_note(name, {known.begin(), known.end()})});
    if (const auto kind = static_cast<MixerKind>(at); std::find(chosen.begin(), chosen.end(), kind) == chosen.end()) chosen.push_back(kind);
  }
  for (size_t i = 0; names.empty() && i < known.size(); ++i) chosen.push_back(static_cast<MixerKind>(i));
  return chosen;
}

bool is_page(const std::string& name) {
  const bool page = name.ends_with(".html");
  if (!page && !name.ends_with(".svg")) fail("{}: expected a name that ends in .svg or .html", {name});
  return page;
}

// Each once, in their order.
std::vector<int64_t> each_once(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> chosen;
  for (const int64_t length : lengths)
    if (std::find(chosen.begin(), chosen.end(), length) == chosen.end()) chosen.push_back(length);
  return chosen;
}

// What is wrong with the name of a drawing is told before hours are measured.
void check_place(const std::string& name) {
  is_page(name);
  const std::string folder = std::filesystem::path(name).parent_path().string();
  const Folder opened(folder.empty() ? "." : folder);
}

void draw(const std::string& name, const Chart& chart, const std::vector<std::vector<std::string>>& cells, Theme theme) {
  write_file_atomically(name, is_page(name) ? to_page(chart, cells, theme) : to_svg(chart, theme));
}

// bench.svg -> bench_roofline.svg
std::string roofline_name(const std::string& name) { return name.substr(0, name.rfind('.')) + "_roofline" + name.substr(name.rfind('.')); }

int run_layer(const Options& options, Theme theme) {
  LayerOptions layer{
      .scales = each_once(options.scales), .lengths = options.bench.lengths, .rounds = options.bench.rounds, .size = options.bench.size};
  if (options.bench.sequences) layer.sequences = options.bench.sequences;
  check(layer);
  const std::vector<LayerRow> rows = [&] {
    Progress progress({.steps = steps_of(layer), .out = stderr});
    return measure_layer(layer, progress);
  }();
  std::puts((options.as_json ? json_of(layer, rows) : table_of(layer, rows)).c_str());
  if (!options.out.empty()) draw(options.out, chart_of(layer, rows), cells_of(layer, rows), theme);
  return 0;
}

int run(Options& options) {
  BenchOptions& bench = options.bench;
  const Theme theme = parse_theme(options.theme);
  if (!options.out.empty()) check_place(options.out);
  bench.mixers = chosen_mixers(options.mixers), bench.lengths = each_once(bench.lengths);
  bench.size.device = options.compute.place(), bench.size.dtype = options.compute.numbers();
  if (options.threads) set_thread_count(options.threads);
  if (options.layer) return run_layer(options, theme);
  check(bench);
  const Benchmark result = [&] {
    Progress progress({.steps = steps_of(bench), .out = stderr});
    return measure(bench, progress);
  }();
  std::puts((options.as_json ? json_of(result) : table_of(result)).c_str());
  if (!options.as_json && bench.roofline) std::puts(("\n" + roofline_table(result)).c_str());
  if (options.out.empty()) return 0;
  draw(options.out, chart_of(result), cells_of(result), theme);
  if (bench.roofline) draw(roofline_name(options.out), roofline_chart(result), cells_of(result), theme);
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
  app.add_option("-o,--output,--out", options.out, "Draw it: a name that ends in .svg or .html; the roofline beside it as NAME_roofline");
  app.add_flag("--json", options.as_json, "Print JSON");
  app.add_option("--theme", options.theme, "auto (as the reader's system is set), light or dark")->capture_default_str();
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
