// ricci-convert: models of other programs as run folders, and run folders as models of other programs.
//   ricci-convert import FOLDER runs/NAME     a folder of Hugging Face's GPT-2
//   ricci-convert export runs/NAME FOLDER
#include <cstdio>

#include "apps/interop/hugging_face.h"
#include "apps/terminal/cli.h"

using namespace ricci::apps;

namespace {

struct Options {
  std::string from, to, checkpoint = "last";
  ImportOptions import;
};

int print(const std::string& line) {
  std::puts(line.c_str());
  return 0;
}

int import(const Options& options) { return print(import_hugging_face(options.from, options.to, options.import)); }
int export_run(const Options& options) { return print(export_hugging_face(options.from, options.checkpoint, options.to)); }

}  // namespace

int main(int argc, char** argv) {
  Options options;
  int (*command)(const Options&) = nullptr;
  return run_app(argc, argv, {"ricci-convert", "Models of other programs as run folders, and run folders as models of other programs."},
                 [&](CLI::App& app) {
                   app.require_subcommand(1);
                   CLI::App* const in = app.add_subcommand("import", "A folder with config.json and model.safetensors of GPT-2, as Hugging Face writes it, to a run folder");
                   in->add_option("folder", options.from, "Folder of the model")->required();
                   in->add_option("run", options.to, "Run folder to make, such as runs/gpt2")->required();
                   in->add_option("--dropout", options.import.dropout, "Dropout when the model is trained further; that of the folder if not given")->check(CLI::Range(0.0, 0.999));
                   in->add_flag("--without-tokenizer", options.import.without_tokenizer, "Leave out tokenizer.json");
                   in->callback([&] { command = import; });
                   CLI::App* const out = app.add_subcommand("export", "A run folder to a folder that Hugging Face's transformers loads");
                   out->add_option("run", options.from, "Run folder")->required();
                   out->add_option("folder", options.to, "Folder to make")->required();
                   out->add_option("--checkpoint", options.checkpoint, "last, best (by validation loss) or a step that is kept")->capture_default_str();
                   out->callback([&] { command = export_run; });
                 },
                 [&] { return command(options); });
}
