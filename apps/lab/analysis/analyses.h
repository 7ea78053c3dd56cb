// ricci-analyze: analyses of what trained models do with text (after Subramanian et al. 2020). In the order to read: text_runs.h opens
// runs and their texts; each analysis is a file of its own, with its options and its numbers here; sample_metrics.h has the
// numbers about texts that samples.cpp needs. Every analysis ends in a Report (apps/lab/report/report.h).
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/lab/analysis/text_runs.h"
#include "apps/lab/report/report.h"
#include "apps/run/options.h"
#include "apps/run/train_config.h"
#include "core/fields.h"
#include "core/tensor.h"
#include "models/inference/sampling.h"
#include "models/planning/plan.h"

namespace ricci::apps {

// ---- memory.cpp. Perplexity against the memory of training (Subramanian et al. 2020, figure 3), of trained runs and of run files.

struct MemoryOptions {
  std::vector<std::string> runs;  // run folders and run files; a run file has no perplexity
  std::optional<int64_t> batch = {};
  uint64_t measured = uint64_t{2} << 30;  // bytes; a step that holds more by its plan is not taken, and its planned memory is shown
  bool evaluate = false;
};
inline void visit_fields(MemoryOptions& o, const Fields& field) {
  field("batch", o.batch, "sequences of the step; as in each run if not given").at_least(1);
  field("evaluate", o.evaluate, "compute the loss over the validation text, in place of the recorded one");
}

struct MemoryRow {
  std::string name, family;
  StepMemory memory;
  bool is_planned = false;
  std::optional<double> loss = {};  // nats per token
  std::string loss_from = {};       // "recorded", "evaluated"
};

// The memory of a step of the config: measured if it fits, else planned.
MemoryRow memory_row(const std::string& name, const TrainConfig& config, const MemoryOptions& options);

// Errors: as for RunFolder::open, load_config and plan_step.
Report analyse_memory(const MemoryOptions& options);

// ---- frequency.cpp. How well models predict rare and frequent tokens (Subramanian et al. 2020, figures 5 and 6): the negative log
// likelihood in bins of equal token mass, ordered by how often a token is in the training text.

struct FrequencyOptions {
  TextRunOptions text;
  int64_t bins = 10, tokens = 50'000, training_tokens = 20'000'000;
};
inline void visit_fields(FrequencyOptions& o, const Fields& field) {
  field("bins", o.bins, "bins of equal token mass").at_least(1);
  field("tokens", o.tokens, "tokens of the text to score, at most").at_least(1);
  field("training_tokens", o.training_tokens, "tokens of the training text to count, at most").at_least(1);
}

struct FrequencyBin {
  double tokens = 0;         // scored ones, the same number in each bin; a kind of token may be in several bins with a share in each
  double nats = 0;           // mean
  int64_t kinds = 0;         // kinds of tokens that are in the bin, as a whole or with a share
  int64_t max = 0, min = 0;  // how often they are in the training text
};

// A kind of token: how often it is in the training text, how often it was scored, and the sum of its nats.
struct TokenScore {
  int64_t training = 0, scored = 0;
  double nats = 0;
};
// The most frequent tokens first; tokens that are equally frequent in the order of their ids.
std::vector<FrequencyBin> frequency_bins(std::span<const TokenScore> scores, int64_t bins);

// Errors: as for open_text_runs; no token is scored.
Report analyse_frequency(const FrequencyOptions& options);

// ---- shuffle.cpp. How far back the order of tokens matters (Subramanian et al. 2020, figure 4): the first half of every window is
// shuffled, and the negative log likelihood of the second half is compared with that in the true order, by the distance from the
// shuffled half.

struct ShuffleOptions {
  TextRunOptions text;
  int64_t windows = 64;
  uint64_t seed = 1;
};
inline void visit_fields(ShuffleOptions& o, const Fields& field) {
  field("windows", o.windows, "windows to read, at most, spread over the text").at_least(1);
  field("seed", o.seed, "seed of the shuffling");
}

// The ids of a window with the first `shuffled` of them in a random order, a function of seed and window.
std::vector<int64_t> with_shuffled_start(std::span<const int64_t> ids, int64_t shuffled, uint64_t seed, uint64_t window);

// Means over windows at one distance, counted from 1: the first token after the shuffled ones.
struct ShuffleRow {
  int64_t distance = 0, last_distance = 0;   // to the first and the last token of the row
  double nats = 0, increase = 0, error = 0;  // in the true order; how much more after shuffling; its standard error over windows
};
// Rows from increases and nats [window x distance]: for every distance, or for ranges that grow by powers of two: 1, 2, 3-4, 5-8 ...
std::vector<ShuffleRow> shuffle_rows(std::span<const double> nats, std::span<const double> increases, int64_t distances, bool in_ranges);

// Errors: as for open_text_runs; a context below 4; a text without a whole window.
Report analyse_shuffle(const ShuffleOptions& options);

// ---- neighbours.cpp. Which chunks of a text are alike to a model (Subramanian et al. 2020, table 6): the nearest neighbours of chunks in
// the output of the blocks of a scale.

struct NeighboursOptions {
  TextRunOptions text;
  std::vector<int64_t> scales;
  int64_t queries = 4, nearest = 3, windows = 64;
};
inline void visit_fields(NeighboursOptions& o, const Fields& field) {
  field("scales", o.scales, "tokens of a chunk: 4,16; the coarse scales of the model if not given, 4 and 16 where it has none").at_least(1);
  field("queries", o.queries, "chunks whose neighbours are listed, at each scale").at_least(1);
  field("nearest", o.nearest, "neighbours of each").at_least(1);
  field("windows", o.windows, "windows of the text to compare, at most, spread over it").at_least(1);
}

// Chunks of one size as vectors.
struct Chunks {
  int64_t tokens = 0;    // per chunk
  bool is_mean = false;  // the mean of the vectors of its tokens: the model has no blocks at this scale
  int64_t per_window = 0, width = 0;
  std::vector<double> vectors;  // [chunk width], window by window; without their mean over all chunks, with length 1
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

// Errors: as for open_text_runs; a scale that does not fit into the context, or that is finer than the model's; fewer than two windows.
Report analyse_neighbours(const NeighboursOptions& options);

// ---- completions.cpp. Which tokens a coarse model expects in the next cell (Subramanian et al. 2020, table 7).

struct CompletionsOptions {
  TextRunOptions text;
  std::string given;
  int64_t places = 6, shown = 4;
  std::optional<int64_t> top;
};
inline void visit_fields(CompletionsOptions& o, const Fields& field) {
  field("text", o.given, "a text to continue; places of the run's text if not given");
  field("places", o.places, "places of the text").at_least(1);
  field("top", o.top, "tokens to list; the tokens of a cell if not given").at_least(1);
  field("shown", o.shown, "cells of the text in front to show").at_least(1);
}

struct Expected {
  int64_t id = 0;
  double probability = 0;
};
// The most probable tokens by their logits, the most probable first; equal ones in the order of their ids.
std::vector<Expected> most_probable(std::span<const double> logits, int64_t count);

// Errors: as for open_text_runs; a text shorter than a cell, and one more where the next one is given.
Report analyse_completions(const CompletionsOptions& options);

// ---- samples.cpp. What models write, in numbers (Subramanian et al. 2020, table 5): repeated n-grams, BLEU, the perplexity of what they
// write under a Kneser-Ney 4-gram model and under another trained model, and the time per sequence.

struct SamplesOptions {
  TextRunOptions text;
  int64_t prompts = 8, prompt = 64, tokens = 256, completions = 3, timed = 3, shown = 2, training_tokens = 5'000'000;
  std::string judge;  // it scores with its last checkpoint, at its own context
  Sampling sampling{.temperature = 0.7, .top_k = 40};
};
inline void visit_fields(SamplesOptions& o, const Fields& field) {
  field("prompts", o.prompts, "places of the text to continue").at_least(1);
  field("prompt", o.prompt, "tokens of each prompt").at_least(1);
  field("tokens", o.tokens, "tokens to write after each").at_least(1);
  field("completions", o.completions, "texts after each prompt").at_least(1);
  field("timed", o.timed, "sequences to write alone, for the time").at_least(0);
  field("shown", o.shown, "prompts of which the first text is shown").at_least(0);
  field("training_tokens", o.training_tokens, "tokens of the training text that the 4-gram model learns from, at most").at_least(1);
  field("judge", o.judge, "another run, under which the samples are scored too");
  visit_fields(o.sampling, field);
}

// Errors: as for open_text_runs, KneserNey and the check of a Sampling; a text too short for the prompts and what follows them.
Report analyse_samples(const SamplesOptions& options);

// ---- masks.cpp. Which tokens and cells the queries of a model see, as pictures (Subramanian et al. 2020, figure 1), for trained runs
// and for run files.

struct MasksOptions {
  RunOptions run;  // run folders and run files, and keys of them
  std::optional<int64_t> tokens;
};
inline void visit_fields(MasksOptions& o, const Fields& field) {
  field("tokens", o.tokens, "tokens of the text, up to the context; the context if not given, but at most 256").at_least(1);
}

// Errors: as for load_config; a mixer without attention.
Report analyse_masks(const MasksOptions& options);

}  // namespace ricci::apps
