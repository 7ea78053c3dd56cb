#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "apps/lab/analysis/analyses.h"
#include "apps/lab/report/statistics.h"
#include "apps/terminal/progress.h"
#include "autograd/tape.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "models/inspection/observation.h"
#include "models/layers/layers.h"
#include "ops/scales/cells.h"

namespace ricci::apps {
namespace {

// The scales asked for, each once; or the coarse scales of the model, as far as the context holds them.
std::vector<int64_t> scales_of(const TextRun& run, const NeighboursOptions& options, const std::vector<Representation>& known) {
  std::vector<int64_t> scales;
  for (const int64_t scale : options.scales) {
    if (known.empty()) break;
    if (scale > run.context) fail("--scales: {}, but the context is {}", {scale, run.context});
    if (scale % known[0].tokens) fail("--scales: {}, but the finest cells of {} have {} tokens", {scale, run.name, known[0].tokens});
    if (std::find(scales.begin(), scales.end(), scale) == scales.end()) scales.push_back(scale);
  }
  if (!scales.empty()) return scales;
  for (const Representation& each : known)
    if (each.tokens > 1) scales.push_back(each.tokens);
  if (scales.empty() && !known.empty()) scales = {4, 16};
  std::erase_if(scales, [&](int64_t scale) { return scale > run.context; });
  if (scales.empty()) fail("neighbours: a context of {}, fewer tokens than any chunk", {run.context});
  return scales;
}

// The output of the blocks of each scale; or the means over chunks of the output of the finest blocks.
std::vector<Chunks> read_chunks(const TextRun& run, const NeighboursOptions& options, const std::vector<int64_t>& starts) {
  const NoTape no_tape;
  const Training off(false);
  std::vector<Chunks> all;
  in_batches(run, starts, [&](std::span<const int64_t> batch) {
    std::vector<int64_t> ids;
    for (const int64_t start : batch) {
      const std::vector<int64_t> window = ids_at(run.tokens, start, run.context);
      ids.insert(ids.end(), window.begin(), window.end());
    }
    const std::vector<Representation> known = representations(run.model, {ids_tensor(ids, std::ssize(batch), run.device)});
    const std::vector<int64_t> scales = scales_of(run, options, known);
    all.resize(scales.size());
    for (size_t s = 0; s < scales.size(); ++s) {
      const auto found = std::find_if(known.begin(), known.end(), [&](const Representation& each) { return each.tokens == scales[s]; });
      const bool is_mean = found == known.end();
      const Tensor output_bmd = is_mean ? cell_mean(known[0].h_bmd, scales[s] / known[0].tokens) : found->h_bmd,
                   h_bmd = to(convert(output_bmd, Dtype::f64), Device::cpu);
      Chunks& chunks = all[s];
      chunks = {scales[s], is_mean, h_bmd.shape()[1], h_bmd.shape()[2], std::move(chunks.vectors)};
      chunks.vectors.insert(chunks.vectors.end(), h_bmd.data<double>(), h_bmd.data<double>() + h_bmd.size());
    }
  });
  for (Chunks& chunks : all) centre(chunks);
  return all;
}

// Adds a row for each query and each of its neighbours; returns them as JSON. Queries are spread over the windows, each from the second
// half of its window, where the model has read something.
Json add_rows(
    ResultTable& table, const TextRun& run, const NeighboursOptions& options, const std::vector<int64_t>& starts, const Chunks& chunks) {
  const auto first_token = [&](int64_t chunk) {
    return starts[static_cast<size_t>(chunk / chunks.per_window)] + chunk % chunks.per_window * chunks.tokens;
  };
  const auto text = [&](int64_t chunk) {
    return shown(run.tokenizer(), ids_at(run.tokens, first_token(chunk), chunks.tokens), chunks.tokens == 1);
  };
  const int64_t windows = std::ssize(starts), count = std::min(options.queries, windows), half = chunks.per_window / 2;
  Json queries = Json::array();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t within = half + i * std::max<int64_t>(1, chunks.per_window - half) / count;
    const int64_t query = i * windows / count * chunks.per_window + std::min(within, chunks.per_window - 1);
    table.add_row({chunks.tokens, text(query), {}});
    Json nearest = Json::array();
    for (const auto& [chunk, cosine] : nearest_chunks(chunks, query, options.nearest)) {
      table.add_row({{}, "  " + text(chunk), cosine});
      nearest.push_back(Json{{"first_token", first_token(chunk)}, {"text", text(chunk)}, {"cosine", cosine}});
    }
    queries.push_back(Json{{"first_token", first_token(query)}, {"text", text(query)}, {"nearest", nearest}});
  }
  return queries;
}

Report nearest_in(const TextRun& run, const NeighboursOptions& options) {
  const std::vector<int64_t> starts = spread_over(run.tokens.size(), run.context, options.windows);
  if (starts.size() < 2)
    fail("neighbours: {} has {} tokens, fewer than two windows of {}", {run.tokens.name(), run.tokens.size(), run.context});
  Report report{.title = run.name + ": nearest neighbours of chunks"};
  report.table.columns = {{.heading = "tokens", .left = true, .missing = ""}, {.heading = "chunk", .left = true},
      {.heading = "cosine", .format = "{:.3f}", .missing = ""}};
  Json scales = Json::array();
  for (const Chunks& chunks : read_chunks(run, options, starts)) {
    scales.push_back(Json{{"tokens", chunks.tokens}, {"mean_of_tokens", chunks.is_mean}, {"chunks", chunks.count()},
        {"queries", add_rows(report.table, run, options, starts, chunks)}});
    report.notes.push_back(fmt::format("{} tokens: {}, {} chunks of {} windows", chunks.tokens,
        chunks.is_mean ? fmt::format("{} has no blocks at this scale, so a chunk is the mean of what its last blocks make of the tokens",
                             name_of(run.model.config().family))
                       : "what the blocks of this scale make of the cell",
        with_commas(chunks.count()), starts.size()));
  }
  report.notes.push_back("The cosine is computed after the mean over all chunks is subtracted from the vectors. Chunks of the query's own "
                         "window are left out.");
  report.json = {{"run", run.name}, {"scales", scales}};
  return report;
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
  return best_of(std::move(all), count,
      [](const NearChunk& a, const NearChunk& b) { return a.cosine != b.cosine ? a.cosine > b.cosine : a.chunk < b.chunk; });
}

Report analyse_neighbours(const NeighboursOptions& options) {
  std::vector<std::pair<std::string, Report>> reports;
  for (const TextRun& run : open_text_runs(options.text, language_models())) reports.emplace_back(run.name, nearest_in(run, options));
  return stacked("nearest neighbours of chunks", reports);
}

}  // namespace ricci::apps
