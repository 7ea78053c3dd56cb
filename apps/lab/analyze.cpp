// ricci-analyze: what trained models do with text, an analysis each: a table, JSON, and a drawing or a page.
//   ricci-analyze frequency runs/A runs/B -o frequency.svg
//   ricci-analyze samples runs/A --judge runs/B --json samples.json
#include <CLI/CLI.hpp>
#include <functional>

#include "apps/lab/analysis/analyses.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  ReportOptions report;
  MemoryOptions memory;
  FrequencyOptions frequency;
  ShuffleOptions shuffle;
  NeighboursOptions neighbours;
  CompletionsOptions completions;
  SamplesOptions samples;
  MasksOptions masks;
};

void add_count(CLI::App& app, const char* flag, int64_t& number, const char* help) {
  app.add_option(flag, number, help)->check(at_least_one)->capture_default_str();
}

void add_runs(CLI::App& app, TextRunOptions& options) {
  app.add_option("runs", options.runs, "Folders of runs, such as runs/quickstart")->required();
  add_text_options(app, options);
}

void add_frequency(CLI::App& app, FrequencyOptions& options) {
  add_runs(app, options.text);
  add_count(app, "--bins", options.bins, "Bins of equal token mass");
  add_count(app, "--tokens", options.tokens, "Tokens of the text to score, at most");
  add_count(app, "--training-tokens", options.training_tokens, "Tokens of the training text to count, at most");
}

void add_shuffle(CLI::App& app, ShuffleOptions& options) {
  add_runs(app, options.text);
  add_count(app, "--windows", options.windows, "Windows to read, at most, spread over the text");
  app.add_option("--seed", options.seed, "Of the shuffling")->check(at_least_zero)->capture_default_str();
}

void add_memory(CLI::App& app, MemoryOptions& options) {
  app.add_option("runs", options.runs, "Run folders and run files; a run file has no perplexity, and is not drawn")->required();
  app.add_option("--batch", options.batch, "Sequences of the step; as in each run if not given")->check(at_least_one);
  app.add_option("--measured", options.measured, "A step that holds more by its plan is not taken, and its memory is that of the plan")
      ->transform(CLI::AsSizeValue(true))
      ->capture_default_str();
  app.add_flag("--evaluate", options.evaluate, "Compute the loss over the validation text, in place of the recorded one");
}

void add_run(CLI::App& app, std::string& run, TextRunOptions& options) {
  app.add_option("run", run, "Folder of a run, such as runs/quickstart")->required();
  add_text_options(app, options);
}

void add_neighbours(CLI::App& app, NeighboursOptions& options) {
  add_run(app, options.run, options.text);
  app.add_option(
         "--scales", options.scales, "Tokens of a chunk: 4,16; the coarse scales of the model if not given, 4 and 16 where it has none")
      ->delimiter(',')
      ->check(at_least_one);
  add_count(app, "--queries", options.queries, "Chunks whose neighbours are told, at each scale");
  add_count(app, "--nearest", options.nearest, "Neighbours of each");
  add_count(app, "--windows", options.windows, "Windows of the text to compare, at most, spread over it");
}

void add_completions(CLI::App& app, CompletionsOptions& options) {
  add_run(app, options.run, options.text);
  app.add_option("--text", options.given, "A text to continue; places of the run's text if not given");
  add_count(app, "--places", options.places, "Places of the text");
  app.add_option("--top", options.top, "Tokens to tell; as many as a cell has if not given")->check(at_least_one);
  add_count(app, "--shown", options.shown, "Cells of the text in front to show");
}

void add_masks(CLI::App& app, MasksOptions& options) {
  add_run_arguments(app, options.run);
  app.add_option("--tokens", options.tokens, "Tokens of the text, up to the context; the context if not given, but at most 256")
      ->check(at_least_one);
}

void add_samples(CLI::App& app, SamplesOptions& options) {
  add_runs(app, options.text);
  add_count(app, "--prompts", options.prompts, "Places of the text to continue");
  add_count(app, "--prompt", options.prompt, "Tokens of each prompt");
  add_count(app, "--tokens", options.tokens, "Tokens to write behind each");
  add_count(app, "--completions", options.completions, "Texts behind each prompt");
  app.add_option("--timed", options.timed, "Sequences to write alone, for the time")->check(at_least_zero)->capture_default_str();
  add_count(app, "--training-tokens", options.training_tokens, "Tokens of the training text that the 4-gram model learns from, at most");
  app.add_option("--judge", options.judge, "Another run, under which the samples are scored too");
  add_field_options(app, options.sampling);
}

// A subcommand and what it does.
struct Analysis {
  const char *name, *help;
  bool draws;  // an SVG drawing; else a page only
  std::function<void(CLI::App&)> add;
  std::function<Report()> run;
};

std::vector<Analysis> analyses(Options& o) {
  return {{"memory", "Perplexity against the memory of a training step", true, [&](CLI::App& app) { add_memory(app, o.memory); },
              [&] { return analyse_memory(o.memory); }},
      {"frequency", "Negative log likelihood in bins of equal token mass, by training frequency", true,
          [&](CLI::App& app) { add_frequency(app, o.frequency); }, [&] { return analyse_frequency(o.frequency); }},
      {"shuffle", "Negative log likelihood behind a shuffled half of the context, by distance", true,
          [&](CLI::App& app) { add_shuffle(app, o.shuffle); }, [&] { return analyse_shuffle(o.shuffle); }},
      {"neighbours", "Nearest neighbours of chunks by what the blocks of each scale make of them", false,
          [&](CLI::App& app) { add_neighbours(app, o.neighbours); }, [&] { return analyse_neighbours(o.neighbours); }},
      {"completions", "The tokens that a coarse model expects in the next cell", false,
          [&](CLI::App& app) { add_completions(app, o.completions); }, [&] { return analyse_completions(o.completions); }},
      {"samples", "Repeated n-grams, BLEU, perplexity and time of generated texts", true,
          [&](CLI::App& app) { add_samples(app, o.samples); }, [&] { return analyse_samples(o.samples); }},
      {"masks", "Which tokens and cells the queries of a model see, as pictures", true, [&](CLI::App& app) { add_masks(app, o.masks); },
          [&] { return analyse_masks(o.masks); }}};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const std::vector<Analysis> all = analyses(options);
  const Analysis* chosen = nullptr;
  return run_app(
      argc, argv, {"ricci-analyze", "What trained models do with text, an analysis each: a table, JSON, and a drawing or a page."},
      [&](CLI::App& app) {
        app.require_subcommand(1);
        for (const Analysis& each : all) {
          CLI::App* const command = app.add_subcommand(each.name, each.help);
          each.add(*command);
          add_json_file(*command, options.report);
          add_output_options(*command, options.report,
              each.draws ? "Draw it: a name that ends in .svg or .html" : "Write a page: a name that ends in .html");
          command->callback([&chosen, &each] { chosen = &each; });
        }
      },
      [&] {
        check(options.report, chosen->draws);
        tell(chosen->run(), options.report);
        return 0;
      });
}
