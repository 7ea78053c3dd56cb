// What the user said of a run, kept in its folder as it was said, and beside it what was resolved:
//   run.yaml         the run file, byte for byte, as it was given last; none where there was none
//   overrides.yaml   what the command line said beside it, a list in its order; none where it said nothing
//   config.yaml      every key that is read, resolved; the run goes on from there
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/config/train_config.h"
#include "core/files/folder.h"

namespace ricci::apps {

struct Said {
  std::optional<std::string> run_file = {};
  std::vector<std::string> overrides = {};
  bool adds = false;  // to what was said before: the run goes on by its folder
};

// Writes run.yaml and overrides.yaml. Errors: those of writing; an overrides.yaml that is not a list of texts.
void write_said(const Folder& folder, const Said& said);

// Writes config.yaml for a run that goes on after `step`: on top, as comments, what its bits depend on beside the keys: version,
// commit, compiler, device, threads, seed; one line more for every other build or device that goes on with it. Then the keys.
// `before`: the keys as they were read from the file that is there now, as to_yaml writes them; empty in a new run. Keys that say the same
// as before stay as they are, with the comments that somebody wrote into them. A file that somebody edited and that is written anew is kept
// as config.edited.yaml.
void write_config(const Folder& folder, const TrainConfig& config, const std::string& before, int64_t step);

// "ricci 0.1.0, commit 1a2b3c4d5e, g++ 12.2.0": the commit ends with + where files differed from it, and is unknown outside a git checkout.
std::string build_info();

// The text of that file. `old_text`: what is there now.
std::string config_file_text(const TrainConfig& config, const std::string& old_text, const std::string& before, int64_t step);

}  // namespace ricci::apps
