// What one layer takes at several scales (Subramanian et al. 2020, figure 2): memory and forward time against the length of the text. At
// scale s the layer has a position for every s tokens.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "apps/lab/benchmark/measure.h"

namespace ricci::apps {

struct LayerOptions {
  std::vector<int64_t> scales = {1, 4, 16, 64}, lengths;  // lengths: tokens of a sequence
  int64_t sequences = 1, rounds = 5;
  StepSize size;  // but for sequences and positions; one pre-norm block of sdp as in GPT-2, and the norm that closes a stack
};

struct LayerRow {
  int64_t scale = 1, length = 0, positions = 0;
  Spread seconds;        // of a forward without a tape
  int64_t kept = 0;      // bytes that a forward keeps for its backward
  double published = 0;  // the same by the formula of the paper's table 8, at this dtype
};

// Lengths shorter than a cell have no row. At each length the scales take turns.
// Errors: sizes beyond their bounds, heads that do not divide the width.
std::vector<LayerRow> measure_layer(const LayerOptions& options, Progress& progress);
int64_t steps_of(const LayerOptions& options);  // of the progress
void check(const LayerOptions& options);

Report report_of(const LayerOptions& options, const std::vector<LayerRow>& rows);

}  // namespace ricci::apps
