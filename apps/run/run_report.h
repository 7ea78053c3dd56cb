// The lines that ricci-train prints about a run, and ricci-plan about one that might be.
#pragma once
#include <optional>
#include <string>

#include "apps/run/corpus.h"
#include "apps/run/run.h"
#include "models/inference/evaluation.h"

namespace ricci::apps {

// runs/a: 5,200 parameters, vocabulary 102, cpu on 2 threads
// 844,515 tokens to train, 93,836 to validate; continues after step 250 of 2,000
std::string opening_line(const RunFolder& run, const Corpus& corpus, Model& model, const TrainState& state);

// The bytes that a process may have for a step on this device.
int64_t memory_of(Device device);

// Plans a step of one of `ranks` processes before anything is computed. Returns a line if it takes more than a minute on this CPU, and one
// if f32 would be faster here than bf16. Error: it needs more than `memory` bytes; the message has the largest batch that fits.
std::string check_step(const TrainConfig& config, int64_t memory, int64_t ranks = 1);

// about 17:03:10, of which 1:20:00 for 8 evaluations; 50:12 to the next one
// The time that is left of a run after `done` steps, at this speed of a step. An evaluation computes the forward alone. A token of it is
// taken to cost a third of what a token of a step costs. Empty if less than a minute is left.
std::string expected_line(const TrainConfig& config, int64_t done, double seconds_per_step, int64_t evaluation_tokens);

// On stderr, a line each: what a user should know of a model that is trained with this context (models/config.h).
void print_warnings(const TrainConfig& config);

// step 20: train loss 4.5581, validation loss 4.5873 over 93,835 tokens, perplexity 98.23
// A classifier: step 20: train loss 0.6931, validation loss 0.6870 over 500 documents, accuracy 0.5420
std::string evaluation_line(int64_t step, double train_loss, const Evaluation& evaluation);

// The bytes that the GPU's memory pool holds; nothing on other devices.
std::optional<int64_t> reserved_bytes(Device device);

// saved after 20 steps, 0.3 s of training: runs/a/model.safetensors
std::string closing_line(const RunFolder& run, const TrainState& state, double seconds);
// On a GPU: at most 12.1 GiB of tensors, 14.0 GiB reserved
std::string memory_line(int64_t peak_bytes, int64_t reserved_bytes);

// Puts the end of the learning rate's schedule into the config: a schedule that ends elsewhere than at the last step is written to
// config.yaml. Returns a line where the run is to go on past its end, else nothing.
std::string follow_schedule(TrainConfig& config, const TrainState& state);

// Checks the prompt of the samples before the training, not after it. The default prompt is the end of a line, the first question of
// conversations, or the start of a document if an end token separates documents. Not every vocabulary has the end of a line: then the first
// token of the validation text takes its place, and a line about that is returned, else an empty one. Error: another prompt that is empty
// or not made of the vocabulary.
std::string ready_prompt(TrainConfig& config, const Corpus& corpus);

// The text that the config asks for, written by the model as it is now, under a heading. An interruption ends it.
std::string sample_block(const RunFolder& run, const Corpus& corpus, const Model& model, int64_t step);

}  // namespace ricci::apps
