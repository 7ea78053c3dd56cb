// ricci-analyze: analyses of trained models on text (after Subramanian et al. 2020). An analysis is a function from runs to a Report
// (apps/lab/report/report.h). The numbers in them are here because tests calculate the same by hand.
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

// Each analysis has a part of them (apps/lab/analyze.cpp).
struct AnalysisOptions {
  RunOptions run = {};                 // run folders; for memory and masks run files too, for masks with keys of them
  std::vector<std::string> data = {};  // files to read in place of the validation text of each run
  ModelOptions model = {};
  std::optional<int64_t> batch = {};      // memory
  uint64_t measured = uint64_t{2} << 30;  // bytes; a step that holds more by its plan is not taken, and its planned memory is shown
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
// Errors: a family that is not among `families`; a model that does not predict the next token; no plain text; as for open_model.
std::vector<TextRun> open_text_runs(const AnalysisOptions& options, const std::vector<Family>& families);

// The first tokens of stretches of `length` tokens, at most `max` of them, spread over the first `size` tokens of a text. Error: fewer
// than `least`.
Ids spread_over(const Tokens& tokens, int64_t size, int64_t length, int64_t max, int64_t least = 1);
// Calls use(starts) for windows, in batches that the model computes at a time, with a bar.
void in_batches(const TextRun& run, const Ids& starts, const std::function<void(const Ids& starts)>& use);
// The `count` tokens from each start on, one stretch after the other; 0 after the end of the text.
Ids ids_at(const Tokens& tokens, const Ids& starts, int64_t count);
// Ids as the sequences of a batch, [b c], on a device.
Tensor ids_tensor(const Ids& ids, int64_t sequences, Device device);
// The nats of the token after each token of the windows: [window context]. With a seed the model reads the first half of each window
// shuffled.
std::vector<double> window_nats(const TextRun& run, const Ids& starts, std::optional<uint64_t> seed = {});
// Shuffles ids as a function of the seed and the number of their window.
void shuffle(std::span<int64_t> ids, uint64_t seed, uint64_t window);
// Tokens in one line: line ends and tabs as signs, blanks too with `with_blanks`. A token without text is "id 5".
std::string shown(const Tokenizer& tokenizer, const Ids& ids, bool with_blanks);
// A note about a run; runs share a note that they have in common.
void add_note(Report& report, const std::string& run, const std::string& note);

// ---- The analyses. Errors: as for open_text_runs; a text, a context, a scale or a mixer with which nothing can be computed.

Report analyse_memory(const AnalysisOptions& options);       // perplexity against the memory of training (figure 3 of the paper)
Report analyse_frequency(const AnalysisOptions& options);    // nats per token in bins of equal token mass (figures 5 and 6)
Report analyse_shuffle(const AnalysisOptions& options);      // nats by the distance from a shuffled half of the window (figure 4)
Report analyse_neighbours(const AnalysisOptions& options);   // chunks that are alike by the output of the blocks of a scale (table 6)
Report analyse_completions(const AnalysisOptions& options);  // tokens that a coarse model expects in the next cell (table 7)
Report analyse_samples(const AnalysisOptions& options);      // texts that models write, in numbers (table 5)
Report analyse_masks(const AnalysisOptions& options);        // tokens and cells that the queries of a model see (figure 1)

// ---- Their numbers

struct MemoryRow {
  std::string name;
  Family family;
  StepMemory memory;
  bool is_planned = false;
  std::optional<double> loss = {};  // the least recorded one, in nats per token
  std::optional<double> perplexity() const { return loss ? std::optional(std::exp(*loss)) : std::nullopt; }
};
// The memory of a step of the config: measured if it fits, otherwise planned.
MemoryRow memory_row(const std::string& name, const TrainConfig& config, const AnalysisOptions& options);

// A kind of token.
struct TokenScore {
  int64_t training = 0, scored = 0;  // how often it is in the training text, and how often it was scored
  double nats = 0;                   // sum
};
struct FrequencyBin {
  double tokens = 0;         // scored ones, the same number in each bin; a kind of token can be in multiple bins with a share in each
  double nats = 0;           // mean
  int64_t kinds = 0;         // kinds of tokens that are in the bin, as a whole or with a share
  int64_t max = 0, min = 0;  // how often they are in the training text
};
// The most frequent tokens first; tokens that are equally frequent in the order of their ids.
std::vector<FrequencyBin> frequency_bins(std::vector<TokenScore> kinds, int64_t bins);

// Means over windows at one distance, counted from 1: the first token after the shuffled ones.
struct ShuffleRow {
  int64_t distance = 0, last_distance = 0;   // to the first and the last token of the row
  double nats = 0, increase = 0, error = 0;  // in the true order; how much more after shuffling; its standard error over windows
};
// From the nats before and after shuffling [window context]: for every distance, or for ranges that grow by powers of two: 1, 2, 3-4 ...
std::vector<ShuffleRow> shuffle_rows(std::span<const double> before, std::span<const double> after, int64_t context, bool in_ranges);

// A chunk or a token, and its cosine or probability. The best ones come first, equal ones by their numbers.
struct Ranked {
  int64_t index = 0;
  double score = 0;
};
// The most probable tokens by their logits.
std::vector<Ranked> most_probable(std::span<const double> logits, int64_t count);

// Chunks of one size as vectors.
struct Chunks {
  int64_t tokens = 0;    // per chunk
  bool is_mean = false;  // the mean of the vectors of its tokens: the model has no blocks at this scale
  int64_t per_window = 0, width = 0;
  std::vector<double> vectors;  // [chunk width], window by window
  int64_t count() const { return static_cast<int64_t>(vectors.size()) / width; }
};
// Subtracts the mean over all chunks, and divides each by its length; a vector of zeros stays one.
void centre(Chunks& chunks);
// The chunks of other windows with the largest cosines. The vectors are centred.
std::vector<Ranked> nearest_chunks(const Chunks& chunks, int64_t chunk, int64_t count);

// The shares of 1-grams to 4-grams that repeat an earlier one of their text (Welleck et al. 2020), means over texts.
using Shares = std::array<double, 4>;
Shares repeated_shares(const std::vector<Ids>& texts);
// BLEU (Papineni et al. 2002) of candidates, each with its references, 0 .. 100: the geometric mean of the clipped precisions of 1- to
// 4-grams, times exp(1 - r/c) if the candidates, c words, are shorter than the references nearest in length, r words. Not smoothed.
using Words = std::vector<std::string>;
double bleu(const std::vector<std::pair<Words, std::vector<Words>>>& corpus);
Words words_of(const std::string& text);  // divided at white space

}  // namespace ricci::apps
