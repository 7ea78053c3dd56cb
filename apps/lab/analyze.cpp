// ricci-analyze: analyses of trained models on text: a table, JSON, and a drawing or a page each.
//   ricci-analyze frequency runs/A runs/B -o frequency.svg
//   ricci-analyze samples runs/A --judge runs/B --json samples.json
#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

#include "apps/lab/analysis/analyses.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

constexpr const char *kDrawing = "Draw it into this file, .svg or .html", *kPage = "Write this page, .html";

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
  app.add_option("runs", options.runs, "Run folders and run files")->required();
  app.add_option("--measured", options.measured, "A step that holds more is not taken, but planned")
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
  command->footer(format_message("Examples:\n  ricci-analyze {0} runs/a runs/b --json {0}.json\n"
                                 "  ricci-analyze {0} runs/quickstart -o {0}.html",
      {name}));
  command->callback([&chosen, options, analyse, output] {
    chosen.analyse = [=] { return analyse(*options); };
    chosen.draws = output == kDrawing;
  });
}

void add_analyses(CLI::App& app, Chosen& chosen) {
  app.require_subcommand(1);
  add(app, chosen, "memory", "Perplexity against the memory of a training step", kDrawing, analyse_memory);
  add(app, chosen, "frequency", "Nats per token, from the most frequent tokens to the rarest", kDrawing, analyse_frequency);
  add(app, chosen, "shuffle", "Nats that the order of earlier tokens saves, by their distance", kDrawing, analyse_shuffle);
  add(app, chosen, "neighbours", "The nearest chunks of a text by the blocks of each scale", kPage, analyse_neighbours);
  add(app, chosen, "completions", "The tokens that a coarse model expects in the next cell", kPage, analyse_completions);
  add(app, chosen, "samples", "Repeated n-grams, BLEU, perplexity and time of generated texts", kDrawing, analyse_samples);
  add(app, chosen, "masks", "Pictures of the tokens and cells that a query sees", kDrawing, analyse_masks);
}

}  // namespace

int main(int argc, char** argv) {
  Chosen chosen;
  return run_app(
      argc, argv,
      {.name = "ricci-analyze",
          .summary = "Analyses of trained models: tables, JSON and drawings.",
          .examples = "ricci-analyze frequency runs/quickstart -o frequency.svg\n"
                      "ricci-analyze samples runs/quickstart --json samples.json"},
      [&](CLI::App& app) { add_analyses(app, chosen); },
      [&] {
        check(chosen.report, chosen.draws);
        tell(chosen.analyse(), chosen.report);
        return 0;
      });
}
