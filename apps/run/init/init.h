// The start from another run (`init` in a run file): its weights, and the keys that say what its model is.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/run/config/train_config.h"
#include "core/files/safetensors.h"
#include "data/tokenizers/tokenizer.h"
#include "models/model.h"

namespace ricci::apps {

// The place that `init` names. The name of a run, or the path of a run folder, of its model.safetensors or of one of its checkpoints is
// that run; any other file is weights alone.
struct InitPlace {
  std::string run = {}, which = "last";  // as in RunFolder::load_model; an empty run: weights alone
  std::string file = {};
};
InitPlace init_place(const std::string& init);

// A key that `init` was trained with.
struct InitKey {
  std::string value;
  std::string said;  // the same, unless the value follows from the sizes of the model or from the tokenizer: then the user's word, such as
                     // "null" of model.ff
};

// The keys of model and tokenizer that `init` was trained with: from the config.yaml of a run, or from what a file
// of weights tells. Empty for a file that tells nothing. Errors: those of load_config, an unreadable file.
std::map<std::string, InitKey> keys_in_init(const std::string& init);

// The same as assignments for load_config, without those that follow from a tokenizer that is listed in init_changes. What follows from
// the sizes of the model follows from those of the new one. Empty where there is no init.
std::vector<std::string> keys_of_init(const TrainConfig& config);

// Error: the first key of this run that is not as in `init`, and not in init_changes, the end of documents (eos) being a part of the
// tokenizer; or a name in init_changes that is no such key;
// a Dispatcher whose number of levels follows a context that needs another number.
// Dropout may always differ: it changes how a model is trained, and not what it computes.
void check_changes(const TrainConfig& config);

bool lists_change(const TrainConfig& config, const std::string& key);

// The weights that a new run starts from.
class InitSource {
 public:
  // Opens config.init. Errors: those of check_changes and of RunFolder::open_weights.
  explicit InitSource(const TrainConfig& config);

  // The tokenizer that the new run takes over. Null: it makes its own, as the key tokenizer says.
  const std::shared_ptr<const Tokenizer>& tokenizer() const { return kept_tokenizer_; }

  // Gives every parameter of the model its value from `init`. What init_changes lets differ starts as the model has drawn it:
  //   model.ctx   the first rows of the position table are taken over; a longer table ends with drawn ones
  //   tokenizer   rows of tok and head are taken over for tokens that both vocabularies write alike and once; the others are drawn
  //   model.family, model.classes, model.tie   the head is drawn;   model.head_bias   its bias;   model.positions   the table
  // Returns a line about it. Errors name the file and the tensor that is missing, surplus or misshapen; a file that tells of another
  // tokenizer, where init_changes does not list it.
  std::string load(Model& model, const Tokenizer& tokenizer) const;

 private:
  bool changed(const std::string& key) const;
  bool drawn_anew(const std::string& path) const;
  Tensor value_of(const std::string& path, const Tensor& drawn, const Tokenizer& tokenizer, std::string& notes) const;

  TrainConfig config_;
  std::map<std::string, InitKey> before_;  // the keys of init
  std::shared_ptr<const Tokenizer> old_tokenizer_, kept_tokenizer_;
  std::shared_ptr<const SafetensorsFile> weights_;
};

}  // namespace ricci::apps
