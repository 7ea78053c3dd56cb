// Which tokens and cells the queries of a model see, as pictures (Subramanian et al. 2020, figure 1), for trained runs and for run files.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "apps/lab/analysis/report.h"
#include "apps/terminal/cli.h"
#include "models/inspection/masks.h"

namespace ricci::apps {

struct MasksOptions {
  RunOptions run;      // a run folder or a run file, and keys of it
  int64_t tokens = 0;  // of the text; 0: the context, but at most 256; never more than the context
};

// The masks side by side, each with the tokens of the text from left to right. Every query is a row as tall as its cell; what it sees is
// filled, from the first token of the first cell to the last token of the last one. `names`: a title for each.
std::string mask_drawing(
    const std::string& title, const std::vector<Mask>& masks, const std::vector<std::string>& names, Theme theme, bool with_style);

// "heads 0 - 3: tokens see cells of 4"
std::string name_of(const Mask& mask);

// Errors: those of load_config; a mixer without attention.
Report analyse_masks(const MasksOptions& options);

}  // namespace ricci::apps
