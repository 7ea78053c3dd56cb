// runs/NAME: the files that a run leaves, and continues from.
//   config.yaml         the keys that the user gave, below a line with version, commit, compiler, device, threads and seed.
//                       `ricci train runs/NAME/config.yaml name=again` trains the same model again
//   tokenizer.json      the vocabulary
//   chat_template.jinja, chat_template.json   the template of an imported model
//   metrics.jsonl       a line per record; events.out.tfevents.*: the same for TensorBoard
//   checkpoints/        the newest states of the training and the best (models/training/checkpoint.h)
//   failed.txt          the step that failed, until the next start
//   model.safetensors   the parameters at the end or at an interruption, under the names of ricci probe
// The metadata of checkpoints and models hold every key that the bits depend on, with its resolved value. A run that continues is compared
// with them and not with config.yaml: a user may have edited that file. They hold no path: texts, tokenizer and init are compared by
// content, so a project that was moved continues, and equal training in two folders gives equal files.
#pragma once
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

// ---- Places
std::string folder_of_runs(const TrainConfig& config = {});  // the key `runs`, else $RICCI_RUNS, else runs
// The path of a run by its name in folder_of_runs(), unless a file or a run folder here has this name. Other paths are not changed. Error:
// a folder of Hugging Face, or its weights.
std::string find_run(const std::string& path_or_name);
std::string folder_name(const std::string& path);  // the name of a run in tables and pictures
std::string runs_note(const std::string& name);    // "; runs has a, b, c": the known runs, after the nearest; empty for a path
// Error: no run file has this path. It names the nearest run file next to it, in apps/configs or in the installation.
void check_run_file(const std::string& path);
// The config with the full paths of the files that it names, so the run continues from any folder; unknown ones are unchanged.
TrainConfig with_found_files(TrainConfig config);

// ---- The record
// The keys that shape the model, or all that cannot change while a run continues, such as the seed.
enum class Compare { model, training };
// "config" has these keys with their resolved values, in YAML; "following" the model keys with derived values, as the user gave them;
// "tokenizer" a hash.
Metadata provenance(const TrainConfig& config, const Tokenizer* tokenizer, Compare keys);
// Under the name "config" or "following", also of older versions. Errors start with `source`: not YAML.
Settings settings_in(const Metadata& metadata, const char* name, const std::string& source = "metadata");
// The first key with a different value in these metadata, as "lr: 0.001, not 0.01", or a line about another tokenizer; empty if they
// agree. A key that only one of them has is not compared: the choice that makes it meaningful is.
std::string difference(const Metadata& was, const TrainConfig& config, const Tokenizer* tokenizer, Compare keys);
bool fits_tokenizer(const Metadata& metadata, const Tokenizer& tokenizer);  // true also if the metadata name none

// ---- The folder
constexpr const char *kModelFile = "model.safetensors", *kFailureFile = "failed.txt";

struct RunRequest {
  std::string folder;
  TrainConfig config;
};
// From a run file, or from the config.yaml of a run by its folder or name. Errors: as for load_config.
RunRequest request_run(const std::string& file_or_run, const std::vector<std::string>& overrides);

// The chat template of an imported model, in Jinja. Its markers select one of our templates (the key `chat`), and an export writes it back.
struct ImportedTemplate {
  std::string file = {};    // chat_template.jinja, byte for byte
  std::string member = {};  // chat_template of an older tokenizer_config.json, as JSON: a text, or a list of {"name", "template"}
  bool empty() const { return file.empty() && member.empty(); }
};
inline constexpr const char *kTemplateFile = "chat_template.jinja", *kTemplateMember = "chat_template";
ImportedTemplate read_template(const std::string& run_folder);  // errors: unreadable, or other JSON

// The parts of a new run that its config does not have.
struct RunParts {
  const Tokenizer* tokenizer = nullptr;  // null if imported without one
  std::vector<std::string> labels = {};
  ImportedTemplate chat = {};
  std::string init = {};  // a hash of the weights that it starts from
};

bool ended_early(const TrainConfig& config, const TrainState& state);  // true if patience ran out at this evaluation

// The ids that end a text of this run: `ends`, and after its first the token that ends an answer, if the run learned conversations.
std::vector<int64_t> with_answer_end(std::vector<int64_t> ends, const TrainConfig& config, const Tokenizer& tokenizer);

class RunFolder {
 public:
  // Continues from the newest sound checkpoint, if any. Nothing is written before begin(). Errors: that has a different key, tokenizer,
  // init or more steps, or is of an older version; none is sound; a trained model without checkpoints; a different process trains here.
  static RunFolder to_train(const RunRequest& request);
  // To read, by its folder or name. Error: the folder does not exist, or one of its files is missing or damaged.
  enum class Vocabulary { needed, optional };  // a model that was imported without a tokenizer has none
  static RunFolder open(const std::string& path_or_name, Vocabulary vocabulary = Vocabulary::needed);

  const std::string& path() const { return path_; }
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }
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

  // The weights after the `last` step, at the `best` evaluation, or of a step, also during training. Errors: no such checkpoint; a damaged
  // file; weights of a different model or tokenizer than config.yaml and tokenizer.json describe.
  SafetensorsFile open_weights(const std::string& which = "last") const;
  // The model with these weights. Errors also: missing, surplus or misshapen tensors, each named.
  Model load_model(Device device, const std::string& which = "last", Dtype dtype = Dtype::f32) const;

 private:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  void read();
  void check_place() const;
  void continue_with(const TrainConfig& asked);
  std::string other_files(const TrainConfig& asked) const;
  Metadata metadata(Compare keys) const;
  std::optional<SafetensorsFile> find_weights(const std::string& which) const;

  std::string path_;
  std::optional<FolderLock> lock_ = {};  // if it trains
  TrainConfig config_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<std::string> labels_ = {};
  std::string init_ = {};                       // RunParts::init
  std::string old_keys_ = {};                   // for config.yaml, in a run that continues
  std::optional<SafetensorsFile> newest_ = {};  // its newest sound checkpoint
};

// ---- A start from another run, the key `init` (init.cpp)
// The path may be empty. Keys of model and tokenizer that are not given come from init. Errors: as for load_config; an unreadable init.
TrainConfig load_run_file(const std::string& path, const std::vector<std::string>& overrides = {});
// The model that training would have, for plans. The vocabulary size comes from the tokenizer of the run if `file` is its config.yaml, else
// from the config, from the tokenizer of `init` or from the data.
ModelConfig planned_model(const TrainConfig& config, const std::string& file);
std::string hash_of_init(const std::string& init);  // hashes its weights; error: they cannot be opened

class InitSource {
 public:
  // Errors: as for RunFolder::open_weights; the run wants a different end of documents than the tokenizer has.
  explicit InitSource(const TrainConfig& config);

  // Null if the new run asks for a different one.
  const std::shared_ptr<const Tokenizer>& tokenizer() const { return kept_tokenizer_; }
  // Comes with the tokenizer. A run that learns conversations has one of ours instead.
  const ImportedTemplate& kept_template() const { return template_; }
  std::string hash() const { return weights_->hash(); }

  // Gives each parameter the tensor of its name. A table of positions takes the rows up to the shorter length; a table of tokens, if the
  // tokenizers differ, the rows of tokens that both write alike (match_tokens); the head of another family, or of other classes, nothing.
  // Parameters without a tensor keep their sampled values, and the returned lines name them. Errors, with the file: a wrong shape; no
  // parameter found; a different tokenizer, if the old one is unknown.
  std::string load(Model& model, const Tokenizer& tokenizer) const;

 private:
  std::shared_ptr<const SafetensorsFile> weights_;
  std::shared_ptr<const Tokenizer> old_tokenizer_, kept_tokenizer_;
  ImportedTemplate template_;
  bool has_other_family_ = false, names_other_tokenizer_ = false;
};

}  // namespace ricci::apps
