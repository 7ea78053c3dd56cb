// Which tokens a coarse model expects in the next cell (Subramanian et al. 2020, table 7).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "apps/lab/analysis/report.h"
#include "apps/lab/analysis/text_runs.h"

namespace ricci::apps {

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

}  // namespace ricci::apps
