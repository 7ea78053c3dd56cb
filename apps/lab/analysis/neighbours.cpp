#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "apps/lab/analysis/analyses.h"
#include "apps/terminal/progress.h"
#include "autograd/tape.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "models/inference/evaluation.h"
#include "models/inspection/observation.h"
#include "models/layers/layers.h"
#include "ops/scales/cells.h"

namespace ricci::apps {
namespace {

struct Found {
  int64_t query = 0;
  std::vector<NearChunk> nearest;
};

void check_scales(const TextRun& run, const std::vector<Representation>& known, const std::vector<int64_t>& scales) {
  for (const int64_t scale : scales) {
    if (scale > run.open.context) fail("--scales: {}, but the context is {}", {scale, run.open.context});
    if (known[0].tokens > scale || scale % known[0].tokens)
      fail("--scales: {}, but the finest cells of {} have {} tokens", {scale, run.name, known[0].tokens});
  }
}

// The scales asked for, each once; or those that the model has blocks at beside that of tokens, as far as the context holds them.
std::vector<int64_t> scales_of(const TextRun& run, const NeighboursOptions& options, const std::vector<Representation>& known) {
  std::vector<int64_t> scales;
  if (known.empty()) fail("neighbours: a context of {}, fewer tokens than any chunk", {run.open.context});
  for (const int64_t scale : options.scales)
    if (std::find(scales.begin(), scales.end(), scale) == scales.end()) scales.push_back(scale);
  if (!scales.empty()) {
    check_scales(run, known, scales);
    return scales;
  }
  for (const Representation& each : known)
    if (each.tokens > 1) scales.push_back(each.tokens);
  if (scales.empty()) scales = {4, 16};
  std::erase_if(scales, [&](int64_t scale) { return scale > run.open.context; });
  if (scales.empty()) fail("neighbours: a context of {}, fewer tokens than any chunk", {run.open.context});
  return scales;
}

// What the blocks of the scale give; or the means over chunks of what the finest blocks give.
Tensor at_scale(const std::vector<Representation>& known, int64_t scale, bool& is_mean) {
  const auto found = std::find_if(known.begin(), known.end(), [&](const Representation& each) { return each.tokens == scale; });
  is_mean = found == known.end();
  if (!is_mean) return found->h_bmd;
  return cell_mean(known[0].h_bmd, scale / known[0].tokens);
}

std::vector<Chunks> read_chunks(const TextRun& run, const NeighboursOptions& options, int64_t windows) {
  const NoTape no_tape;
  const Training off(false);
  const int64_t context = run.open.context, at_once = rows_at_once(run.open.model, context), there = run.tokens.size() / context;
  std::vector<Chunks> all;
  Progress progress({.steps = windows, .unit = "window", .out = stderr});
  for (int64_t w = 0; w < windows; w += at_once) {
    const int64_t rows = std::min(at_once, windows - w);
    std::vector<int64_t> ids;
    for (int64_t r = w; r < w + rows; ++r) {
      const std::vector<int64_t> window = ids_at(run.tokens, r * there / windows * context, context);
      ids.insert(ids.end(), window.begin(), window.end());
    }
    const std::vector<Representation> known = representations(run.open.model, {ids_tensor(ids, rows, run.open.device)});
    const std::vector<int64_t> scales = scales_of(run, options, known);
    all.resize(scales.size());
    for (size_t s = 0; s < scales.size(); ++s) {
      all[s].tokens = scales[s];
      const Tensor h_bmd = to(convert(at_scale(known, scales[s], all[s].is_mean), Dtype::f64), Device::cpu);
      all[s].per_window = h_bmd.shape()[1];
      all[s].width = h_bmd.shape()[2];
      all[s].vectors.insert(all[s].vectors.end(), h_bmd.data<double>(), h_bmd.data<double>() + h_bmd.size());
    }
    progress.update(w + rows, 0);
  }
  for (Chunks& chunks : all) centre(chunks);
  return all;
}

class Texts {
 public:
  Texts(const TextRun& run, int64_t windows) : run_(run), windows_(windows) {}
  int64_t first_token(const Chunks& chunks, int64_t chunk) const {
    const int64_t context = run_.open.context, there = run_.tokens.size() / context;
    return chunk / chunks.per_window * there / windows_ * context + chunk % chunks.per_window * chunks.tokens;
  }
  std::string text(const Chunks& chunks, int64_t chunk) const {
    return shown(*run_.open.run.tokenizer(), ids_at(run_.tokens, first_token(chunks, chunk), chunks.tokens));
  }

 private:
  const TextRun& run_;
  int64_t windows_;
};

// Queries are spread over the windows, each from the second half of its window, where the model has read something.
std::vector<Found> look(const Chunks& chunks, const NeighboursOptions& options, int64_t windows) {
  std::vector<Found> all;
  const int64_t count = std::min(options.queries, windows);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t half = chunks.per_window / 2, within = half + i * std::max<int64_t>(1, chunks.per_window - half) / count;
    const int64_t query = i * windows / count * chunks.per_window + std::min(within, chunks.per_window - 1);
    all.push_back({query, nearest_chunks(chunks, query, options.nearest)});
  }
  return all;
}

Value json_of(const Chunks& chunks, const std::vector<Found>& found, const Texts& texts) {
  const auto chunk_with = [&](int64_t chunk, const char* key, Value value) {
    return Object{{"first_token", texts.first_token(chunks, chunk)}, {"text", texts.text(chunks, chunk)}, {key, std::move(value)}};
  };
  const auto neighbour = [&](const NearChunk& n) { return chunk_with(n.chunk, "cosine", n.cosine); };
  const auto query = [&](const Found& each) { return chunk_with(each.query, "nearest", values_of(each.nearest, neighbour)); };
  return Object{
      {"tokens", chunks.tokens}, {"mean_of_tokens", chunks.is_mean}, {"chunks", chunks.count()}, {"queries", values_of(found, query)}};
}

}  // namespace

void centre(Chunks& chunks) {
  const int64_t count = chunks.count(), width = chunks.width;
  std::vector<double> mean(static_cast<size_t>(width));
  for (int64_t i = 0; i < count * width; ++i)
    mean[static_cast<size_t>(i % width)] += chunks.vectors[static_cast<size_t>(i)] / static_cast<double>(count);
  for (int64_t c = 0; c < count; ++c) {
    double* const vector = chunks.vectors.data() + c * width;
    double square = 0;
    for (int64_t i = 0; i < width; ++i) {
      vector[i] -= mean[static_cast<size_t>(i)];
      square += vector[i] * vector[i];
    }
    const double scale = square > 0 ? 1 / std::sqrt(square) : 0;
    for (int64_t i = 0; i < width; ++i) vector[i] *= scale;
  }
}

std::vector<NearChunk> nearest_chunks(const Chunks& chunks, int64_t chunk, int64_t count) {
  const int64_t width = chunks.width;
  const double* const query = chunks.vectors.data() + chunk * width;
  std::vector<NearChunk> all;
  for (int64_t other = 0; other < chunks.count(); ++other) {
    if (other / chunks.per_window == chunk / chunks.per_window) continue;
    all.push_back({other, std::inner_product(query, query + width, chunks.vectors.data() + other * width, 0.0)});
  }
  const auto end = all.begin() + std::min<int64_t>(count, static_cast<int64_t>(all.size()));
  std::partial_sort(all.begin(), end, all.end(),
      [](const NearChunk& a, const NearChunk& b) { return a.cosine != b.cosine ? a.cosine > b.cosine : a.chunk < b.chunk; });
  all.erase(end, all.end());
  return all;
}

Report analyse_neighbours(const NeighboursOptions& options) {
  const TextRun run = open_text_run(options.run, options.text, language_models());
  const int64_t windows = std::min(options.windows, run.tokens.size() / run.open.context);
  if (windows < 2)
    fail("neighbours: {} has {} tokens, fewer than two windows of {}", {run.tokens.name(), run.tokens.size(), run.open.context});
  const Texts texts(run, windows);
  Report report{.title = run.name + ": nearest neighbours of chunks"};
  report.table.columns = {{.heading = "tokens", .left = true, .missing = ""}, {.heading = "chunk", .left = true},
      {.heading = "cosine", .format = "{:.3f}", .missing = ""}};
  Value::List scales;
  for (const Chunks& chunks : read_chunks(run, options, windows)) {
    const std::vector<Found> found = look(chunks, options, windows);
    for (const Found& each : found) {
      report.table.add_row({chunks.tokens, texts.text(chunks, each.query), {}});
      for (const NearChunk& n : each.nearest) report.table.add_row({{}, "  " + texts.text(chunks, n.chunk), n.cosine});
    }
    report.notes.push_back(fmt::format("{} tokens: {}, {} chunks of {} windows", chunks.tokens,
        chunks.is_mean ? fmt::format("{} has no blocks at this scale, so a chunk is the mean of what its last blocks make of the tokens",
                             name_of(run.open.model.config().family))
                       : "what the blocks of this scale make of the cell",
        with_commas(chunks.count()), windows));
    scales.push_back(json_of(chunks, found, texts));
  }
  report.notes.push_back(
      "The cosine is that of the vectors without their mean over all chunks. Chunks of the query's own window are left out.");
  report.json = Object{{"run", run.name}, {"scales", scales}};
  return report;
}

}  // namespace ricci::apps
