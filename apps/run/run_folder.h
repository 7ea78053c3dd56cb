// runs/NAME: the files of a run.
//   config.yaml         the keys that the user gave, after a line with version, commit, compiler, device, threads and seed.
//                       `ricci train runs/NAME/config.yaml name=again` trains the same model again
//   tokenizer.json      the vocabulary
//   chat_template.jinja, chat_template.json   the template of an imported model
//   metrics.jsonl       a line per record; events.out.tfevents.*: the same for TensorBoard
//   checkpoints/        the newest training states and the best one (models/training/checkpoint.h)
//   failed.txt          the step that failed, until the next start
//   model.safetensors   the parameters at the end or at an interruption, under the names of ricci probe
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/imported_template.h"
#include "apps/run/places.h"
#include "apps/run/provenance.h"
#include "apps/run/train_config.h"
#include "core/files/file.h"
#include "core/files/safetensors.h"
#include "data/tokenizers/tokenizer.h"
#include "models/model.h"
#include "models/training/checkpoint.h"

namespace ricci::apps {

inline constexpr const char* kFailureFile = "failed.txt";

struct RunRequest {
  std::string folder;
  TrainConfig config;
  NamedWeights named = {};  // the run or run file
};
// Reads the keys of a run file and of the command line, with the model and tokenizer keys of init as defaults. The path can be empty.
// Errors: as for load_config; init is unreadable.
TrainConfig load_run_file(const std::string& path, const std::vector<std::string>& overrides = {});
// Reads a run file, or the config.yaml of a run, given by its folder or name. Errors: as for load_run_file.
RunRequest request_run(const std::string& file_or_run, const std::vector<std::string>& overrides);

// The parts of a new run that are not in its config.
struct RunParts {
  const Tokenizer* tokenizer = nullptr;  // null if imported without a tokenizer
  std::vector<std::string> labels = {};
  ImportedTemplate chat = {};
  std::string init = {};  // a hash of the weights of `init`
};

bool ended_early(const TrainConfig& config, const TrainState& state);  // true if patience ran out at this evaluation

class RunFolder {
 public:
  // Continues from the newest valid checkpoint, if any. Nothing is written before begin(). Errors: the name selects weights other than the
  // last; the checkpoint has a different key value, tokenizer or init, or more steps; no checkpoint is valid; a trained model has no
  // checkpoints; a different process trains this run.
  static RunFolder to_train(const RunRequest& request);
  // Opens a run read-only and selects the named weights (find_weights). Errors: the folder does not exist; a file is missing or damaged.
  enum class Vocabulary { needed, optional };  // optional: for a model imported without a tokenizer
  static RunFolder open(const std::string& name, Vocabulary vocabulary = Vocabulary::needed);

  const std::string& path() const { return weights_.run; }
  std::string path_of(const std::string& name) const { return path() + "/" + name; }
  const NamedWeights& weights() const { return weights_; }
  const TrainConfig& config() const { return config_; }                             // as the user gave it
  const std::shared_ptr<const Tokenizer>& tokenizer() const { return tokenizer_; }  // null in a new run before begin()
  ModelConfig model_config() const { return apps::model_config(config_, tokenizer_.get()); }
  // A classifier's class names: from the config, else from the training data.
  const std::vector<std::string>& labels() const { return config_.labels.empty() ? labels_ : config_.labels; }
  Checkpoints checkpoints() const { return {path_of("checkpoints")}; }
  // Returns the tokens of a window (`asked`; 0: as in training). Error: the window exceeds model.ctx.
  int64_t context(int64_t asked = 0) const;
  std::string context_note(int64_t context) const;  // " (trained with 64)" if training used a different context

  // The last step, if training has ended and its model is saved. A damaged model file is treated as missing, with a warning to stderr.
  std::optional<int64_t> finished() const;
  // Loads the newest valid checkpoint into the model, the optimizer and this thread's random state. The schedule ends at the config's step,
  // else at the step in the checkpoint. Errors: tensors have the wrong shape; the text differs.
  TrainState resume(Model& model, Optimizer& optimizer, uint64_t text_hash) const;
  // Writes the files of a new run, or the changed files of an old one. Errors, also of save and save_model: a file cannot be written (with
  // the reason); the folder was replaced.
  void begin(const RunParts& parts);
  void save(Model& model, Optimizer& optimizer, const TrainState& state) const;  // writes a checkpoint and removes older ones
  void save_model(Model& model, int64_t step) const;
  void note_failure(const std::string& where) const;  // "step 3"; empty before the first step
  void prune() const;                                 // removes old checkpoints that a killed run left

  // Opens the file of weights(), also during training. Errors: the checkpoint does not exist; the file is damaged; the weights do not match
  // config.yaml or tokenizer.json.
  SafetensorsFile open_weights() const;
  // Loads the model with these weights. Errors: as for open_weights; tensors are missing, surplus or of the wrong shape (the message lists
  // them).
  Model load_model(Device device, Dtype dtype = Dtype::f32) const;

 private:
  explicit RunFolder(NamedWeights weights) : weights_(std::move(weights)) {}
  void read();
  void check_place() const;
  void continue_with(const TrainConfig& asked);
  std::string other_files(const TrainConfig& asked) const;
  Metadata metadata(Compare keys) const;
  std::optional<SafetensorsFile> find_file() const;

  NamedWeights weights_;
  std::optional<FolderLock> lock_ = {};  // only for training
  TrainConfig config_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<std::string> labels_ = {};
  std::string init_ = {};                       // RunParts::init
  std::string old_keys_ = {};                   // for the config.yaml of a run that continues
  std::optional<SafetensorsFile> newest_ = {};  // the newest valid checkpoint of a run that continues
};

}  // namespace ricci::apps
