// A start from another run (`init` in a run file): its keys of model and tokenizer are defaults of the new run, and its weights come
// by name, because a user who changes a key of the model wants to keep everything that still fits.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "apps/run/run.h"

namespace ricci::apps {

// Loads a run file (an empty path: none). Errors: as for load_config; an init that cannot be opened.
TrainConfig load_run_file(const std::string& path, const std::vector<std::string>& overrides = {});

// For plans: the size of the vocabulary that a training would have, by the config, else by the tokenizer: the one of `init`, the one next
// to `file` if that is the config.yaml of a run, or the one made for the data.
int64_t planned_vocab(const TrainConfig& config, const std::string& file);

class InitSource {
 public:
  // Opens config.init. Errors: as for RunFolder::open_weights; the run wants another end of documents than the tokenizer has.
  explicit InitSource(const TrainConfig& config);

  // The tokenizer that the new run takes over; null if its key `tokenizer` has another value than in init.
  const std::shared_ptr<const Tokenizer>& tokenizer() const { return kept_tokenizer_; }
  // The imported template of conversations that comes with the tokenizer. A run that learns conversations learns ours instead.
  const ImportedTemplate& kept_template() const { return template_; }

  // Gives each parameter the tensor of its name: of a table of positions the rows up to the shorter length; of a table of tokens, if the
  // tokenizers differ, the rows that same_tokens names; no head of another family or of other classes. The rest stays as it was drawn.
  // Returns lines about that. Errors name the file: another shape; nothing fits; another tokenizer, and the old one is not there.
  std::string load(Model& model, const Tokenizer& tokenizer) const;

 private:
  std::shared_ptr<const SafetensorsFile> weights_;
  std::shared_ptr<const Tokenizer> old_tokenizer_, kept_tokenizer_;
  ImportedTemplate template_;
  bool has_other_family_ = false, names_other_tokenizer_ = false;
};

}  // namespace ricci::apps
