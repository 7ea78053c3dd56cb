// ricci inspect: draws what the mixers of a trained model compute for a text.
//   ricci inspect runs/NAME --text 'to be or not to be' -o inspection
#include <CLI/CLI.hpp>
#include <cstdio>

#include "apps/lab/commands.h"
#include "apps/lab/inspection/inspection.h"
#include "apps/run/corpus.h"
#include "apps/run/options.h"
#include "apps/run/writer.h"
#include "core/error.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  std::string run, text_file, out = "inspection";
  std::optional<std::string> text;
  int64_t length = 64;
  ModelOptions model;
  InspectionOptions look;
};

std::vector<int64_t> ids_of_text(const Options& options, const OpenModel& open) {
  const auto max = static_cast<size_t>(std::min(options.length, open.context));
  const TrainConfig& config = open.run.config();
  std::vector<int64_t> ids;
  if (options.text || !options.text_file.empty()) {
    ids = open.run.tokenizer()->encode_start(given_text(options.text.value_or(""), options.text_file, "--text", config.encoding));
    if (ids.empty()) fail("{}: is empty", {options.text ? "--text" : "--text-file"});
    ids.resize(std::min(ids.size(), max));
    return ids;
  }
  if (config.data.empty() && config.validation.empty()) fail("--text: {} was imported without a text; give a text", {open.run.path()});
  if (has_mask(config)) fail("--text: {} learns answers and has no plain text; give a text file", {open.run.path()});
  const Tokens tokens = open_validation(config, open.run.tokenizer(), open.context).tokens;
  ids.resize(std::min(static_cast<size_t>(tokens.size()), max));
  tokens.read(0, ids);
  return ids;
}

int run(const Options& options) {
  const OpenModel open = open_model(options.run, options.model);
  const Inspection found = inspect(open, ids_of_text(options, open), options.look);
  if (!found.note.empty()) std::fputs(wrapped(found.note, 2).c_str(), stdout);
  const int64_t files = write_report(options.out, found);
  size_t heads = 0;  // the maximum over layers
  for (const InspectedLayer& layer : found.layers) heads = std::max(heads, layer.heads.size());
  print(format_message("{}: {}; layers: {}, heads: {}, tokens of text: {}\n{}/index.html, inspect.json: {} files",
      {open.run.weights().text(), found.mixer, found.layers.size(), heads, found.text_ids.size(), options.out, files}));
  return 0;
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("run", options.run, kWeightsHelp)->required();
  app.add_option("--text", options.text, "Text to inspect, with escapes such as \\n (-: stdin; default: the start of the validation text)");
  app.add_option("--text-file", options.text_file, "File with the text (-: stdin)")->excludes("--text");
  app.add_option("--length", options.length, "Maximum number of tokens in the text")->check(at_least_one)->capture_default_str();
  app.add_option("--token", options.look.tokens,
         "Token to list with its nearest tokens (repeatable; default: the most frequent tokens of the text)")
      ->allow_extra_args(false);
  add_field_options(app, options.look);
  app.add_option("-o,--output,--out", options.out, "Folder for index.html, inspect.json and the drawings")->capture_default_str();
  add_model_options(app, options.model, "Tokens of the context");
}

}  // namespace

const Command ricci::apps::inspect_command{{.name = "ricci inspect",
                                               .summary = "Draws what the mixers of a trained model compute for a text.",
                                               .examples = "ricci inspect runs/quickstart -o inspection\n"
                                                           "ricci inspect runs/quickstart --text 'to be or not to be' --token e"},
    with_options<Options, add_options, run>};
