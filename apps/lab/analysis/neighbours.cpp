#include "apps/lab/analysis/neighbours.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "apps/lab/drawing/text_page.h"
#include "apps/terminal/progress.h"
#include "autograd/tape.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "models/evaluation/token_nats.h"
#include "models/inspection/observation.h"
#include "models/layers/drop.h"
#include "ops/scales/cells.h"

namespace ricci::apps {
namespace {

using json = nlohmann::ordered_json;

struct Found {
  int64_t query = 0;
  std::vector<NearChunk> nearest;
};

void check_scales(const TextRun& run, const std::vector<Representation>& own, const std::vector<int64_t>& scales) {
  for (const int64_t scale : scales) {
    if (scale > run.open.context) fail("--scales: {}, but the context is {}", {scale, run.open.context});
    if (own[0].tokens > scale || scale % own[0].tokens)
      fail("--scales: {}, but the finest cells of {} have {} tokens", {scale, run.name, own[0].tokens});
  }
}

// The scales asked for, each once; or those that the model has blocks at beside that of tokens, as far as the context holds them.
std::vector<int64_t> scales_of(const TextRun& run, const NeighboursOptions& options, const std::vector<Representation>& own) {
  std::vector<int64_t> scales;
  if (own.empty()) fail("neighbours: a context of {}, fewer tokens than any chunk", {run.open.context});
  for (const int64_t scale : options.scales)
    if (std::find(scales.begin(), scales.end(), scale) == scales.end()) scales.push_back(scale);
  if (!scales.empty()) return check_scales(run, own, scales), scales;
  for (const Representation& each : own)
    if (each.tokens > 1) scales.push_back(each.tokens);
  if (scales.empty()) scales = {4, 16};
  std::erase_if(scales, [&](int64_t scale) { return scale > run.open.context; });
  if (scales.empty()) fail("neighbours: a context of {}, fewer tokens than any chunk", {run.open.context});
  return scales;
}

// Of the scale itself; or the means over chunks of what the finest blocks give.
Tensor at_scale(const std::vector<Representation>& own, int64_t scale, bool& is_mean) {
  for (const Representation& each : own)
    if (each.tokens == scale) return is_mean = false, each.h_bmd;
  is_mean = true;
  return cell_mean(own[0].h_bmd, scale / own[0].tokens);
}

std::vector<Chunks> read_chunks(const TextRun& run, const NeighboursOptions& options, int64_t windows) {
  const NoTape unrecorded;
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
    const std::vector<Representation> own = representations(run.open.model, {ids_tensor(ids, rows, run.open.device)});
    const std::vector<int64_t> scales = scales_of(run, options, own);
    all.resize(scales.size());
    for (size_t s = 0; s < scales.size(); ++s) {
      all[s].tokens = scales[s];
      const Tensor h_bmd = to(convert(at_scale(own, scales[s], all[s].is_mean), Dtype::f64), Device::cpu);
      all[s].per_window = h_bmd.shape()[1], all[s].width = h_bmd.shape()[2];
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

json as_json(const Chunks& chunks, const std::vector<Found>& found, const Texts& texts) {
  json queries = json::array();
  for (const Found& each : found) {
    json nearest = json::array();
    for (const NearChunk& n : each.nearest)
      nearest.push_back({{"first_token", texts.first_token(chunks, n.chunk)}, {"text", texts.text(chunks, n.chunk)}, {"cosine", n.cosine}});
    queries.push_back({{"first_token", texts.first_token(chunks, each.query)}, {"text", texts.text(chunks, each.query)},
        {"nearest", std::move(nearest)}});
  }
  return {{"tokens", chunks.tokens}, {"mean_of_tokens", chunks.is_mean}, {"chunks", chunks.count()}, {"queries", std::move(queries)}};
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
    for (int64_t i = 0; i < width; ++i) vector[i] -= mean[static_cast<size_t>(i)], square += vector[i] * vector[i];
    const double scale = square > 0 ? 1 / std::sqrt(square) : 0;
    for (int64_t i = 0; i < width; ++i) vector[i] *= scale;
  }
}

std::vector<NearChunk> nearest_chunks(const Chunks& chunks, int64_t chunk, int64_t count) {
  const int64_t width = chunks.width;
  const double* const own = chunks.vectors.data() + chunk * width;
  std::vector<NearChunk> all;
  for (int64_t other = 0; other < chunks.count(); ++other) {
    if (other / chunks.per_window == chunk / chunks.per_window) continue;
    all.push_back({other, std::inner_product(own, own + width, chunks.vectors.data() + other * width, 0.0)});
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
  Report report;
  report.title = run.name + ": nearest neighbours of chunks";
  report.texts = 2, report.table = {{"tokens", "chunk", "cosine"}};
  json all = json::array();
  for (const Chunks& chunks : read_chunks(run, options, windows)) {
    const std::vector<Found> found = look(chunks, options, windows);
    for (const Found& each : found) {
      report.table.push_back({std::to_string(chunks.tokens), texts.text(chunks, each.query), ""});
      for (const NearChunk& n : each.nearest)
        report.table.push_back({"", "  " + texts.text(chunks, n.chunk), fmt::format("{:.3f}", n.cosine)});
    }
    report.notes.push_back(fmt::format("{} tokens: {}, {} chunks of {} windows", chunks.tokens,
        chunks.is_mean ? fmt::format("{} has no blocks at this scale, so a chunk is the mean of what its last blocks make of the tokens",
                             name_of(run.open.model.config().family))
                       : "what the blocks of this scale make of the cell",
        with_commas(chunks.count()), windows));
    all.push_back(as_json(chunks, found, texts));
  }
  report.notes.push_back(
      "The cosine is that of the vectors without their mean over all chunks. Chunks of the query's own window are left out.");
  report.json = json{{"run", run.name}, {"scales", std::move(all)}}.dump(1, ' ', false, json::error_handler_t::replace);
  return report;
}

}  // namespace ricci::apps
