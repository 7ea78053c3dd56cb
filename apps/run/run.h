// runs/NAME: the files that a run leaves and continues from.
//   config.yaml         the keys that the user gave, below one line about version, commit, compiler, device, threads and seed, because the
//                       bits depend on them, too. ricci-train runs/NAME/config.yaml name=again trains the same model again
//   tokenizer.json      the vocabulary
//   chat_template.jinja, chat_template.json   the template of an imported model
//   metrics.jsonl       one line per record; events.out.tfevents.*: the same for TensorBoard
//   checkpoints/        the newest states of the training and the best: models/training/checkpoint.h. Their metadata have every key that
//                       bits depend on, because a run that continues is compared with the keys it was trained with, and not with a file
//                       that may have been edited
//   model.safetensors   the parameters when it ended or was interrupted, under the names of ricci-probe
// A link in the place of one of them, or of checkpoints/, is followed, because a disk with more room or a store may have the file. A file
// that is written again takes the place of its link.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/config.h"
#include "apps/run/train_config.h"
#include "core/files/file.h"
#include "core/files/safetensors.h"
#include "data/tokenizers/tokenizer.h"
#include "models/model.h"
#include "models/training/checkpoint.h"

namespace ricci::apps {

// ---- Places (places.cpp)
// The folder that holds the folders of runs: the key `runs`, else $RICCI_RUNS, else runs.
std::string folder_of_runs(const TrainConfig& config = {});
// A run by its folder or file, or by its name: NAME is the run of that name in folder_of_runs(), unless NAME itself is a file or
// the folder of a run. A path where nothing is comes back as it is.
std::string find_run(const std::string& path_or_name);
// "; runs has a, b, c": the runs that a user may have meant by a name, after the nearest; empty if there are none, or for a path.
std::string runs_note(const std::string& name);
// Error: there is nothing under the path of a run file. The nearest run file in its folder, in apps/configs and where the programs are
// installed is named, or some of them.
void check_run_file(const std::string& path);
// The config with the places at which the files that it names were found: texts, tokenizer, init. So the run continues from any folder and
// without $RICCI_DATA. A path that is not found stays as it is: the program that opens it reports the error.
TrainConfig with_found_files(TrainConfig config);

// ---- The record
// The text of config.yaml. `old_text` is the file that is there now and `old_keys` its keys as to_yaml writes them; both are empty in a new
// run. While the keys are the same, the file stays as it is below its first line, with the comments that the user wrote into it.
std::string config_file_text(const TrainConfig& config, const std::string& old_text, const std::string& old_keys);

// The keys that shape the model, or all that may not change while a run continues, the seed among them.
enum class Compare { model, training };
// For the metadata of a model or a checkpoint: "config", these keys with their resolved values, a line each; "following", the user's values
// of keys of the model that were resolved; "labels", the names of a classifier's classes, a list in JSON; "tokenizer", its hash.
Metadata provenance(const TrainConfig& config, const Tokenizer* tokenizer, Compare what);
// The lines "key: value" under the name "config" or "following".
TextsByKey lines_in(const Metadata& metadata, const char* name);
// The first key that has another value in these metadata, as "lr: 0.001, not 0.01", or that they are of another tokenizer; empty if there
// is no difference. A key that only one of them has is not compared, because the choice that reads it is.
std::string difference(const Metadata& was, const TrainConfig& config, const Tokenizer* tokenizer, Compare what);
// True if a file of these metadata was trained with this tokenizer, or does not name one.
bool fits_tokenizer(const Metadata& metadata, const Tokenizer& tokenizer);

// ---- The folder
constexpr const char* kModelFile = "model.safetensors";

// The command line of ricci-train, read.
struct RunRequest {
  std::string folder;
  TrainConfig config;
};
// From a run file, or from a run by its folder or name, which means its config.yaml. The folder is NAME in folder_of_runs(), or
// the one given unless an override names another run. Errors: as for load_config.
RunRequest request_run(const std::string& file_or_run, const std::vector<std::string>& overrides);

// The template of conversations that an imported model came with, in Jinja. It is not run: markers in it name one of ours (the key
// `chat`), the run keeps it, and an export writes it back as it was.
struct ImportedTemplate {
  std::string file = {};    // chat_template.jinja, byte for byte
  std::string member = {};  // chat_template of an older tokenizer_config.json, as JSON: a text, or a list of {"name", "template"}

  bool empty() const { return file.empty() && member.empty(); }
};
inline constexpr const char *kTemplateFile = "chat_template.jinja", *kTemplateMember = "chat_template";
ImportedTemplate read_template(const std::string& run_folder);  // errors: unreadable, or other JSON

// True after an evaluation with which patience ran out, because training ends then.
bool ended_early(const TrainConfig& config, const TrainState& state);

// The ids that end a text of this run: `ends`, and after its first the token that ends an answer, if the run learned conversations.
std::vector<int64_t> with_answer_end(std::vector<int64_t> ends, const TrainConfig& config, const Tokenizer& tokenizer);

class RunFolder {
 public:
  // To train: a run that continues if the folder holds checkpoints, else a new one. The folder is made if it does not exist, and locked
  // from here on. Nothing is written before begin(); a folder that was made and stays empty is removed again.
  // Warnings on stderr: a damaged checkpoint, which is passed over; one that does not name its keys. Errors: the newest sound
  // checkpoint has another key, tokenizer or more steps; none is sound; a trained model without checkpoints; another process trains here.
  static RunFolder to_train(const RunRequest& request);
  // To read, by its folder or name. A model that was imported without a tokenizer has none; programs that read no text do without.
  // Error: no such folder, or one of its files is missing or damaged.
  enum class Vocabulary { needed, optional };
  static RunFolder open(const std::string& path_or_name, Vocabulary vocabulary = Vocabulary::needed);

  const std::string& path() const { return path_; }
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }
  const TrainConfig& config() const { return config_; }
  const std::shared_ptr<const Tokenizer>& tokenizer() const { return tokenizer_; }  // null in a new run before begin()
  Checkpoints checkpoints() const { return {path_of("checkpoints")}; }
  // Tokens of a window: the number that is asked for, or with 0 the number of the training. Error: more than the model can take.
  int64_t context(int64_t asked = 0) const;
  // " (trained with 64)", to be printed after a context other than the training's; empty after the same.
  std::string context_note(int64_t context) const;

  // In a run that continues: its texts are now given by other paths than before. Their contents are compared by resume().
  bool names_other_texts() const { return names_other_texts_; }
  // The last step, if all are done or patience has run out, it is recorded, and the model is saved. A damaged model is not; a
  // warning on stderr names it.
  std::optional<int64_t> finished() const;

  // Puts the newest sound checkpoint into the model, the optimizer and the random state of this thread, and returns its state; a new run
  // only notes the hash of the text. A checkpoint can hold former_hash() instead, the number that version 0.1.0 gave the text. The end of
  // the learning rate's schedule comes from the config, else from the checkpoint, which has the steps of the first start. Warning on
  // stderr: it was trained with max_ranks. Errors: tensors of another shape; another text.
  TrainState resume(Model& model, Optimizer& optimizer, uint64_t text_hash, const std::function<uint64_t()>& former_hash = {}) const;
  // Writes the files of a new run, or the changed files of one that continues, and removes the rests of an interrupted write.
  // `tokenizer`: null if there is none; `kept`: a new run's. Errors of this and of both that save: the path and the reason; the folder was
  // removed or replaced since to_train(), because a new run in its place must not get the files of this one.
  void begin(const TrainConfig& config, const Tokenizer* tokenizer, const ImportedTemplate& kept = {});
  // Writes a checkpoint of this step, and removes the ones that are not kept.
  void save(Model& model, Optimizer& optimizer, const TrainState& state) const;
  void save_model(Model& model, int64_t step) const;
  // Removes checkpoints that the run does not keep, and that it could not remove because it was killed after its last save.
  void prune() const;

  // The weights of `which`, as in load_model, with its errors.
  SafetensorsFile open_weights(const std::string& which = "last") const;
  // The trained model on `device`, with weights and activations of `dtype`, also while a training is at work here: the model of the
  // `last` step saved, of the `best` evaluation, or of a step given by its number and still kept. Errors: no such checkpoint; a
  // damaged file; one that was trained with another model or tokenizer than in config.yaml and tokenizer.json; missing,
  // surplus or misshapen tensors, each named.
  Model load_model(Device device, const std::string& which = "last", Dtype dtype = Dtype::f32) const;

 private:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  void read();
  // Calls write(), which saves into the folder. Error: it is not the locked one.
  void in_place(const std::function<void()>& write) const;
  void check_place() const;
  ToHost to_host_in_place() const;
  void continue_with(TrainConfig asked);
  std::optional<SafetensorsFile> find_weights(const std::string& which) const;

  std::string path_;
  std::optional<FolderLock> lock_ = {};  // if it trains
  TrainConfig config_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<TrainConfig> before_ = {};      // config.yaml of a run that continues
  std::optional<SafetensorsFile> newest_ = {};  // its newest sound checkpoint
  bool names_other_texts_ = false;
  std::shared_ptr<void> made_ = {};  // removes the folders that were made for this start, if they are empty
};

}  // namespace ricci::apps
