// Command lines: the arguments of programs that read run files, and the options of programs that read texts or a trained model. An
// option has one name and one meaning in all programs.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "apps/run/run_folder.h"
#include "apps/terminal/cli.h"
#include "data/formats/documents.h"

namespace ricci::apps {

// The arguments [FILE] [KEY=VALUE ...], in any order; the last value of a key wins, and ~KEY removes a key that the file sets. A word with
// a slash before its equals sign is a file. --KEY=VALUE is read as KEY=VALUE.
struct RunOptions {
  std::vector<std::string> files{""};
  std::vector<std::string> overrides;

  const std::string& file() const { return files[0]; }  // empty if none was given
};
void add_run_arguments(CLI::App& app, RunOptions& options,
    const char* help = "Run file (YAML), then keys of it: model.layers=6 lr=3e-4; ~KEY removes a key that the file sets",
    bool several = false);

// --help-config [GROUP]: prints the keys of a group, or all of them, with defaults and descriptions.
void add_config_help(CLI::App& app, const std::function<std::string(const std::string& group)>& keys);

template <class Config> void add_run_options(CLI::App& app, RunOptions& options) {
  add_run_arguments(app, options);
  add_config_help(app, [](const std::string& group) { return describe(Config(), group); });
}

// --threads. It takes effect immediately.
void add_threads_option(CLI::App& app);

// ---- Texts
struct TextOptions {
  std::vector<std::string> paths;
  std::string format, encoding = name_of(Encoding::utf8);  // an empty format: by the names of the files
  DocumentOptions documents;
};
void add_text_options(CLI::App& app, TextOptions& options);
// Errors: options that contradict each other; a file that cannot be read.
Documents open_documents(const TextOptions& options);

// ---- A trained model
struct ComputeOptions {
  std::string dtype = "f32", device = "cpu";
};
// --precision (--dtype is another name for it) and --device.
void add_compute_options(CLI::App& app, ComputeOptions& options);

struct ModelOptions {
  std::string checkpoint = "last";
  int64_t context = 0;  // tokens; with 0 as in training
  ComputeOptions compute;
};
// --context, --checkpoint, --precision, --device and --threads. `context_help`: "Tokens of a window".
void add_model_options(CLI::App& app, ModelOptions& options, const std::string& context_help);

struct OpenModel {
  Device device;
  RunFolder run;
  Model model;
  int64_t context;
};
// Opens the run and loads the model. Errors: as for RunFolder::open, load_model and context.
OpenModel open_model(const std::string& run, const ModelOptions& options);

}  // namespace ricci::apps
