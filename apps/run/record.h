// The origin of a run, noted in its files.
// The words of the user, kept as they were given, and beside them the config that was resolved:
//   run.yaml         the run file, byte for byte, as it was given last; none where there was none
//   overrides.yaml   the keys of the command line, a list in its order; none where there were none
//   config.yaml      every key that is read, resolved; the run goes on from there
// And in a model or a checkpoint the config and the tokenizer that it was trained with: a config.yaml or tokenizer.json that was edited
// since then is noticed, and not believed.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/config.h"
#include "apps/run/train_config.h"
#include "core/files/folder.h"
#include "core/files/safetensors.h"
#include "data/tokenizers/tokenizer.h"

namespace ricci::apps {

struct Said {
  std::optional<std::string> run_file = {};
  std::vector<std::string> overrides = {};
  bool adds = false;  // the run goes on by its folder: the overrides are added to those before
};

// Writes run.yaml and overrides.yaml. Errors: as for writing; an overrides.yaml that is not a list of texts.
void write_said(const Folder& folder, const Said& said);

// Writes config.yaml for a run that goes on after `step`: on top, as comments, what its bits depend on beside the keys: version, commit,
// compiler, device, threads, seed; one line more for every other build or device that goes on with it. Then the keys. `before`: the keys as
// they were read from the file that is there now, as to_yaml writes them; empty in a new run. Unchanged keys stay as they are, with the
// comments that were written into them. A file that was edited and is written anew is kept as config.edited.yaml.
void write_config(const Folder& folder, const TrainConfig& config, const std::string& before, int64_t step);

// The text of that file. `old_text`: what is there now.
std::string config_file_text(const TrainConfig& config, const std::string& old_text, const std::string& before, int64_t step);

// ---- Models and checkpoints
// The keys that shape the model, or all that may not change while a run goes on, the seed among them.
enum class Compare { model, training };

// For the metadata of a model or a checkpoint: those keys, a line each; the user's settings of keys whose values follow from others; and
// the tokenizer's hash, where there is one.
Metadata provenance(const TrainConfig& config, const Tokenizer* tokenizer, Compare what);
// The lines "key: value" that it wrote, under the name "config" or "following".
TextsByKey lines_in(const Metadata& metadata, const char* name);

// True if the file was trained with this tokenizer, or does not name one.
bool fits_tokenizer(const SafetensorsFile& file, const Tokenizer& tokenizer);

// Compares a file with the config and the tokenizer beside it: in the keys that shape the model, or in all that both
// have. Error: the first key that differs, or the tokenizer. A file without these metadata is believed, and
// `warn` gets one line.
void check_provenance(const SafetensorsFile& file, const TrainConfig& config, const Tokenizer* tokenizer, Compare what,
    const std::function<void(const std::string& line)>& warn);

}  // namespace ricci::apps
