// The arguments of programs that read run files, and the options of programs that read texts or a trained model. An option has one name and
// one meaning in all programs.
#pragma once
#include <string>
#include <vector>

#include "apps/run/run_folder.h"
#include "apps/terminal/cli.h"
#include "data/formats/documents.h"

namespace ricci::apps {

// The arguments [FILE] [KEY=VALUE ...], in any order. The last value of a key wins. ~KEY removes a key that the file sets. An argument with
// a slash before its equals sign is a file. --KEY=VALUE means KEY=VALUE.
struct RunOptions {
  std::vector<std::string> files{""};
  std::vector<std::string> overrides;

  const std::string& file() const { return files[0]; }  // empty if none was given
};
void add_run_arguments(CLI::App& app, RunOptions& options,
    const char* help = "Run file (YAML), then keys that override it: model.layers=6 lr=3e-4; ~KEY removes a key that the file sets",
    bool several = false);
// Declares the arguments, and --help-config [GROUP]: it prints the keys of a group, or all of them, with defaults and descriptions.
void add_run_options(CLI::App& app, RunOptions& options);

// Declares --threads; parsing the option sets the thread count.
void add_threads_option(CLI::App& app);

// ---- Texts
// A text is files, folders and archives of one format. Run files and command lines describe it with the same names: format, encoding,
// text_field and label_field. Each of these four values comes from the first of the following:
//   1. the key or the option
//   2. for the format: the file names, unless the run learned answers, or labels from shards
//   3. the run that reads the text; a field only if both formats have named fields or both have columns
//   4. text, utf8, and the format's default field
struct TextOptions {
  std::vector<std::string> paths = {};
  std::string format = {}, encoding = {};  // empty if not given
  DocumentOptions documents = {};
};
// Declares --format, --encoding, --text-field and --label-field; without a run, also --documents, with UTF-8 and plain text as defaults.
void add_text_options(CLI::App& app, TextOptions& options, bool of_run);
Encoding encoding_of(const TextOptions& options);  // by default UTF-8
// Opens the files. Errors: options contradict each other; a file is unreadable.
Documents open_documents(const TextOptions& options);
// The config of a run that validates on this text. Errors: a name is unknown; the format has answers and the run learned none, or the
// reverse.
TrainConfig with_text(const TrainConfig& config, const TextOptions& options);

// ---- A trained model
struct ComputeOptions {
  std::string dtype = "f32", device = "cpu";
};
// Declares --precision (or --dtype) and --device.
void add_compute_options(CLI::App& app, ComputeOptions& options);

// The help text of an argument for find_weights.
inline constexpr const char* kWeightsHelp =
    "A run by its name or folder: quickstart or runs/quickstart; quickstart@best and quickstart@250 name its checkpoints";
// Rejects --checkpoint, an option of older versions.
void add_checkpoint_note(CLI::App& app);

struct ModelOptions {
  int64_t context = 0;  // tokens (0: as in training)
  ComputeOptions compute;
};
// Declares --context, --precision, --device and --threads. `context_help`: such as "Tokens of a window".
void add_model_options(CLI::App& app, ModelOptions& options, const std::string& context_help);

struct OpenModel {
  Device device;
  RunFolder run;
  Model model;
  int64_t context;
};
// Opens the run and loads the named weights. Errors: as for RunFolder::open, load_model and context.
OpenModel open_model(const std::string& run, const ModelOptions& options);

}  // namespace ricci::apps
