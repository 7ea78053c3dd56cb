// runs/NAME: the files that a run leaves and goes on from.
//   config.yaml         the resolved config: ricci-train runs/NAME/config.yaml name=again trains the same model again.
//                       Comments on top name what its bits depend on beside the keys: version, build, device
//   run.yaml, overrides.yaml   the run file and the command line as they were given: apps/run/record.h
//   tokenizer.json      the vocabulary
//   chat_template.jinja, chat_template.json   the template of an imported model: apps/run/imported_template.h
//   run_id              a random number that distinguishes this run from another one of the same name
//   metrics.jsonl       one line per record; events.out.tfevents.*: the same for TensorBoard
//   checkpoints/        the newest states of the training and the best: models/training/checkpoint.h
//   model.safetensors   the parameters when it ended or was interrupted, under the names of ricci-probe
//   nonfinite.safetensors   the step at which the training ended because its loss or gradient was not finite
// A link in the place of one of them, or of checkpoints/, is followed, as to a disk with more room or into a store. A file that is written
// again takes the place of its link; what the link led to stays as it was. Records are appended to the file that a link leads to.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/imported_template.h"
#include "apps/run/places.h"
#include "apps/run/record.h"
#include "apps/run/train_config.h"
#include "data/tokenizers/tokenizer.h"
#include "models/layers/inputs.h"
#include "models/model.h"
#include "models/training/checkpoint.h"

namespace ricci::apps {

constexpr const char *kModelFile = "model.safetensors", *kNonfiniteFile = "nonfinite.safetensors";

// The command line of ricci-train, read.
struct RunRequest {
  std::string folder;
  TrainConfig config;
  Said said = {};
};

// From a run file, or from a run by its folder or name, which means the config in it. The folder is NAME in folder_of_runs(), or
// the one given unless an override names another run. Errors: as for load_config.
RunRequest request_run(const std::string& file_or_run, const std::vector<std::string>& overrides);

// After an evaluation: whether patience has run out, so that training ends.
inline bool out_of_patience(const TrainConfig& config, const TrainState& state) {
  return config.patience > 0 && state.best_step >= 0 && state.step - state.best_step >= config.patience;
}
// The same after any step; false after one without an evaluation.
inline bool ended_early(const TrainConfig& config, const TrainState& state) {
  return !state.awaits_evaluation && config.eval_every > 0 && state.step % config.eval_every == 0 && out_of_patience(config, state);
}

// The ids that end a text of this run: `ends`, and after its first the token that ends an answer, if the run learned conversations.
std::vector<int64_t> with_answer_end(std::vector<int64_t> ends, const TrainConfig& config, const Tokenizer& tokenizer);

class RunFolder {
 public:
  // To train: a run that goes on when the folder holds checkpoints, else a new one. The folder is locked from here on, and made
  // where there is none; unless begin() follows it is removed again, and nothing else is written before begin().
  // Errors, each before anything was changed: a run of another config (the first key that differs is named), fewer steps than before, a
  // trained model without checkpoints, a run that another process is training.
  static RunFolder to_train(const RunRequest& request);
  // To read, by its folder or name. A model that was imported without a tokenizer has none; programs that read no text do without.
  // Error: no such folder, or one of its files is missing or damaged.
  enum class Vocabulary { needed, optional };
  static RunFolder open(const std::string& path_or_name, Vocabulary vocabulary = Vocabulary::needed);

  FilePlace place(const std::string& name) const { return {folder_, name}; }
  const Folder& folder() const { return folder_; }
  const std::string& path() const { return folder_.path(); }
  const TrainConfig& config() const { return config_; }
  // Empty in a new run before begin(), or where there is none.
  const std::shared_ptr<const Tokenizer>& tokenizer() const { return tokenizer_; }
  Checkpoints checkpoints() const { return {folder_.find("checkpoints")}; }
  // Tokens of a window: the number that is asked for, or with 0 the number of the training. Error: more than the model can take.
  int64_t context(int64_t asked = 0) const;
  // " (trained with 64)", to be printed after a context other than the training's; empty after the same.
  std::string context_note(int64_t context) const;

  // In a run that goes on: its texts are now given by other paths than before. Their contents are compared by resume().
  bool names_other_texts() const { return names_other_texts_; }

  // The last step, where all are done or patience has run out, it is recorded, and the model is saved. A damaged model is not; a
  // warning on stderr names it.
  std::optional<int64_t> finished() const;

  // The newest sound checkpoint of the run; nothing in a new one. Warnings on stderr: a damaged checkpoint, which is passed over; one that
  // was trained with kRemovedKey. Errors: all are damaged; one of another config, seed or tokenizer.
  std::optional<SafetensorsFile> newest_checkpoint() const;
  // Removes checkpoints that the run does not keep, and that it could not remove because it was killed after its last save.
  void prune() const;
  // Puts that checkpoint into the model, the optimizer and the random state of this thread, and returns its state; without one only
  // notes the hash of the text. The end of the learning rate's schedule comes from the config, else from the checkpoint, which has the
  // steps of the first start. Errors: tensors of another shape; a text other than before.
  TrainState resume(const std::optional<SafetensorsFile>& newest, Model& model, Optimizer& optimizer, uint64_t text_hash) const;

  // Makes the folder of a new run, or readies the folder of one that goes on after `step`: removes what an interrupted write left, and
  // nonfinite.safetensors, which belongs to the training before this one. `tokenizer`: null where there is none; `talks`: a new run's.
  // Error: names the path and the reason.
  void begin(const TrainConfig& config, const Tokenizer* tokenizer, int64_t step, const ImportedTemplate& talks = {});

  // Writes a checkpoint of this step, and removes the ones that are not kept. Error, also of save_weights: the folder was removed or is no
  // longer this run's.
  void save(Model& model, Optimizer& optimizer, const TrainState& state) const;
  // Replaces a file of weights as a whole: model.safetensors, or one that holds more tensors beside them; metadata: the step.
  void save_weights(const std::string& name, const NamedTensors& tensors, int64_t step) const;
  void save_model(Model& model, int64_t step) const { save_weights(kModelFile, weights_of(model), step); }

  // The weights of `which`, as in load_model, with its errors.
  SafetensorsFile open_weights(const std::string& which = "last") const;
  // The trained model on `device`, with weights and activations of `dtype`, also while a training is at work here: the model of the
  // `last` step saved, of the `best` evaluation, or of a step given by its number and still kept. Errors: no such checkpoint; a
  // damaged file; one that was trained with another model or tokenizer than in config.yaml and tokenizer.json; missing,
  // surplus or misshapen tensors, each named.
  Model load_model(Device device, const std::string& which = "last", Dtype dtype = Dtype::f32) const;

 private:
  explicit RunFolder(const Folder& folder) : folder_(folder) {}
  void replace(const std::function<void()>& write) const;
  SafetensorsFile weights(const std::string& which) const;
  std::optional<SafetensorsFile> find_weights(const std::string& which) const;
  void read();

  Folder folder_;
  TrainConfig config_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<RunLock> lock_;  // empty unless the run is trained
  Said said_;
  std::string config_before_;  // the config before this process, as YAML; empty in a new run
  int64_t steps_before_ = 0;
  bool names_other_texts_ = false;
};

// ---- A training step whose loss or gradient was not finite, kept so that it can be computed again (replay.cpp).

// Writes nonfinite.safetensors into the run folder: the weights before the step, the ids and targets of its micro-batches as
// batch.0.ids, batch.0.targets, ..., and its number. The seed of dropout is in config.yaml.
void save_nonfinite_step(const RunFolder& run, const NamedTensors& weights, const std::vector<MicroBatch>& micro_batches, int64_t step);

// Runs the forward and the backward of that step again; overrides such as precision=f32 or device=cpu may differ from the run's keys.
// Prints the loss where everything is finite this time. Errors: the step, the op that made the first NaN or infinity, and its place in
// the source, as the training printed them; there is no such file.
int replay_nonfinite_step(const std::string& folder, const std::vector<std::string>& overrides);

}  // namespace ricci::apps
