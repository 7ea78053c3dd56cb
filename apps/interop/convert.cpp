// ricci-convert: models of other programs as run folders, and run folders as models of other programs.
//   ricci-convert import FOLDER runs/NAME             a folder of Hugging Face's GPT-2, Llama, Qwen2 or Qwen3
//   ricci-convert import FILE.safetensors runs/NAME   a model of the Dispatcher paper's repository
//   ricci-convert export runs/NAME FOLDER
//   ricci-convert export runs/NAME FILE.gguf --gguf q8_0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>

#include "apps/interop/gguf.h"
#include "apps/interop/interop.h"
#include "apps/terminal/cli.h"
#include "core/error.h"
#include "core/files/folder.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  std::string source, target, checkpoint = "last";
  std::optional<double> dropout;
  std::optional<int64_t> heads, context;
  std::optional<std::string> gguf;
  bool without_tokenizer = false;
  std::string (*command)(const Options&) = nullptr;  // returns a line about what was made
};

std::string import(const Options& options) {
  if (is_file(options.source)) {
    if (options.without_tokenizer) fail("--without-tokenizer: {} is a file of weights, which has none", {options.source});
    const DispatcherImport defaults;
    return import_dispatcher(options.source, options.target,
        {options.heads.value_or(defaults.heads), options.context.value_or(defaults.context), options.dropout.value_or(defaults.dropout)});
  }
  if (options.heads || options.context)
    fail("--heads and --context: {} is no file of weights; the config.json of a folder has both", {options.source});
  return import_hugging_face(
      options.source, options.target, {.dropout = options.dropout.value_or(-1), .without_tokenizer = options.without_tokenizer});
}

std::string export_run(const Options& options) {
  if (options.gguf)
    return export_gguf(
        options.source, options.checkpoint, options.target, choice_of<GgufNumbers>("--gguf", *options.gguf), options.without_tokenizer);
  if (options.without_tokenizer) fail("--without-tokenizer: of an export, only --gguf reads it");
  if (options.target.ends_with(".gguf")) fail("{}: add --gguf f16 to make a GGUF file", {options.target});
  return export_hugging_face(options.source, options.checkpoint, options.target);
}

void add_options(CLI::App& app, Options& options) {
  app.require_subcommand(1);
  CLI::App* const importing =
      app.add_subcommand("import", "A model to a run folder: a folder of Hugging Face's GPT-2, Llama, Qwen2 or Qwen3, or "
                                   "the weights of a model of the Dispatcher repository");
  importing->add_option("model", options.source, "Folder with config.json and model.safetensors, or a file of weights")->required();
  importing->add_option("run", options.target, "Run folder to make, such as runs/gpt2")->required();
  importing->add_option("--dropout", options.dropout, "Dropout when the model is trained further; as in the other program if not given")
      ->check([](const std::string& text) {
        double value = 0;
        const bool is_rate = CLI::detail::lexical_cast(text, value) && value >= 0 && value <= 0.999;  // NaN is none
        return is_rate ? "" : "expected a number from 0 to 0.999, got " + text;
      });
  importing->add_flag(
      "--without-tokenizer", options.without_tokenizer, "Leave out the tokenizer of a folder, and its template of conversations");
  importing->add_option("--heads", options.heads, "Heads of the attention in a file of weights; 1 if not given")->check(at_least_one);
  importing->add_option("--context", options.context, "Tokens that the model in a file of weights takes")->check(at_least_one);
  importing->callback([&] { options.command = import; });
  CLI::App* const exporting =
      app.add_subcommand("export", "A run folder to a folder that Hugging Face's transformers loads, or to a GGUF file for llama.cpp");
  exporting->add_option("run", options.source, "Run folder")->required();
  exporting->add_option("folder", options.target, "Folder to make; with --gguf a file")->required();
  exporting->add_option("--checkpoint", options.checkpoint, "last, best (by validation loss) or a step that is kept")
      ->capture_default_str();
  exporting->add_option("--gguf", options.gguf, "One file for llama.cpp, with matrices in f32, f16, bf16 or q8_0 (8 bits)");
  exporting->add_flag("--without-tokenizer", options.without_tokenizer, "Leave the tokenizer out of a GGUF file");
  exporting->callback([&] { options.command = export_run; });
}

}  // namespace

int main(int argc, char** argv) {
  return run_app<Options>(argc, argv,
      {"ricci-convert", "Models of other programs as run folders, and run folders as models of other programs."}, add_options,
      [](const Options& options) {
        std::puts(options.command(options).c_str());
        return 0;
      });
}
