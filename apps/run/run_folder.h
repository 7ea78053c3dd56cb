// runs/NAME: the files that a run leaves, and continues from.
//   config.yaml         the keys that the user gave, below a line with version, commit, compiler, device, threads and seed.
//                       `ricci train runs/NAME/config.yaml name=again` trains the same model again
//   tokenizer.json      the vocabulary
//   chat_template.jinja, chat_template.json   the template of an imported model
//   metrics.jsonl       a line per record; events.out.tfevents.*: the same for TensorBoard
//   checkpoints/        the newest states of the training and the best (models/training/checkpoint.h)
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
// The keys of a run file and of the command line; keys of model and tokenizer that neither gives come from init. The path may be empty.
// Errors: as for load_config; an unreadable init.
TrainConfig load_run_file(const std::string& path, const std::vector<std::string>& overrides = {});
// From a run file, or from the config.yaml of a run by its folder or name. Errors: as for load_run_file.
RunRequest request_run(const std::string& file_or_run, const std::vector<std::string>& overrides);

// The parts of a new run that its config does not have.
struct RunParts {
  const Tokenizer* tokenizer = nullptr;  // null if imported without one
  std::vector<std::string> labels = {};
  ImportedTemplate chat = {};
  std::string init = {};  // a hash of the weights that it starts from
};

bool ended_early(const TrainConfig& config, const TrainState& state);  // true if patience ran out at this evaluation

class RunFolder {
 public:
  // Continues from the newest sound checkpoint, if any. Nothing is written before begin(). Errors: weights other than the last are
  // named; the checkpoint has a different key, tokenizer, init or more steps; none is sound; a trained model
  // without checkpoints; a different process trains here.
  static RunFolder to_train(const RunRequest& request);
  // To read, with the weights that the name has (find_weights). Error: the folder does not exist, or one of its files is missing or
  // damaged.
  enum class Vocabulary { needed, optional };  // a model that was imported without a tokenizer has none
  static RunFolder open(const std::string& name, Vocabulary vocabulary = Vocabulary::needed);

  const std::string& path() const { return weights_.run; }
  std::string path_of(const std::string& name) const { return path() + "/" + name; }
  const NamedWeights& weights() const { return weights_; }
  const TrainConfig& config() const { return config_; }                             // as the user gave it
  const std::shared_ptr<const Tokenizer>& tokenizer() const { return tokenizer_; }  // null in a new run before begin()
  ModelConfig model_config() const { return apps::model_config(config_, tokenizer_.get()); }
  // The class names of a classifier: from the config, else from the training data.
  const std::vector<std::string>& labels() const { return config_.labels.empty() ? labels_ : config_.labels; }
  Checkpoints checkpoints() const { return {path_of("checkpoints")}; }
  // The tokens of a window (0: as in training). Error: more than the model can read.
  int64_t context(int64_t asked = 0) const;
  std::string context_note(int64_t context) const;  // " (trained with 64)" if it is not the context of the training

  // The last step, if the training has ended and its model is saved. A damaged model counts as not saved; a warning on stderr names it.
  std::optional<int64_t> finished() const;
  // Loads the newest sound checkpoint into the model, the optimizer and the random state of this thread. The schedule ends where the config
  // has it, else where the first start of the run had it. Errors: tensors of a wrong shape; a different text.
  TrainState resume(Model& model, Optimizer& optimizer, uint64_t text_hash) const;
  // Writes the files of a new run, or the changed files. Errors, also of the two below: the path and the reason; the folder was replaced.
  void begin(const RunParts& parts);
  void save(Model& model, Optimizer& optimizer, const TrainState& state) const;  // a checkpoint; removes the older ones
  void save_model(Model& model, int64_t step) const;
  void note_failure(const std::string& where) const;  // "step 3"; empty before the first step
  void prune() const;                                 // removes checkpoints of a run that was killed after its last save

  // The file of weights(), also during training. Errors: no such checkpoint; a damaged file; weights of a different model or tokenizer than
  // config.yaml and tokenizer.json describe.
  SafetensorsFile open_weights() const;
  // The model with these weights. Errors also: missing, surplus or misshapen tensors, each named.
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
  std::optional<FolderLock> lock_ = {};  // if it trains
  TrainConfig config_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<std::string> labels_ = {};
  std::string init_ = {};                       // RunParts::init
  std::string old_keys_ = {};                   // for config.yaml, in a run that continues
  std::optional<SafetensorsFile> newest_ = {};  // its newest sound checkpoint
};

}  // namespace ricci::apps
