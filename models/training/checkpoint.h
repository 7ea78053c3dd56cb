// The state of training as a file, checkpoints/step-00001234.safetensors: the parameters by name (for bf16 their f32 masters), the
// optimizer's state as optimizer.NAME, and as metadata the steps, the random state, the best evaluation and the position in the data. A
// checksum covers the file. A resumed run equals an uninterrupted one bit for bit. Five conditions ensure this:
//   1. the file contains everything that the next step depends on, except config and text    checkpoint.cpp, tensors_of and metadata_of
//   2. a batch is a function of the seed and the step, or of the saved position in the data  data/feeds/feed.cpp
//   3. dropout is a function of the seed, the step, the op and the element                   train_step.cpp, random_state_at; core/philox.h
//   4. sums have a fixed order for any number of threads                                     core/cpu/parallel.h
//   5. a file is replaced in one step: after a kill, the old or the new file exists          core/files/file.cpp
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
  int64_t step = 0;  // finished steps
  int64_t best_step = -1;
  double best_loss = std::numeric_limits<double>::infinity();  // lowest nats per token of the validation text, after best_step
  uint64_t text_hash = 0;                                      // Corpus::hash, to detect a different text
  int64_t schedule_steps = 0;                                  // the step at which the schedule ends
  bool awaits_evaluation = false;  // interrupted before the evaluation that follows this step: a resumed run evaluates first
  std::string data_place = {};     // the position of the next data; empty if it follows from the step

  // Records the loss of an evaluation after this step if it is the lowest so far.
  void note_evaluation(double val_loss) {
    if (!(val_loss < best_loss)) return;
    best_loss = val_loss;
    best_step = step;
  }
};

inline constexpr int64_t kMaxSteps = int64_t{1} << 31;         // token counts then fit into 64 bits
inline constexpr const char* kOptimizerPrefix = "optimizer.";  // names with this prefix are not parameters

// Saves the model, the optimizer and the state, with the random state of this thread and the metadata in `more`. Errors: as for
// save_safetensors.
void save_checkpoint(const std::string& path, Model& model, Optimizer& optimizer, const TrainState& state, const Metadata& more = {});

// Loads a checkpoint into the model and the optimizer, and sets the random state of this thread. Errors name the file and the wrong tensor.
TrainState load_checkpoint(const SafetensorsFile& file, Model& model, Optimizer& optimizer);
TrainState read_train_state(const SafetensorsFile& file);  // reads no tensors

// Sends the values of rank 0 to every rank. Every rank has built the same model and optimizer, but only rank 0 has sampled, imported or
// loaded values.
void share_training(Ranks& ranks, Model& model, Optimizer& optimizer, TrainState& state);

NamedTensors weights_of(Model& model);  // the unrounded parameters
// Loads every parameter of the model from a weights file or a checkpoint. Errors name the tensor that is missing, unknown or of the wrong
// shape.
void load_weights(Model& model, const SafetensorsFile& file);

// The checkpoints of a run. A running training process can add and remove files at any time; an open file stays readable.
struct Checkpoints {
  std::string folder;

  static std::string name_of(int64_t step);
  std::string path(int64_t step) const { return folder + "/" + name_of(step); }
  std::vector<int64_t> steps() const;  // the steps with a checkpoint, ascending; empty if the folder does not exist
  // Returns the newest undamaged checkpoint, or nullopt if the run has none. `warn` receives a line if newer ones are damaged. Error: all
  // checkpoints are damaged.
  std::optional<SafetensorsFile> newest_sound(const std::function<void(const std::string& line)>& warn) const;
  // Keeps the last `count` checkpoints up to the current step, and the best one; removes all others, including later ones.
  void prune(const TrainState& state, int64_t count) const;
};

}  // namespace ricci
