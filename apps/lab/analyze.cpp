// ricci analyze: analyses trained models on text, and prints a table or writes JSON, a drawing or a page.
//   ricci analyze frequency runs/A runs/B -o frequency.svg
//   ricci analyze samples runs/A --json samples.json
#include <CLI/CLI.hpp>
#include <string_view>
#include <utility>

#include "apps/lab/analysis/analyses.h"
#include "apps/lab/commands.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Analysis {
  const char *name, *help;
  Report (*analyse)(const AnalysisOptions&);
  void (*add_runs)(CLI::App&, AnalysisOptions&);
  bool draws = true;  // else the page has only a table
};

void add_text_runs(CLI::App& app, AnalysisOptions& options) {
  app.add_option("runs", options.run.files, kWeightsHelp)->required();
  app.add_option("--data", options.text.paths, "Text files or folders; by default each run's validation text");
  add_text_options(app, options.text, true);
  add_model_options(app, options.model, "Tokens of a window");
}
void add_runs_with_keys(CLI::App& app, AnalysisOptions& options) {
  add_run_arguments(app, options.run, "Run folders and run files, then keys for all of them: model.window=8", true);
}
void add_planned_runs(CLI::App& app, AnalysisOptions& options) {
  app.add_option("runs", options.run.files, "Run folders and run files")->required();
}

constexpr Analysis kAnalyses[] = {
    {"memory", "Perplexity against the memory of a training step", analyse_memory, add_planned_runs},
    {"frequency", "Nats per token, from the most frequent tokens to the rarest", analyse_frequency, add_text_runs},
    {"shuffle", "Nats that the order of earlier tokens saves, by their distance", analyse_shuffle, add_text_runs},
    {"neighbours", "The nearest chunks of a text by the block outputs of each scale", analyse_neighbours, add_text_runs, false},
    {"completions", "The tokens that a coarse model expects in the next cell", analyse_completions, add_text_runs, false},
    {"samples", "Repeated n-grams and BLEU of generated texts", analyse_samples, add_text_runs},
    {"masks", "Pictures of the tokens and cells that a query sees", analyse_masks, add_runs_with_keys},
};

// The other options, grouped by analysis.
void visit_options(AnalysisOptions& o, const Fields& field) {
  const Fields memory = field.group("memory"), frequency = field.group("frequency"), shuffle = field.group("shuffle"),
               neighbours = field.group("neighbours"), completions = field.group("completions"), samples = field.group("samples"),
               masks = field.group("masks");
  memory("batch", o.batch, "sequences of a step; by default each run's batch").at_least(1);
  frequency("bins", o.bins, "bins of equal token mass").at_least(1);
  frequency("tokens", o.scored, "largest number of tokens of the text to score").at_least(1);
  frequency("training_tokens", o.counted, "largest number of tokens of the training text to count").at_least(1);
  shuffle("windows", o.windows, "largest number of windows, spread over the text").at_least(1);
  shuffle("seed", o.seed, "seed of the shuffling");
  neighbours("scales", o.scales, "tokens of a chunk, such as 4,16 (the default without coarse scales in the model)").at_least(1);
  neighbours("queries", o.queries, "chunks to list with their nearest chunks, at each scale").at_least(1);
  neighbours("nearest", o.nearest, "number of nearest chunks to list for each").at_least(1);
  neighbours("windows", o.windows, "largest number of windows, spread over the text").at_least(1);
  completions("places", o.places, "number of positions in the text").at_least(1);
  completions("top", o.top, "number of tokens to list; by default the tokens in a cell").at_least(1);
  completions("shown", o.cells, "number of preceding cells to show").at_least(1);
  samples("prompts", o.prompts, "number of positions to continue the text from").at_least(1);
  samples("prompt", o.prompt, "tokens of each prompt").at_least(1);
  samples("tokens", o.tokens, "tokens to write after each prompt").at_least(1);
  samples("completions", o.completions, "texts to write after each prompt").at_least(1);
  visit_fields(o.sampling, samples);
  masks("tokens", o.mask_tokens, "number of tokens in the text; by default the context, at most 256").at_least(1);
}

struct Options {
  AnalysisOptions analysis;
  ReportOptions output;
  const Analysis* chosen = nullptr;
};

void add_options(CLI::App& app, Options& options) {
  app.require_subcommand(1);
  for (const Analysis& each : kAnalyses) {
    CLI::App& command = *app.add_subcommand(each.name, each.help);
    each.add_runs(command, options.analysis);
    std::vector<Field> fields;
    visit_options(options.analysis, Fields(fields));
    std::erase_if(fields, [&](const Field& field) { return std::string_view(field.group) != each.name; });
    add_field_options(command, std::as_const(fields));
    add_json_file(command, options.output);
    add_output_option(command, options.output, each.draws ? "Draw the result into this file, .svg or .html" : "Write this page, .html");
    command.footer(format_message("Examples:\n  ricci analyze {0} runs/a runs/b --json {0}.json\n"
                                  "  ricci analyze {0} runs/quickstart -o {0}.html",
        {each.name}));
    command.callback([&options, analysis = &each] { options.chosen = analysis; });
  }
}

int run(const Options& options) {
  check(options.output, options.chosen->draws);
  publish(options.chosen->analyse(options.analysis), options.output);
  return 0;
}

}  // namespace

const Command ricci::apps::analyze_command{{.name = "ricci analyze",
                                               .summary = "Analyses trained models and prints tables, JSON or drawings.",
                                               .examples = "ricci analyze frequency runs/quickstart -o frequency.svg\n"
                                                           "ricci analyze samples runs/quickstart --json samples.json"},
    with_options<Options, add_options, run>};
