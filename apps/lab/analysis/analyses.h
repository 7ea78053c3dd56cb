// ricci-analyze: what trained models do with text (after Subramanian et al. 2020). In the order to read: text_runs.h opens runs and their
// texts; each analysis is a file of its own, with its options and what it finds here; kneser_ney.h and sample_metrics.h have the numbers
// about texts that samples.cpp asks for. Every analysis ends in a Report (apps/lab/report/report.h).
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/lab/analysis/text_runs.h"
#include "apps/lab/report/report.h"
#include "apps/run/config/train_config.h"
#include "core/tensor.h"
#include "models/inference/sampling.h"
#include "models/planning/plan.h"

namespace ricci::apps {

// ---- memory.cpp. Perplexity against the memory of training (Subramanian et al. 2020, figure 3), of trained runs and of run files.

struct MemoryOptions {
  std::vector<std::string> runs;          // run folders and run files; a run file has no perplexity
  int64_t batch = 0;                      // sequences of a step; 0: as in each run
  uint64_t measured = uint64_t{2} << 30;  // bytes: a step that holds more by its plan is not taken, and its memory is that of the plan
  bool evaluate = false;                  // compute the loss of the last checkpoint over the validation text, in place of the recorded one
};

struct MemoryRow {
  std::string name, family;
  StepMemory memory;
  bool is_planned = false;
  std::optional<double> loss;  // nats per token
  std::string loss_from;       // "best of metrics.jsonl"
};

// The memory of a step of the config: measured where it fits, else planned.
MemoryRow memory_row(const std::string& name, const TrainConfig& config, const MemoryOptions& options);

// Errors: those of RunFolder::open, load_config and plan_step.
Report analyse_memory(const MemoryOptions& options);

// ---- frequency.cpp. How well models predict rare and frequent tokens (Subramanian et al. 2020, figures 5 and 6): the negative log
// likelihood in bins of equal token mass, ordered by how often a token is in the training text.

struct FrequencyOptions {
  TextRunOptions text;
  int64_t bins = 10;
  int64_t tokens = 50'000;               // of the text that are scored, at most
  int64_t training_tokens = 20'000'000;  // of the training text that are counted, at most
};

struct FrequencyBin {
  double tokens = 0;         // scored ones, the same number in each bin; a kind of token may lie in several bins with a share in each
  double nats = 0;           // mean
  int64_t kinds = 0;         // of tokens that lie in the bin, as a whole or with a share
  int64_t max = 0, min = 0;  // how often they are in the training text
};

// A kind of token: how often it is in the training text, how often it was scored, and the sum of its nats.
struct TokenScore {
  int64_t training = 0, scored = 0;
  double nats = 0;
};
// The most frequent tokens first; tokens that are equally frequent in the order of their ids.
std::vector<FrequencyBin> frequency_bins(std::span<const TokenScore> scores, int64_t bins);

// Errors: those of open_text_runs; no token is scored.
Report analyse_frequency(const FrequencyOptions& options);

// ---- shuffle.cpp. How far back the order of tokens matters (Subramanian et al. 2020, figure 4): the first half of every window is
// shuffled, and the negative log likelihood of the second half compared with that in the true order, by the distance from what was
// shuffled.

struct ShuffleOptions {
  TextRunOptions text;
  int64_t windows = 64;
  uint64_t seed = 1;
};

// The ids of a window with the first `shuffled` of them in a random order, a function of seed and window.
std::vector<int64_t> with_shuffled_start(std::span<const int64_t> ids, int64_t shuffled, uint64_t seed, uint64_t window);

// Means over windows at one distance, counted from 1: the first token behind the shuffled ones.
struct ShuffleRow {
  int64_t distance = 0, last_distance = 0;   // of the first and the last token of the row
  double nats = 0, increase = 0, error = 0;  // in the true order; how much more after shuffling; its standard error over windows
};
// Rows from increases and nats [window x distance]: for every distance, or for ranges that grow by powers of two: 1, 2, 3-4, 5-8 ...
std::vector<ShuffleRow> shuffle_rows(std::span<const double> nats, std::span<const double> increases, int64_t distances, bool in_ranges);

// Errors: those of open_text_runs; a context below 4; a text without a whole window.
Report analyse_shuffle(const ShuffleOptions& options);

// ---- neighbours.cpp. Which chunks of a text a model takes to be alike (Subramanian et al. 2020, table 6): the nearest neighbours of
// chunks by what the blocks of a scale make of them.

struct NeighboursOptions {
  std::string run;
  TextRunOptions text;
  std::vector<int64_t> scales;  // tokens of a chunk; empty: the coarse scales of the model, or 4 and 16 where it has none
  int64_t queries = 4, nearest = 3;
  int64_t windows = 64;  // of the text that are compared, at most
};

// Chunks of one size as vectors.
struct Chunks {
  int64_t tokens = 0;    // of a chunk
  bool is_mean = false;  // of the vectors of its tokens: the model has no blocks at this scale
  int64_t per_window = 0, width = 0;
  std::vector<double> vectors;  // [chunk width], window by window; without their mean over all chunks, of length 1
  int64_t count() const { return static_cast<int64_t>(vectors.size()) / width; }
};

struct NearChunk {
  int64_t chunk = 0;
  double cosine = 0;
};
// The chunks of other windows with the largest cosines, the largest first; equal ones in the order of the text.
std::vector<NearChunk> nearest_chunks(const Chunks& chunks, int64_t chunk, int64_t count);

// Takes the mean over all chunks away, and divides each by its length; a vector of zeros stays one.
void centre(Chunks& chunks);

// Errors: those of open_text_run; a scale that does not fit into the context, or that is finer than the model's; fewer than two windows.
Report analyse_neighbours(const NeighboursOptions& options);

// ---- completions.cpp. Which tokens a coarse model expects in the next cell (Subramanian et al. 2020, table 7).

struct CompletionsOptions {
  std::string run, given;  // given: a text to continue; empty: places of the run's text
  TextRunOptions text;
  int64_t places = 6;
  int64_t top = 0;    // tokens to tell; 0: as many as a cell has
  int64_t shown = 4;  // cells of the text in front to show
};

struct Expected {
  int64_t id = 0;
  double probability = 0;
};
// The most probable tokens by their logits, the most probable first; equal ones in the order of their ids.
std::vector<Expected> most_probable(std::span<const double> logits, int64_t count);

// Errors: those of open_text_run; a text shorter than a cell, and one more where the next one is told.
Report analyse_completions(const CompletionsOptions& options);

// ---- samples.cpp. What models write, in numbers (Subramanian et al. 2020, table 5): repeated n-grams, BLEU, the perplexity of what they
// write under a Kneser-Ney 4-gram model and under another trained model, and the time per sequence.

struct SamplesOptions {
  TextRunOptions text;
  int64_t prompts = 8;                  // places of the text that are continued
  int64_t prompt = 64;                  // tokens that each sequence begins with
  int64_t tokens = 256;                 // tokens that are written behind them
  int64_t completions = 3;              // of each prompt
  int64_t timed = 3;                    // sequences that are written alone, for the time
  int64_t training_tokens = 5'000'000;  // that the n-gram model learns from, at most
  std::string judge;                    // a run whose last checkpoint, at its own context, scores the samples too; empty: none
  Sampling sampling{.temperature = 0.7, .top_k = 40};
};

// Errors: those of open_text_runs, of the sampling, of KneserNey; a text too short for the prompts and what follows them.
Report analyse_samples(const SamplesOptions& options);

// ---- masks.cpp. Which tokens and cells the queries of a model see, as pictures (Subramanian et al. 2020, figure 1), for trained runs
// and for run files.

struct MasksOptions {
  RunOptions run;      // a run folder or a run file, and keys of it
  int64_t tokens = 0;  // of the text; 0: the context, but at most 256; never more than the context
};

// Errors: those of load_config; a mixer without attention.
Report analyse_masks(const MasksOptions& options);

}  // namespace ricci::apps
