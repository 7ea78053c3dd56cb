// Which chunks of a text a model takes to be alike (Subramanian et al. 2020, table 6): the nearest neighbours of chunks by what the blocks
// of a scale make of them.
#pragma once
#include <cstdint>
#include <vector>

#include "apps/lab/analysis/report.h"
#include "apps/lab/analysis/text_runs.h"
#include "core/tensor.h"

namespace ricci::apps {

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

}  // namespace ricci::apps
