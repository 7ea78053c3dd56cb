// The state of a training as a file. checkpoints/step-00001234.safetensors holds what the next step depends on, except the config and the
// text: the parameters under their own names (for bf16 their f32 masters), the optimizer's state as optimizer.NAME, and as metadata the
// steps, the random state, the best evaluation and, unless it follows from the step, the place in the data. A checksum covers the file.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/files/safetensors.h"
#include "cuda/device/device.h"
#include "cuda/ranks/ranks.h"
#include "models/model.h"
#include "models/training/optimizer.h"

namespace ricci {

struct TrainState {
  int64_t step = 0;  // steps done
  int64_t best_step = -1;
  double best_loss = std::numeric_limits<double>::infinity();  // lowest nats per token of validation text, after best_step
  uint64_t text_hash = 0;                                      // Corpus::hash, to recognise another text
  int64_t schedule_steps = 0;                                  // where the learning rate's schedule ends; 0 in an old file, which lacks it
  bool awaits_evaluation = false;  // an interruption came before the evaluation after this step, which a resumed training makes first
  std::string data_place = {};     // where the order of the data continues; empty if that follows from the step

  // Notes an evaluation after this step, if it is the best so far.
  void note_evaluation(double val_loss) {
    if (!(val_loss < best_loss)) return;
    best_loss = val_loss;
    best_step = step;
  }
};

inline constexpr int64_t kMaxSteps = int64_t{1} << 31;         // more than any training takes; numbers of tokens fit into 64 bits
inline constexpr const char* kOptimizerPrefix = "optimizer.";  // names in a checkpoint that begin with it are not parameters

// Writes all of it, with the random state of this thread and the metadata in `more`. Errors: as for save_safetensors.
void save_checkpoint(const std::string& path, Model& model, Optimizer& optimizer, const TrainState& state, const Metadata& more = {},
    const ToHost& copy = to_host);

// Fills the model and the optimizer in place, and sets the random state of this thread. Errors name the file and the tensor that does not
// fit.
TrainState load_checkpoint(const SafetensorsFile& file, Model& model, Optimizer& optimizer);
TrainState read_train_state(const SafetensorsFile& file);  // only the numbers about steps and evaluations

// Gives every rank all that a checkpoint of rank 0 would hold. Every rank has built the same model and optimizer; rank 0 has drawn,
// imported or loaded its own. One rank: does nothing.
void share_training(Ranks& ranks, Model& model, Optimizer& optimizer, TrainState& state);

NamedTensors weights_of(Model& model);  // the parameters before rounding
// Every parameter of the model from the file, which can be a checkpoint. Errors name the tensor that is missing, surplus or misshapen.
void load_weights(Model& model, const SafetensorsFile& file);

// The checkpoints of a run. A training at work can add and remove some at any time; a file that has been opened stays readable.
struct Checkpoints {
  std::string folder;

  static std::string name_of(int64_t step);
  std::string path(int64_t step) const { return folder + "/" + name_of(step); }
  std::vector<int64_t> steps() const;  // rising; none if there is no folder
  // The newest that is as it was written, or nothing if none was. `warn` gets a line if newer ones are damaged. Error: all are.
  std::optional<SafetensorsFile> newest_sound(const std::function<void(const std::string& line)>& warn) const;
  // Keeps the last `count` up to step, and the best; removes the others, those beyond step included.
  void prune(const TrainState& state, int64_t count) const;
};

}  // namespace ricci
