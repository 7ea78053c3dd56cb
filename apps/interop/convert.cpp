// ricci convert: converts between run folders and models of other programs.
//   ricci convert import FOLDER NAME                  a Hugging Face folder with GPT-2, Llama, Qwen2 or Qwen3
//   ricci convert export NAME FOLDER
//   ricci convert export NAME@best FILE.gguf --gguf q8_0
#include <CLI/CLI.hpp>
#include <optional>

#include "apps/interop/commands.h"
#include "apps/interop/interop.h"
#include "apps/run/options.h"
#include "apps/terminal/table.h"
#include "core/error.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  std::string source, target;
  std::optional<double> dropout;
  std::optional<std::string> gguf;
  bool without_tokenizer = false;
  std::string (*command)(const Options&) = nullptr;  // returns lines to print
};

std::string import(const Options& options) {
  return import_hugging_face(options.source, options.target, options.dropout, options.without_tokenizer);
}

std::string export_run(const Options& options) {
  if (options.gguf)
    return export_gguf(options.source, options.target, choice_of<GgufNumbers>("--gguf", *options.gguf), options.without_tokenizer);
  if (options.without_tokenizer) fail("--without-tokenizer: does not apply to an export without --gguf");
  if (options.target.ends_with(".gguf")) fail("{}: add --gguf f16 to make a GGUF file", {options.target});
  return export_hugging_face(options.source, options.target);
}

void add_options(CLI::App& app, Options& options) {
  app.require_subcommand(1);
  CLI::App* const importing = app.add_subcommand("import", "Turn a folder of Hugging Face's GPT-2, Llama, Qwen2 or Qwen3 into a run");
  importing->add_option("model", options.source, "Hugging Face folder")->required();
  importing->add_option("run", options.target, "Run to create: a name, or a path with a slash")->required();
  importing->add_option("--dropout", options.dropout, "Dropout rate for further training; by default the imported model's rate")
      ->check([](const std::string& text) {
        double value = 0;
        const bool is_rate = CLI::detail::lexical_cast(text, value) && value >= 0 && value <= 0.999;  // NaN fails both
        return is_rate ? "" : "expected a number from 0 to 0.999, got " + text;
      });
  importing->add_flag("--without-tokenizer", options.without_tokenizer, "Import neither the tokenizer nor its chat template");
  importing->callback([&] { options.command = import; });
  CLI::App* const exporting =
      app.add_subcommand("export", "Turn a run into a folder for Hugging Face's transformers, or into a GGUF file for llama.cpp");
  exporting->add_option("run", options.source, kWeightsHelp)->required();
  exporting->add_option("folder", options.target, "Folder to create; with --gguf, the file to create")->required();
  add_checkpoint_note(*exporting);
  exporting->add_option("--gguf", options.gguf, "Write a GGUF file with matrices in f32, f16, bf16 or q8_0 (8 bits)");
  exporting->add_flag("--without-tokenizer", options.without_tokenizer, "Write a GGUF file without the tokenizer");
  exporting->callback([&] { options.command = export_run; });
}

int run(const Options& options) {
  print(options.command(options));
  return 0;
}

}  // namespace

const Command ricci::apps::convert_command{
    {.name = "ricci convert",
        .summary = "Converts models of other programs into runs, and runs into models of other programs.",
        .examples = "ricci convert import path/to/gpt2 gpt2\nricci convert export gpt2 gpt2.gguf --gguf q8_0"},
    with_options<Options, add_options, run>};
