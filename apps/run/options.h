// The arguments of programs that read a run file, or several.
//   int main(int argc, char** argv) {
//     return run_app<RunOptions>(argc, argv, {"ricci-train", "Trains a language model."}, add_run_options<TrainConfig>,
//         [](const RunOptions& options) { return train(load_config<TrainConfig>(options.file(), options.overrides())); });
//   }
#pragma once
#include <string>
#include <vector>

#include "apps/run/config.h"
#include "apps/terminal/cli.h"

namespace ricci::apps {

// The arguments [FILE] [KEY=VALUE ...]. A word with a slash before its equals sign is a file; --KEY=VALUE is KEY=VALUE. ~KEY removes a key
// that the file sets. Error: a key is given with dashes and without, because it is not known which of the two came last.
class RunOptions {
 public:
  const std::string& file() const { return files_[0]; }  // empty if none was given
  const std::vector<std::string>& files() const { return files_; }
  const std::vector<std::string>& overrides() const { return overrides_; }

 private:
  friend void add_run_arguments(CLI::App& app, RunOptions& options, const char* help, bool several);
  std::vector<std::string> files_{""};
  std::vector<std::string> overrides_;
};
void add_run_arguments(CLI::App& app, RunOptions& options,
    const char* help = "Run file (YAML), then keys of it: model.layers=6 lr=3e-4; ~KEY removes a key that the file sets",
    bool several = false);

// The arguments, and --help-config: every key of Config with default and description.
template <class Config> void add_run_options(CLI::App& app, RunOptions& options) {
  add_run_arguments(app, options);
  add_text_flag(
      app, "--help-config", "Print every key of a run file with its default, as YAML, and exit", [] { return describe(Config()); });
}

// For AppText::more_words: "model.layers=" for each key of Config.
template <class Config> std::string assigned_keys() {
  Config config;
  std::string text;
  for (const Field& field : fields_of(config)) text += field.key + "=\n";
  return text;
}

}  // namespace ricci::apps
