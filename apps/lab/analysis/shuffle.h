// How far back the order of tokens matters (Subramanian et al. 2020, figure 4): the first half of every window is shuffled, and the
// negative log likelihood of the second half compared with that in the true order, by the distance from what was shuffled.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "apps/lab/analysis/report.h"
#include "apps/lab/analysis/text_runs.h"

namespace ricci::apps {

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
// Of increases and nats [window x distance]: for every distance, or for ranges that grow by powers of two: 1, 2, 3-4, 5-8 ...
std::vector<ShuffleRow> shuffle_rows(std::span<const double> nats, std::span<const double> increases, int64_t distances, bool in_ranges);

// Errors: those of open_text_runs; a context below 4; a text without a whole window.
Report analyse_shuffle(const ShuffleOptions& options);

}  // namespace ricci::apps
