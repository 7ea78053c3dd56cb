// ricci analyze: analyses of trained models on text (after Subramanian et al. 2020). An analysis is a function from runs to a Report.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/lab/report/report.h"
#include "apps/run/options.h"
#include "apps/run/train_config.h"
#include "data/shards/tokens.h"
#include "models/inference/sampling.h"
#include "models/planning/plan.h"

namespace ricci::apps {

// The options of all analyses (apps/lab/analyze.cpp).
struct AnalysisOptions {
  RunOptions run = {};    // runs; memory and masks also accept run files, and masks also accepts keys
  TextOptions text = {};  // by default each run's validation text
  ModelOptions model = {};
  std::optional<int64_t> batch = {};                         // memory
  int64_t bins = 10, scored = 50'000, counted = 20'000'000;  // frequency
  int64_t windows = 64;                                      // shuffle, neighbours
  uint64_t seed = 1;
  std::vector<int64_t> scales = {};  // neighbours
  int64_t queries = 4, nearest = 3;
  int64_t places = 6, cells = 4;  // completions
  std::optional<int64_t> top = {};
  int64_t prompts = 8, prompt = 64, tokens = 256, completions = 3;  // samples
  Sampling sampling{.temperature = 0.7, .top_k = 40};
  std::optional<int64_t> mask_tokens = {};  // masks
};

// ---- Runs and their texts
using Ids = std::vector<int64_t>;

struct TextRun : OpenModel {
  std::string name;  // the folder, or the path as given if two folders have the same name
  Tokens tokens;     // the text

  const TrainConfig& config() const { return run.config(); }
  const Tokenizer& tokenizer() const { return *run.tokenizer(); }
};
// Opens the runs with their texts. Errors: as for open_model; `families` does not contain a run's family; a model does not predict the next
// token; a text is not plain.
std::vector<TextRun> open_text_runs(const AnalysisOptions& options, const std::vector<Family>& families);

// The starts of at most `max` windows of `length` tokens, spread over the first `size` tokens. Error: fewer than `least` fit.
Ids spread_over(const Tokens& tokens, int64_t size, int64_t length, int64_t max, int64_t least = 1);
// Calls use(starts) for each batch of windows, with a progress bar.
void in_batches(const TextRun& run, const Ids& starts, const std::function<void(const Ids& starts)>& use);
// `count` tokens from each start, concatenated; ids are 0 after the end of the text.
Ids ids_at(const Tokens& tokens, const Ids& starts, int64_t count);
Tensor ids_tensor(const Ids& ids, int64_t sequences, Device device);  // [b c]
// The nats of the next token at each position: [window context]. With a seed, the first half of each window is shuffled.
std::vector<double> window_nats(const TextRun& run, const Ids& starts, std::optional<uint64_t> seed = {});
// Shuffles ids as a function of the seed and the window's index.
void shuffle(std::span<int64_t> ids, uint64_t seed, uint64_t window);
// Tokens in one line, with symbols for line ends, tabs and (with_blanks) blanks. A token without text is "id 5".
std::string shown(const Tokenizer& tokenizer, const Ids& ids, bool with_blanks);
// Removes values that repeat the row above, such as run names.
void hide_repeats(Column& column);
// Adds a note about a run. Runs with equal notes share one.
void add_note(Report& report, const std::string& run, const std::string& note);

// ---- The analyses. Errors: as for open_text_runs; the text, context, scale or mixer leaves nothing to compute.
Report analyse_memory(const AnalysisOptions& options);       // perplexity against training memory (figure 3 of the paper)
Report analyse_frequency(const AnalysisOptions& options);    // nats per token in bins with equal numbers of tokens (figures 5 and 6)
Report analyse_shuffle(const AnalysisOptions& options);      // nats by distance from a shuffled half of the window (figure 4)
Report analyse_neighbours(const AnalysisOptions& options);   // similar chunks by the block outputs of a scale (table 6)
Report analyse_completions(const AnalysisOptions& options);  // a coarse model's tokens for the next cell (table 7)
Report analyse_samples(const AnalysisOptions& options);      // statistics of generated texts (table 5)
Report analyse_masks(const AnalysisOptions& options);        // tokens and cells that queries attend to (figure 1)

// ---- Their numbers
struct MemoryRow {
  std::string name;
  Family family;
  StepMemory memory;
  std::optional<double> loss = {};  // the lowest recorded loss, in nats per token
  std::optional<double> perplexity() const { return loss ? std::optional(std::exp(*loss)) : std::nullopt; }
};
// The memory of a step.
MemoryRow memory_row(const std::string& name, const TrainConfig& config, const ModelConfig& model, const AnalysisOptions& options);

// A token type.
struct TokenScore {
  int64_t training = 0, scored = 0;  // occurrences in the training text, and among the scored tokens
  double nats = 0;                   // sum
};
struct FrequencyBin {
  double tokens = 0;         // scored, the same number in each bin; a token type can be divided among multiple bins
  double nats = 0;           // mean
  int64_t kinds = 0;         // token types in the bin, complete or divided
  int64_t max = 0, min = 0;  // occurrences in the training text
};
// Bins from the most frequent tokens to the rarest, with equally frequent tokens in order of their ids.
std::vector<FrequencyBin> frequency_bins(std::vector<TokenScore> kinds, int64_t bins);

// Means over all windows, at one distance. Distance 1 is the first token after the shuffled ones.
struct ShuffleRow {
  int64_t distance = 0, last_distance = 0;   // for the row's first and last token
  double nats = 0, increase = 0, error = 0;  // in the true order; the increase from shuffling; the increase's standard error
};
// Computes the rows from the nats before and after shuffling [window context], for every distance or for the ranges 1, 2, 3-4, 5-8, ...
std::vector<ShuffleRow> shuffle_rows(std::span<const double> before, std::span<const double> after, int64_t context, bool in_ranges);

// A chunk or a token, with its cosine or probability. Lists begin with the best score; ties are in index order.
struct Ranked {
  int64_t index = 0;
  double score = 0;
};
std::vector<Ranked> most_probable(std::span<const double> logits, int64_t count);

// Chunks of one size as vectors.
struct Chunks {
  int64_t tokens = 0;    // per chunk
  bool is_mean = false;  // the vectors are means over tokens: the model has no blocks at this scale
  int64_t per_window = 0, width = 0;
  std::vector<double> vectors;  // [chunk width], window by window
  int64_t count() const { return static_cast<int64_t>(vectors.size()) / width; }
};
// Subtracts the mean over all chunks and divides each vector by its length. Zero vectors stay zero.
void centre(Chunks& chunks);
// From the other windows, the chunks with the largest cosines. Vectors must be centred.
std::vector<Ranked> nearest_chunks(const Chunks& chunks, int64_t chunk, int64_t count);

// The fractions of 1-grams to 4-grams that repeat an earlier n-gram of their text (Welleck et al. 2020), as means over texts.
using Shares = std::array<double, 4>;
Shares repeated_shares(const std::vector<Ids>& texts);
// BLEU (Papineni et al. 2002) of candidates with their references, from 0 to 100: the geometric mean of the clipped precisions of 1- to
// 4-grams, times exp(1 - r/c) if the candidates (c words) are shorter than the references nearest in length (r words). Not smoothed.
using Words = std::vector<std::string>;
double bleu(const std::vector<std::pair<Words, std::vector<Words>>>& corpus);
Words words_of(const std::string& text);  // split at white space

}  // namespace ricci::apps
