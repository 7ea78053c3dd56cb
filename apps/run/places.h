// Finds runs, their weights and run files by name.
#pragma once
#include <string>

#include "apps/run/train_config.h"

namespace ricci::apps {

inline constexpr const char *kConfigFile = "config.yaml", *kModelFile = "model.safetensors";  // in a run folder

// ---- Runs
std::string folder_of_runs(const TrainConfig& config = {});  // the key `runs`, else $RICCI_RUNS, else runs
// Returns the path of the run with this name in folder_of_runs(), unless the current folder has a file or a run folder of this name. Other
// paths are returned unchanged. Error: the path is a Hugging Face folder or its weights.
std::string find_run(const std::string& path_or_name);
std::string new_run(const std::string& path_or_name);  // the folder of a new run; a name means a folder in folder_of_runs()
std::string folder_name(const std::string& path);      // the run name for tables and pictures
std::string runs_note(const std::string& name);        // "; runs has a, b, c": the nearest run, then the known ones; empty for a path

// ---- Weights
// Every program and the key `init` use the same names for weights:
//   NAME or runs/NAME        the last step
//   NAME@best                the best evaluation
//   NAME@250                 step 250, if its checkpoint is kept
//   runs/NAME/model.safetensors, runs/NAME/checkpoints/step-00000250.safetensors   the run with the weights of this file
// An existing folder with an @ in its name has priority.
struct NamedWeights {
  std::string run = {};        // the folder; empty for a file outside run folders
  std::string which = "last";  // last, best or a step
  std::string file = {};       // replaces `which`

  bool is_last() const { return file.empty() && which == "last"; }
  std::string text() const;   // the name, in a form that find_weights reads
  std::string label() const;  // for tables: text() with the run name instead of its path
};
// Parses the name; does not check that the run exists. Errors: as for find_run.
NamedWeights find_weights(const std::string& name);

// ---- Files
// The config.yaml of the run, or the run file at this path; empty for an empty name. Error: neither exists; the message names the nearest
// run file in the same folder, in apps/configs or in the installation.
std::string find_run_file(const NamedWeights& named);
// Returns the config with full paths, so the run can continue from any folder. Paths of missing files are unchanged.
TrainConfig with_found_files(TrainConfig config);

}  // namespace ricci::apps
