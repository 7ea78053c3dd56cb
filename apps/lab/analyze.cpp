// ricci-analyze: what trained models do with text, an analysis each: a table, JSON, and a drawing or a page.
//   ricci-analyze frequency runs/A runs/B -o frequency.svg
//   ricci-analyze samples runs/A --judge runs/B --json samples.json
#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

#include "apps/lab/analysis/analyses.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

constexpr const char *kDrawing = "Draw it: a name that ends in .svg or .html", *kPage = "Write a page: a name that ends in .html";

struct Chosen {
  std::function<Report()> analyse;
  bool draws = false;  // an SVG drawing; else a page only
  ReportOptions report;
};

// The runs that an analysis reads.
template <class Options> void add_runs(CLI::App& app, Options& options) {
  app.add_option("runs", options.text.runs, "Folders of runs, such as runs/quickstart")->required();
  add_text_options(app, options.text);
}
void add_runs(CLI::App& app, MasksOptions& options) {
  add_run_arguments(app, options.run, "Run folders and run files, then keys for all of them: model.window=8", true);
}
void add_runs(CLI::App& app, MemoryOptions& options) {
  app.add_option("runs", options.runs, "Run folders and run files; a run file has no perplexity, and is not drawn")->required();
  app.add_option("--measured", options.measured, "A step that holds more by its plan is not taken, and its planned memory is shown")
      ->transform(CLI::AsSizeValue(true))
      ->capture_default_str();
}

// A subcommand with the options of its analysis.
template <class Options>
void add(CLI::App& app, Chosen& chosen, const char* name, const char* help, const char* output, Report (*analyse)(const Options&)) {
  CLI::App* const command = app.add_subcommand(name, help);
  const auto options = std::make_shared<Options>();
  add_runs(*command, *options);
  add_field_options(*command, *options);
  add_json_file(*command, chosen.report);
  add_output_options(*command, chosen.report, output);
  command->callback([&chosen, options, analyse, output] {
    chosen.analyse = [=] { return analyse(*options); };
    chosen.draws = output == kDrawing;
  });
}

void add_analyses(CLI::App& app, Chosen& chosen) {
  app.require_subcommand(1);
  add(app, chosen, "memory", "Perplexity against the memory of a training step", kDrawing, analyse_memory);
  add(app, chosen, "frequency", "Negative log likelihood in bins of equal token mass, by training frequency", kDrawing, analyse_frequency);
  add(app, chosen, "shuffle", "Negative log likelihood after a shuffled half of the context, by distance", kDrawing, analyse_shuffle);
  add(app, chosen, "neighbours", "Nearest neighbours of chunks by what the blocks of each scale make of them", kPage, analyse_neighbours);
  add(app, chosen, "completions", "The tokens that a coarse model expects in the next cell", kPage, analyse_completions);
  add(app, chosen, "samples", "Repeated n-grams, BLEU, perplexity and time of generated texts", kDrawing, analyse_samples);
  add(app, chosen, "masks", "The tokens and cells that the queries of a model see, as pictures", kDrawing, analyse_masks);
}

}  // namespace

int main(int argc, char** argv) {
  Chosen chosen;
  return run_app(
      argc, argv, {"ricci-analyze", "Analyses of trained models on text: a table, JSON, and a drawing or a page each."},
      [&](CLI::App& app) { add_analyses(app, chosen); },
      [&] {
        check(chosen.report, chosen.draws);
        tell(chosen.analyse(), chosen.report);
        return 0;
      });
}
