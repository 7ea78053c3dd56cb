// The state of a training as a file. checkpoints/step-00001234.safetensors holds everything that the next step depends on beside the
// config and the text: the parameters under their own names (for bf16 their f32 masters), the optimizer's state as optimizer.NAME, and
// as metadata steps, the random state, the best evaluation and, unless the step gives it, the place in the data. A checksum covers the
// file.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/files/safetensors.h"
#include "cuda/ranks/ranks.h"
#include "models/model.h"
#include "models/training/optimizer.h"
#include "models/training/parted_tensor.h"

namespace ricci {

struct TrainState {
  int64_t step = 0;  // steps done
  int64_t best_step = -1;
  double best_loss = std::numeric_limits<double>::infinity();  // lowest nats per token of validation text, after best_step
  uint64_t text_hash = 0;                                      // Corpus::hash, to recognise another text
  int64_t schedule_steps = 0;                                  // where the learning rate's schedule ends; 0 in an old file, which lacks it
  // An interruption came before the evaluation after this step, which is made first when the training goes on.
  bool awaits_evaluation = false;
  std::string data_place = {};  // where the order of the data goes on; empty where it follows from the step

  // Notes an evaluation after this step. Returns true if it is the best so far.
  bool improves(double val_loss);
};

// More steps than any training takes; with it numbers of tokens stay inside of 64 bits.
inline constexpr int64_t kMaxSteps = int64_t{1} << 31;

// The prefix of what is no parameter in a checkpoint.
inline constexpr const char* kOptimizerPrefix = "optimizer.";

// Writes all of it, with the random state of this thread and the metadata in `more`. Errors: as for save_checked_safetensors.
void save_checkpoint(const FilePlace& place, Model& model, Optimizer& optimizer, const TrainState& state, const Metadata& more = {},
    Ranks& ranks = Ranks::alone());

// Fills the model and the optimizer in place, on whatever device they are, and sets the random state of this thread.
// Errors name the file and the tensor that is missing, surplus, or of another shape or dtype.
TrainState load_checkpoint(const SafetensorsFile& file, Model& model, Optimizer& optimizer, Ranks& ranks = Ranks::alone());
inline TrainState load_checkpoint(const FilePlace& place, Model& model, Optimizer& optimizer) {
  return load_checkpoint(SafetensorsFile(place), model, optimizer);
}

// ---- Several ranks. Rank 0 alone has files, and its file is the one that one process writes. While rank 0 writes or reads, the others
// call these:
void hand_over_checkpoint(Model& model, Optimizer& optimizer, Ranks& ranks);
void take_checkpoint(Model& model, Optimizer& optimizer, Ranks& ranks);

// The parameters as they were before rounding. Parts of them may be in the optimizer.
std::vector<TensorSource> weights_of(Model& model);
std::vector<TensorSource> weights_of(Model& model, Optimizer& optimizer, Ranks& ranks);

// Rank 0's state on every rank.
TrainState state_from_first(Ranks& ranks, const TrainState& state);

// Every parameter of the model from the file; what a checkpoint holds beside them is passed over. Errors name the file and
// the tensor that is missing, surplus or misshapen.
void load_weights(Model& model, const SafetensorsFile& file);
inline void load_weights(Model& model, const FilePlace& place) { load_weights(model, SafetensorsFile(place)); }

// Only the numbers about steps and evaluations. Error: a number is missing or cannot be.
TrainState read_train_state(const SafetensorsFile& file);

// The checkpoints of a run: the folder `name` inside the run's folder. A training that is at work may add and remove some at any
// time; a file that has been opened stays readable.
class Checkpoints {
 public:
  // Error: a file is in the place of the folder, or it cannot be opened.
  Checkpoints(const Folder& run, const std::string& name) : path_(run.path() + "/" + name), folder_(run.find(name)) {}

  static std::string name_of(int64_t step);
  FilePlace place(int64_t step) const;  // error: there is no folder
  // There is a file of these, rising; empty where there is no folder. Error: the folder cannot be listed.
  std::vector<int64_t> steps() const;

  // The checkpoint of that step, or nothing.
  std::optional<SafetensorsFile> open(int64_t step) const;
  // The newest whose bytes are as they were written, or nullopt if there is no checkpoint. `warn` gets one line
  // when newer ones are damaged. Error: there are some, but none is sound.
  std::optional<SafetensorsFile> newest_sound(const std::function<void(const std::string& line)>& warn) const;

  // Keeps the last `count` up to step, and the best; removes the others, those beyond step included.
  void prune(const TrainState& state, int64_t count) const;

 private:
  std::string path_;
  std::optional<Folder> folder_;
};

}  // namespace ricci
