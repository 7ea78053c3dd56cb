// ricci-inspect: what the mixers of a trained model do with a text and what they have learnt, as drawings, a page and numbers.
//   ricci-inspect runs/NAME --text 'to be or not to be' -o inspection
#include <CLI/CLI.hpp>
#include <cstdio>

#include "apps/lab/inspection/inspection.h"
#include "apps/run/corpus.h"
#include "apps/run/options.h"
#include "apps/run/writer.h"
#include "core/error.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  std::string run, text, text_file, out = "inspection", theme = "auto";
  bool text_given = false;
  int64_t length = 64;
  ModelOptions model;
  InspectionOptions look;
};

std::vector<int64_t> ids_of_text(const Options& options, const OpenModel& open) {
  const auto max = static_cast<size_t>(std::min(options.length, open.context));
  std::vector<int64_t> ids;
  if (options.text_given) {
    ids = open.run.tokenizer()->encode_start(given_text(options.text, options.text_file, "--text", open.run.config().encoding));
    if (ids.empty()) fail("{}: is empty", {options.text_file.empty() ? "--text" : "--text-file"});
    ids.resize(std::min(ids.size(), max));
  } else {
    if (const TrainConfig& config = open.run.config(); config.data.empty() && config.validation.empty())
      fail("--text: {} was imported and has no text of its own; give one", {open.run.path()});
    if (has_mask(open.run.config())) fail("--text: {} learns answers; give a text", {open.run.path()});
    const Tokens tokens = open_validation(open.run.config(), {}, open.run.tokenizer()).tokens;
    ids.resize(std::min(static_cast<size_t>(tokens.size()), max));
    tokens.read(0, ids);
  }
  return ids;
}

int run(const Options& options) {
  const Theme theme = parse_theme(options.theme);
  const OpenModel open = open_model(options.run, options.model);
  const Found found = inspect(open, ids_of_text(options, open), options.look);
  for (const std::string& line : found.missing) std::puts(line.c_str());
  const int64_t files = write_report(options.out, found, theme);
  std::puts(format_message("{}: {}; layers: {}, heads: {}, tokens of text: {}; {} files: {}/index.html, {}/inspect.json, drawings",
      {open.run.path(), found.mixer, found.layers.size(), found.layers[0].heads.size(), found.text_ids.size(), files, options.out,
          options.out})
                .c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return run_app(
      argc, argv,
      {"ricci-inspect", "Shows how the mixers of a trained model read a text, and their parameters: drawings, a page, numbers."},
      [&](CLI::App& app) {
        const auto given = [&](const std::string&) { options.text_given = true; };
        app.add_option("run", options.run, "Folder of a run, such as runs/quickstart")->required();
        CLI::Option* const text =
            app.add_option("--text", options.text,
                   "Text to look at, with escapes such as \\n; -: all of stdin; the start of the run's validation text if not given")
                ->each(given);
        app.add_option("--text-file", options.text_file, "The text is in this file; -: stdin")->each(given)->excludes(text);
        app.add_option("--length", options.length, "Tokens of the text to look at, at most")->check(at_least_one)->capture_default_str();
        app.add_option("--token", options.look.tokens,
               "A token whose distances to others are listed; may be given several times; the most frequent of the text if not given")
            ->allow_extra_args(false);
        add_field_options(app, options.look);
        app.add_option("-o,--output,--out", options.out, "Folder for index.html, inspect.json and the drawings")->capture_default_str();
        app.add_option("--theme", options.theme, "auto (as the reader's system is set), light or dark")->capture_default_str();
        add_model_options(app, options.model, "Tokens that the model may read");
      },
      [&] { return run(options); });
}
