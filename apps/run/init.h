// A start from the weights of another run, the key `init`. Its keys of model and tokenizer become defaults of the new run, and its weights
// come by name.
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

// The settings, after the keys of model and tokenizer of choices.init. `choices`: of these settings. Error: an unreadable init.
Settings with_init_keys(const Settings& settings, const TrainConfig& choices);
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
