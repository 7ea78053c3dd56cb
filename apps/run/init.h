// The key `init`: a new run starts from the weights of a source run. The source's model and tokenizer keys become defaults, and its weights
// are copied by name.
#pragma once
#include <memory>
#include <string>

#include "apps/run/config.h"
#include "apps/run/imported_template.h"
#include "apps/run/train_config.h"
#include "core/files/safetensors.h"
#include "data/tokenizers/tokenizer.h"
#include "models/model.h"

namespace ricci::apps {

// Returns the settings, preceded by the model and tokenizer keys of choices.init. `choices`: the config made from these settings. Error:
// choices.init is unreadable.
Settings with_init_keys(const Settings& settings, const TrainConfig& choices);
// The config of the model that training would use, for plans. The vocabulary size comes from the run's tokenizer if `file` is its
// config.yaml, else from the config, the tokenizer of `init` or the data.
ModelConfig planned_model(const TrainConfig& config, const std::string& file);
std::string hash_of_init(const std::string& init);  // hashes the weights; error: they cannot be opened

class InitSource {
 public:
  // Errors: as for RunFolder::open_weights; the source's tokenizer does not end documents as `eos` requests.
  explicit InitSource(const TrainConfig& config);

  // The source's tokenizer; null if the new run requests a different one.
  const std::shared_ptr<const Tokenizer>& tokenizer() const { return kept_tokenizer_; }
  // The chat template of this tokenizer. A run that learns conversations uses one of our templates instead.
  const ImportedTemplate& kept_template() const { return template_; }
  std::string hash() const { return weights_->hash(); }

  // Copies the tensors into the parameters with the same names. For position tables, copies the rows up to the shorter length. For token
  // tables, if the tokenizers differ, copies the rows of equal tokens (match_tokens). The head of a different family or for different
  // classes is not copied. Parameters without a tensor keep their sampled values and are listed in the returned lines. Errors, with the
  // file: a tensor has the wrong shape; no parameter was found; the tokenizer differs, and the old one is unknown.
  std::string load(Model& model, const Tokenizer& tokenizer) const;

 private:
  std::shared_ptr<const SafetensorsFile> weights_;
  std::shared_ptr<const Tokenizer> old_tokenizer_, kept_tokenizer_;
  ImportedTemplate template_;
  bool has_other_family_ = false, names_other_tokenizer_ = false;
};

}  // namespace ricci::apps
