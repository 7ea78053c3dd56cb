#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/lab/analysis/analyses.h"
#include "apps/run/run.h"
#include "core/error.h"
#include "models/inspection/observation.h"
#include "models/model.h"

namespace ricci::apps {
namespace {

constexpr double kEdge = 24, kSide = 268, kGap = 34, kTop = 62, kName = 40, kFoot = 26;
constexpr int64_t kColumns = 3;

std::string cell_name(int64_t tokens) { return tokens == 1 ? "tokens" : fmt::format("cells of {}", tokens); }

std::string heads_of(const Mask& mask) {
  if (mask.heads == 0) return "-";
  return mask.heads == 1 ? std::to_string(mask.first_head) : fmt::format("{} - {}", mask.first_head, mask.first_head + mask.heads - 1);
}

// "heads 0 - 3: tokens see cells of 4"
std::string mask_name(const Mask& mask) {
  std::string layer = mask.layer;
  if (mask.heads) layer += fmt::format(", head{} {}", mask.heads == 1 ? "" : "s", heads_of(mask));
  return fmt::format("{}: {} {} {}", layer, cell_name(mask.query_tokens), mask.heads ? "see" : "read", cell_name(mask.key_tokens));
}

std::string draw_mask(const Mask& mask, const std::string& name, double x, double y, int64_t tokens, int colour) {
  const double unit = kSide / static_cast<double>(tokens);
  std::string svg = svg_text(x, y - 24, "ink", "", name.substr(0, name.find(": "))) +
                    svg_text(x, y - 8, "muted", "", name.substr(std::min(name.size(), name.find(": ") + 2)));
  for (int64_t i = 0, end = 0; i < std::ssize(mask.rows); i = end) {
    // Rows that see the same are one rectangle.
    const auto [first_key, end_key] = mask.rows[static_cast<size_t>(i)];
    for (end = i + 1; end < std::ssize(mask.rows) && mask.rows[static_cast<size_t>(end)].first == first_key &&
                      mask.rows[static_cast<size_t>(end)].end == end_key;)
      ++end;
    if (end_key <= first_key) continue;
    svg += svg_rectangle(x + unit * static_cast<double>(first_key * mask.key_tokens), y + unit * static_cast<double>(i * mask.query_tokens),
        unit * static_cast<double>((end_key - first_key) * mask.key_tokens), unit * static_cast<double>((end - i) * mask.query_tokens),
        fmt::format("class=\"f{}\" shape-rendering=\"crispEdges\"", colour));
  }
  // Lines between cells, where there is room for them.
  for (int64_t t = mask.key_tokens; t < tokens && unit * static_cast<double>(mask.key_tokens) >= 4; t += mask.key_tokens)
    svg += svg_line(x + unit * static_cast<double>(t), y, x + unit * static_cast<double>(t), y + kSide, "grid");
  for (int64_t t = mask.query_tokens; t < tokens && unit * static_cast<double>(mask.query_tokens) >= 4; t += mask.query_tokens)
    svg += svg_line(x, y + unit * static_cast<double>(t), x + kSide, y + unit * static_cast<double>(t), "grid");
  return svg + svg_rectangle(x, y, kSide, kSide, "class=\"axis\" fill=\"none\"");
}

int64_t keys_seen(const Mask::Row& row) { return std::max<int64_t>(0, row.end - row.first); }

ResultTable table_of(const std::vector<Mask>& masks) {
  ResultTable table;
  const auto add = [&](Column column, const auto& value) { table.add(std::move(column), masks, value); };
  add({.heading = "layer", .key = "layer", .left = true}, &Mask::layer);
  add({.heading = "queries", .left = true}, [](const Mask& mask) { return cell_name(mask.query_tokens); });
  add({.heading = "keys", .left = true}, [](const Mask& mask) { return cell_name(mask.key_tokens); });
  add({.heading = "heads"}, heads_of);
  add({.heading = "mean keys", .format = "{:.1f}"}, [](const Mask& mask) {
    double keys = 0;
    for (const Mask::Row& row : mask.rows) keys += static_cast<double>(keys_seen(row));
    return mask.rows.empty() ? 0 : keys / static_cast<double>(mask.rows.size());
  });
  add({.heading = "most"}, [](const Mask& mask) {
    int64_t max = 0;
    for (const Mask::Row& row : mask.rows) max = std::max(max, keys_seen(row));
    return max;
  });
  add({.heading = "first"}, [](const Mask& mask) {
    const auto first = std::find_if(mask.rows.begin(), mask.rows.end(), keys_seen);
    return first == mask.rows.end() ? Json("none") : Json(first - mask.rows.begin());
  });
  add({.key = "query_tokens"}, &Mask::query_tokens);
  add({.key = "key_tokens"}, &Mask::key_tokens);
  add({.key = "first_head"}, &Mask::first_head);
  add({.key = "heads"}, &Mask::heads);
  add({.key = "keys"}, &Mask::keys);
  add({.key = "rows"}, [](const Mask& mask) {
    return values_of(mask.rows, [](const Mask::Row& row) { return keys_seen(row) ? Json::array({row.first, row.end}) : Json::array(); });
  });
  return table;
}

struct MaskedModel {
  std::string title = {};
  std::vector<Mask> masks;
  int64_t tokens = 1;  // the longest side of a mask
};

// The masks of a model side by side, each with the tokens of the text from left to right. Every query is a row as tall as its cell; what it
// sees is filled, from the first token of the first cell to the last token of the last one. Returns where it ends.
double draw_model(std::string& svg, const MaskedModel& model, double top) {
  svg += svg_text(kEdge, top, "ink", " font-size=\"17\" font-weight=\"600\"", model.title);
  svg += svg_text(kEdge, top + 20, "muted", "",
      fmt::format("rows: what sees, from the first of {} tokens down; columns: the tokens that are seen", model.tokens));
  const double step = kSide + kGap, tall = kName + kSide + kFoot;
  for (int64_t i = 0; i < std::ssize(model.masks); ++i) {
    const Mask& mask = model.masks[static_cast<size_t>(i)];
    const int colour = mask.key_tokens == 1 ? 0 : 1 + static_cast<int>(std::lround(std::log2(static_cast<double>(mask.key_tokens)))) / 2;
    svg += draw_mask(mask, mask_name(mask), kEdge + step * static_cast<double>(i % kColumns),
        top + kTop - 30 + kName + tall * static_cast<double>(i / kColumns), model.tokens, colour % kColours);
  }
  return top + kTop - 30 + tall * static_cast<double>((std::ssize(model.masks) + kColumns - 1) / kColumns);
}

// The models under each other.
std::string mask_drawing(const std::string& title, const std::vector<MaskedModel>& models, Theme theme, bool with_style) {
  double width = 520, height = 30;
  std::string svg;
  for (const MaskedModel& model : models) {
    const auto columns = static_cast<double>(std::min<int64_t>(kColumns, std::ssize(model.masks)));
    width = std::max(width, 2 * kEdge + (kSide + kGap) * columns - kGap);
    height = draw_model(svg, model, height) + (&model == &models.back() ? 26 : 30);
  }
  const std::string rules = ".grid{stroke-width:.6} .axis{stroke-width:1}\n" + (with_style ? style_of(theme) : "");
  return svg_head(width, height, 12, title, rules) + svg + "</svg>\n";
}

// A report and what it draws.
std::pair<Report, MaskedModel> masks_of(const std::string& given, const MasksOptions& options) {
  ModelConfig config = request_run(given, options.run.overrides).config.model;
  config.vocab = 1;                    // masks do not depend on the vocabulary, which would be most of the weights
  constexpr int64_t kMaxTokens = 256;  // whose rows can still be told apart
  const int64_t tokens = std::min(options.tokens.value_or(kMaxTokens), config.ctx);
  MaskedModel drawn{.masks = ricci::masks(Model(config), tokens)};
  if (drawn.masks.empty()) fail("masks: a text of {} tokens, which is shorter than a cell", {tokens});
  for (const Mask& mask : drawn.masks)
    drawn.tokens = std::max({drawn.tokens, std::ssize(mask.rows) * mask.query_tokens, mask.keys * mask.key_tokens});
  const std::string file = given.empty() ? "the default model" : given;
  const bool mixes = config.traits().mixes;
  drawn.title = fmt::format(
      "{}: {}{}, {} tokens", file, ricci::name_of(config.family), mixes ? fmt::format(", {}", ricci::name_of(config.mixer)) : "", tokens);
  Report report{.title = drawn.title,
      .table = table_of(drawn.masks),
      .notes = {"mean keys, most: of the keys that a query sees; first: the first query that sees one"}};
  report.json = {{"model", file}, {"tokens", tokens}, {"masks", json_of(report.table)}};
  return {report, drawn};
}

}  // namespace

Report analyse_masks(const MasksOptions& options) {
  std::vector<std::pair<std::string, Report>> reports;
  std::vector<MaskedModel> models;
  for (const std::string& file : options.run.files) {
    auto [report, drawn] = masks_of(file, options);
    reports.emplace_back(file, std::move(report));
    models.push_back(std::move(drawn));
  }
  Report all = stacked(fmt::format("what the queries of {} models see", models.size()), reports);
  all.drawing = [models, title = all.title](Theme theme, bool with_style) { return mask_drawing(title, models, theme, with_style); };
  return all;
}

}  // namespace ricci::apps
