// Analyses of cells: the nearest cells by a model's vectors, and the model's tokens for the next cell.
#include "ops/scales/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "apps/lab/analysis/analyses.h"
#include "apps/terminal/progress.h"
#include "autograd/tape.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "models/inspection/representations.h"
#include "models/layers/layers.h"

namespace ricci::apps {
namespace {

// The requested scales, or the model's coarse scales that fit into the context.
Ids scales_of(const TextRun& run, std::vector<int64_t> scales, const std::vector<Representation>& known) {
  if (scales.empty()) {
    for (const Representation& each : known)
      if (each.tokens > 1) scales.push_back(each.tokens);
    if (scales.empty()) scales = {4, 16};
    std::erase_if(scales, [&](int64_t scale) { return scale > run.context; });
  }
  if (scales.empty() || known.empty()) fail("neighbours: the context of {} tokens is shorter than every chunk", {run.context});
  for (const int64_t scale : scales) {
    if (scale > run.context) fail("--scales: {}, expected at most the context of {}", {scale, run.context});
    if (scale % known[0].tokens) fail("--scales: {} does not fit {}, expected a multiple of {} tokens", {scale, run.name, known[0].tokens});
  }
  return scales;
}

// The block outputs of each scale. A scale without blocks uses means over the finest outputs.
std::vector<Chunks> read_chunks(const TextRun& run, const AnalysisOptions& options, const Ids& starts) {
  const NoTape no_tape;
  const Training off(false);
  std::vector<Chunks> all;
  in_batches(run, starts, [&](const Ids& batch) {
    const Tensor ids_bc = ids_tensor(ids_at(run.tokens, batch, run.context), std::ssize(batch), run.device);
    const std::vector<Representation> known = representations(run.model, {ids_bc});
    const Ids scales = scales_of(run, options.scales, known);
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

// Spreads queries over the windows. Each is in the second half of its window and so has some context.
Ids queries_of(const Chunks& chunks, int64_t count) {
  const int64_t windows = chunks.count() / chunks.per_window, half = chunks.per_window / 2;
  count = std::min(count, windows);
  Ids queries;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t within = half + i * std::max<int64_t>(1, chunks.per_window - half) / count;
    queries.push_back(i * windows / count * chunks.per_window + std::min(within, chunks.per_window - 1));
  }
  return queries;
}

bool is_better(const Ranked& a, const Ranked& b) { return a.score != b.score ? a.score > b.score : a.index < b.index; }

}  // namespace

void centre(Chunks& chunks) {
  const int64_t count = chunks.count(), width = chunks.width;
  std::vector<double> mean(static_cast<size_t>(width));
  for (int64_t c = 0; c < count; ++c)
    for (int64_t i = 0; i < width; ++i)
      mean[static_cast<size_t>(i)] += chunks.vectors[static_cast<size_t>(c * width + i)] / static_cast<double>(count);
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

std::vector<Ranked> nearest_chunks(const Chunks& chunks, int64_t chunk, int64_t count) {
  const int64_t width = chunks.width;
  const double* const query = chunks.vectors.data() + chunk * width;
  std::vector<Ranked> all;
  for (int64_t other = 0; other < chunks.count(); ++other) {
    if (other / chunks.per_window == chunk / chunks.per_window) continue;
    all.push_back({other, std::inner_product(query, query + width, chunks.vectors.data() + other * width, 0.0)});
  }
  return best_of(std::move(all), count, is_better);
}

Report analyse_neighbours(const AnalysisOptions& options) {
  Report report{.title = "nearest neighbours of chunks", .json = Json::array()};
  report.table.columns = {{.heading = "run", .left = true, .missing = ""}, {.heading = "tokens", .left = true, .missing = ""},
      {.heading = "chunk", .left = true}, {.heading = "cosine", .format = "{:.3f}", .missing = ""}};
  for (const TextRun& run : open_text_runs(options, language_models())) {
    const Ids starts = spread_over(run.tokens, run.tokens.size(), run.context, options.windows, 2);
    Json scales = Json::array();
    for (const Chunks& chunks : read_chunks(run, options, starts)) {
      const auto first_token = [&](int64_t chunk) {
        return starts[static_cast<size_t>(chunk / chunks.per_window)] + chunk % chunks.per_window * chunks.tokens;
      };
      const auto text = [&](int64_t chunk) {
        return shown(run.tokenizer(), ids_at(run.tokens, {first_token(chunk)}, chunks.tokens), chunks.tokens == 1);
      };
      Json queries = Json::array();
      for (const int64_t query : queries_of(chunks, options.queries)) {
        report.table.add_row({run.name, chunks.tokens, text(query), {}});
        Json found{{"first_token", first_token(query)}, {"text", text(query)}};
        for (const auto& [chunk, cosine] : nearest_chunks(chunks, query, options.nearest)) {
          report.table.add_row({run.name, {}, "≈ " + text(chunk), cosine});
          found["nearest"].push_back(Json{{"first_token", first_token(chunk)}, {"text", text(chunk)}, {"cosine", cosine}});
        }
        queries.push_back(found);
      }
      scales.push_back(
          Json{{"tokens", chunks.tokens}, {"mean_of_tokens", chunks.is_mean}, {"chunks", chunks.count()}, {"queries", queries}});
      if (chunks.is_mean)
        add_note(report, run.name, fmt::format("{} tokens: means (the model has no blocks at this scale)", chunks.tokens));
    }
    report.json.push_back(Json{{"run", run.name}, {"scales", scales}});
  }
  hide_repeats(report.table.columns[0]);
  report.notes.push_back("Cosines are computed after the mean over all chunks is subtracted. Chunks of the same window are excluded.");
  return report;
}

std::vector<Ranked> most_probable(std::span<const double> logits, int64_t count) {
  std::vector<Ranked> all;
  for (const double logit : logits) all.push_back({std::ssize(all), logit});
  all = best_of(std::move(all), count, is_better);
  double sum = 0;
  const double max = all[0].score;
  for (const double logit : logits) sum += std::exp(logit - max);
  for (Ranked& each : all) each.score = std::exp(each.score - max) / sum;
  return all;
}

Report analyse_completions(const AnalysisOptions& options) {
  const NoTape no_tape;
  const Training off(false);
  Report report{.title = "the most probable tokens of the next cell", .json = Json::array()};
  report.table.columns = {{.heading = "run", .left = true, .missing = ""}, {.heading = "preceding text", .left = true},
      {.heading = "next cell", .left = true}, {.heading = "expected, with probabilities", .left = true}};
  for (const TextRun& run : open_text_runs(options, {family_of<Coarse>})) {
    const int64_t scale = run.config().model.settings<Coarse>().scale, whole = run.context / scale * scale;
    if (whole == 0) fail("--context: {} is shorter than a cell of {} tokens", {run.context, scale});
    const Ids starts = spread_over(run.tokens, run.tokens.size(), whole + scale, options.places);
    const Tokenizer& tokenizer = run.tokenizer();
    Json places = Json::array();
    double found = 0;
    for (const int64_t start : starts) {
      const Ids before = ids_at(run.tokens, {start}, whole), next = ids_at(run.tokens, {start + whole}, scale);
      const Tensor logits_bmv = to(convert(run.model.logits({ids_tensor(before, 1, run.device)}), Dtype::f64), Device::cpu);
      const std::span logits(logits_bmv.data<double>(), static_cast<size_t>(logits_bmv.size()));
      std::vector<std::string> tokens, listed;
      for (const int64_t id : next) tokens.push_back(shown(tokenizer, {id}, true));
      Json expected = Json::array();
      for (const Ranked& each : most_probable(logits.last(static_cast<size_t>(logits_bmv.shape()[2])), options.top.value_or(scale))) {
        const std::string token = shown(tokenizer, {each.index}, true);
        listed.push_back(fmt::format("{} {:.3f}", token, each.score));
        expected.push_back(Json{{"id", each.index}, {"token", token}, {"probability", each.score}});
        found += static_cast<double>(std::count(next.begin(), next.end(), each.index));
      }
      const Ids last(before.end() - std::min(options.cells * scale, whole), before.end());
      report.table.add_row({run.name, "…" + shown(tokenizer, last, last.size() == 1), fmt::format("{}", fmt::join(tokens, " · ")),
          fmt::format("{}", fmt::join(listed, " · "))});
      places.push_back(
          Json{{"text", tokenizer.decode(before)}, {"next", tokenizer.decode(next)}, {"next_ids", next}, {"expected", expected}});
    }
    const double share = found / static_cast<double>(std::ssize(starts) * scale);
    report.json.push_back(Json{{"run", run.name}, {"scale", scale}, {"found", share}, {"places", places}});
    add_note(report, run.name,
        fmt::format("{:.1f}% of the tokens of the next cells are among those listed; a model that knew them all would give each 1/{}",
            100 * share, scale));
  }
  hide_repeats(report.table.columns[0]);
  return report;
}

}  // namespace ricci::apps
