// runs/NAME: what a run leaves behind.
//   config.yaml         the resolved config: ricci-train runs/NAME/config.yaml name=again trains the same model again
//   tokenizer.json      the vocabulary
//   metrics.jsonl       one line per record
//   model.safetensors   the parameters, under the names of models_spec
#pragma once
#include <memory>
#include <string>

#include "apps/shared/train_config.h"
#include "data/tokenizer.h"
#include "models/model.h"

namespace ricci::apps {

class RunFolder {
 public:
  // Makes the folder of a new run. Error: it holds a trained model already, or cannot be made.
  static RunFolder create(const TrainConfig& config, const Tokenizer& tokenizer);
  // Opens what a run left. Error: no such folder, or one of its files is missing or damaged.
  static RunFolder open(const std::string& path);

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  const TrainConfig& config() const { return config_; }
  const std::shared_ptr<const Tokenizer>& tokenizer() const { return tokenizer_; }

  // Replaces model.safetensors as a whole; metadata: the step.
  void save_model(Model& model, int64_t step) const;
  // The trained model on `device`. Errors: missing, surplus or misshapen tensors, each named.
  Model load_model(Device device) const;

 private:
  std::string path_;
  TrainConfig config_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

// Every parameter of the model from the file. Errors name the file and the tensor that is missing, surplus or misshapen.
void load_weights(Model& model, const std::string& path);

}  // namespace ricci::apps
