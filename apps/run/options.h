// Command lines: the arguments of programs that read run files, and the options of programs that read texts or a trained model.
//   int main(int argc, char** argv) {
//     return run_app<RunOptions>(argc, argv, {"ricci-train", "Trains a language model."}, add_run_options<TrainConfig>,
//         [](const RunOptions& options) { return train(load_config<TrainConfig>(options.file(), options.overrides)); });
//   }
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "apps/run/run.h"
#include "apps/terminal/cli.h"
#include "data/formats/documents.h"

namespace ricci::apps {

// The arguments [FILE] [KEY=VALUE ...], in any order; the last word about a key counts. A word with a slash before its equals sign is a
// file; --KEY=VALUE is KEY=VALUE. ~KEY removes a key that the file sets.
struct RunOptions {
  std::vector<std::string> files{""};
  std::vector<std::string> overrides;

  const std::string& file() const { return files[0]; }  // empty if none was given
};
void add_run_arguments(CLI::App& app, RunOptions& options,
    const char* help = "Run file (YAML), then keys of it: model.layers=6 lr=3e-4; ~KEY removes a key that the file sets",
    bool several = false);

// --help-config: the keys of a group, or all if its name is empty, with default and description.
void add_config_help(CLI::App& app, const std::function<std::string(const std::string& group)>& keys);

// The arguments, and --help-config.
template <class Config> void add_run_options(CLI::App& app, RunOptions& options) {
  add_run_arguments(app, options);
  add_config_help(app, [](const std::string& group) { return describe(Config(), group); });
}

// --threads, which takes effect at once, because every program wants that.
void add_threads_option(CLI::App& app);

// ---- Texts: the files, and the documents in them
struct TextOptions {
  std::vector<std::string> paths;
  std::string format, encoding = name_of(Encoding::utf8);  // if the format is empty, the names of the files decide
  DocumentOptions documents;
};
void add_text_options(CLI::App& app, TextOptions& options);
// The documents as the options describe them. Errors: options that do not belong together; TextSource's.
Documents open_documents(const TextOptions& options);

// ---- A trained model, and how it is computed
// The device, and the type of its numbers.
struct ComputeOptions {
  std::string dtype = "f32", device = "cpu";

  Dtype numbers() const;
  Device place() const;  // error: not available
};
// --precision, which --dtype is, too, and --device.
void add_compute_options(CLI::App& app, ComputeOptions& options);

struct ModelOptions {
  std::string checkpoint = "last";
  int64_t context = 0;  // tokens, or 0 for the context of the training
  ComputeOptions compute;
};
// --context, --checkpoint, --precision, --device and --threads. what_context_is: "Tokens that a window holds".
void add_model_options(CLI::App& app, ModelOptions& options, const std::string& what_context_is);

struct OpenModel {
  Device device;
  RunFolder run;
  Model model;
  int64_t context;
};
// Opens the run and loads the model. Errors: as for RunFolder::open, load_model and context.
OpenModel open_model(const std::string& run, const ModelOptions& options);

}  // namespace ricci::apps
