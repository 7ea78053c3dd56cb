// The weights that a new run starts from (`init` in a run file).
#pragma once
#include <map>
#include <memory>
#include <string>

#include "apps/run/init/init_keys.h"
#include "core/files/safetensors.h"
#include "data/tokenizers/tokenizer.h"
#include "models/model.h"

namespace ricci::apps {

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
