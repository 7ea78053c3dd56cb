// The lines and sample texts that a training run prints.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "apps/run/corpus.h"
#include "apps/run/run_folder.h"
#include "cuda/ranks/ranks.h"
#include "models/inference/evaluation.h"

namespace ricci::apps {

// Prints to stderr the warnings about a model trained with this context (models/config.h).
void print_warnings(const TrainConfig& config);
// Returns a line about a run that ends in its warm-up or continues past the end of its schedule; empty for other runs.
std::string schedule_note(const Schedule& schedule, int64_t steps, const TrainState& state);
// The schedule note, a note about bf16 on a CPU that is faster in f32, then
//   runs/a: 5,200 parameters, vocabulary 102, cpu on 2 threads
//   844,515 tokens to train, 93,836 to validate
std::string opening_lines(const RunFolder& run, const Corpus& corpus, Model& model, const TrainState& state, const Ranks& ranks);
// step 20: train 4.5581, validation 4.5873, perplexity 98.23 (93,835 tokens)
std::string evaluation_line(int64_t step, double train_loss, const Evaluation& evaluation, double unknown = 0);
// saved after 20 steps, 0.3 s of training: runs/a/model.safetensors
std::string closing_line(const RunFolder& run, const TrainState& state, double seconds);

// The size of the GPU's memory pool in bytes; nothing on other devices.
std::optional<int64_t> reserved_bytes(Device device);

// Returns a line if samples do not begin as the user expects. Error: the prompt is empty or contains characters outside the vocabulary.
std::string sample_note(const TrainConfig& config, const Corpus& corpus);
// A heading and a text that the model writes. An interruption ends the text.
std::string sample_block(const TrainConfig& config, const Corpus& corpus, const Model& model, int64_t step);

}  // namespace ricci::apps
