// Where a training stands, as a file. checkpoints/step-00001234.safetensors holds everything that the next step depends on
// beside the config and the text: the parameters under their own names (f32 where bf16 is trained: the masters), the state
// of the optimizer as optimizer.NAME, and numbers as metadata: steps, the random state, the best evaluation. The position
// in the data is the step, as a batch is a function of its number. A checksum covers the file.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/files/safetensors.h"
#include "models/model.h"
#include "models/training/optimizer.h"

namespace ricci {

struct TrainState {
  int64_t step = 0;  // steps done
  int64_t best_step = -1;
  double best_loss = std::numeric_limits<double>::infinity();  // lowest nats per token of validation text, after best_step
  uint64_t text_hash = 0;                                      // Corpus::hash, to recognise another text

  // Notes an evaluation after this step. True: it is the best so far.
  bool improves(double val_loss);
};

// The prefix of what is no parameter in a checkpoint.
inline constexpr const char* kOptimizerPrefix = "optimizer.";

// Writes all of it, with the random state of this thread. Errors: those of save_checked_safetensors.
void save_checkpoint(const std::string& path, Model& model, Optimizer& optimizer, const TrainState& state);

// Fills the model and the optimizer in place, on whatever device they are, and sets the random state of this thread.
// Errors name the file and the tensor that is missing, surplus, or of another shape or dtype.
TrainState load_checkpoint(const std::string& path, Model& model, Optimizer& optimizer);

// Every parameter of the model from the file; what a checkpoint holds beside them is passed over. Errors name the file and
// the tensor that is missing, surplus or misshapen.
void load_weights(Model& model, const std::string& path);

// Only the evaluation and step numbers.
TrainState read_train_state(const SafetensorsFile& file);

// The checkpoints of a run.
class Checkpoints {
 public:
  explicit Checkpoints(std::string folder) : folder_(std::move(folder)) {}

  std::string path(int64_t step) const;
  std::vector<int64_t> steps() const;  // there is a file of these, rising; empty where there is no folder

  // The newest whose bytes are those that were written; empty where there is none at all. `warn` gets one line
  // when newer ones are damaged. Error: there are some, but none is sound.
  std::string newest_sound(const std::function<void(const std::string& line)>& warn) const;

  // Keeps the last `count` up to step, and the best; removes the others, those beyond step included.
  void prune(const TrainState& state, int64_t count) const;

 private:
  std::string folder_;
};

}  // namespace ricci
