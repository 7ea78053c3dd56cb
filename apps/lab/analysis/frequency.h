// How well models predict rare and frequent tokens (Subramanian et al. 2020, figures 5 and 6): the negative log likelihood in bins of
// equal token mass, ordered by how often a token is in the training text.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/lab/analysis/report.h"
#include "apps/lab/analysis/text_runs.h"
#include "apps/terminal/progress.h"

namespace ricci::apps {

struct FrequencyOptions {
  TextRunOptions text;
  int64_t bins = 10;
  int64_t tokens = 50'000;               // of the text that are scored, at most
  int64_t training_tokens = 20'000'000;  // of the training text that are counted, at most
};

struct FrequencyBin {
  double tokens = 0;            // scored ones, the same number in each bin; a kind of token may lie in several bins with a share in each
  double nats = 0;              // mean
  int64_t kinds = 0;            // of tokens that lie in the bin, as a whole or with a share
  int64_t most = 0, least = 0;  // how often they are in the training text
};

// Of each kind of token: how often it is in the training text, how often it was scored, and the sum of its nats.
struct TokenScore {
  int64_t training = 0, scored = 0;
  double nats = 0;
};
// The most frequent tokens first; tokens that are equally frequent in the order of their ids.
std::vector<FrequencyBin> frequency_bins(std::span<const TokenScore> scores, int64_t bins);

// Errors: those of open_text_runs; no token is scored.
Report analyse_frequency(const FrequencyOptions& options);

}  // namespace ricci::apps
