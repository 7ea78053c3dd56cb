#include "apps/lab/analysis/masks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/run/folder/run_folder.h"
#include "core/error.h"
#include "models/model.h"

namespace ricci::apps {
namespace {

using json = nlohmann::ordered_json;

constexpr double kEdge = 24, kSide = 268, kGap = 34, kTop = 62, kName = 40, kFoot = 26;
constexpr int64_t kColumns = 3;

std::string cell_name(int64_t tokens) { return tokens == 1 ? "tokens" : fmt::format("cells of {}", tokens); }

std::string rectangle(double x, double y, double width, double height, const std::string& attributes) {
  return fmt::format("<rect x=\"{:.6g}\" y=\"{:.6g}\" width=\"{:.6g}\" height=\"{:.6g}\" {}/>\n", x, y, width, height, attributes);
}

std::string line(double x1, double y1, double x2, double y2) {
  return fmt::format("<line x1=\"{:.6g}\" y1=\"{:.6g}\" x2=\"{:.6g}\" y2=\"{:.6g}\" class=\"grid\"/>\n", x1, y1, x2, y2);
}

std::string text(double x, double y, const char* classes, const std::string& content) {
  return fmt::format("<text x=\"{:.6g}\" y=\"{:.6g}\" class=\"{}\">{}</text>\n", x, y, classes, escaped(content));
}

std::string draw_mask(const Mask& mask, const std::string& name, double x, double y, int64_t tokens, int colour) {
  const double unit = kSide / static_cast<double>(tokens);
  std::string svg = text(x, y - 24, "ink", name.substr(0, name.find(": "))) +
                    text(x, y - 8, "muted", name.substr(std::min(name.size(), name.find(": ") + 2)));
  for (int64_t i = 0, end = 0; i < std::ssize(mask.rows); i = end) {
    // Rows that see the same are one rectangle.
    const auto [first_key, end_key] = mask.rows[static_cast<size_t>(i)];
    for (end = i + 1; end < std::ssize(mask.rows) && mask.rows[static_cast<size_t>(end)].first == first_key &&
                      mask.rows[static_cast<size_t>(end)].end == end_key;)
      ++end;
    if (end_key <= first_key) continue;
    svg += rectangle(x + unit * static_cast<double>(first_key * mask.key_tokens), y + unit * static_cast<double>(i * mask.query_tokens),
        unit * static_cast<double>((end_key - first_key) * mask.key_tokens), unit * static_cast<double>((end - i) * mask.query_tokens),
        fmt::format("class=\"f{}\" shape-rendering=\"crispEdges\"", colour));
  }
  // Lines between cells, where there is room for them.
  for (int64_t t = mask.key_tokens; t < tokens && unit * static_cast<double>(mask.key_tokens) >= 4; t += mask.key_tokens)
    svg += line(x + unit * static_cast<double>(t), y, x + unit * static_cast<double>(t), y + kSide);
  for (int64_t t = mask.query_tokens; t < tokens && unit * static_cast<double>(mask.query_tokens) >= 4; t += mask.query_tokens)
    svg += line(x, y + unit * static_cast<double>(t), x + kSide, y + unit * static_cast<double>(t));
  return svg + rectangle(x, y, kSide, kSide, "class=\"axis\" fill=\"none\"");
}

double mean_keys(const Mask& mask) {
  double keys = 0;
  for (const Mask::Row& row : mask.rows) keys += static_cast<double>(std::max<int64_t>(0, row.end - row.first));
  return mask.rows.empty() ? 0 : keys / static_cast<double>(mask.rows.size());
}

int64_t most_keys(const Mask& mask) {
  int64_t most = 0;
  for (const Mask::Row& row : mask.rows) most = std::max(most, row.end - row.first);
  return most;
}

int64_t first_query(const Mask& mask) {  // that sees a key; -1: none
  for (size_t i = 0; i < mask.rows.size(); ++i)
    if (mask.rows[i].end > mask.rows[i].first) return static_cast<int64_t>(i);
  return -1;
}

std::string heads_of(const Mask& mask) {
  if (mask.heads == 0) return "-";
  return mask.heads == 1 ? std::to_string(mask.first_head) : fmt::format("{} - {}", mask.first_head, mask.first_head + mask.heads - 1);
}

std::string json_of(const std::string& file, int64_t tokens, const std::vector<Mask>& masks) {
  json all = json::array();
  for (const Mask& mask : masks) {
    json rows = json::array();
    for (const Mask::Row& row : mask.rows) rows.push_back(row.end > row.first ? json{row.first, row.end} : json::array());
    all.push_back({{"layer", mask.layer}, {"query_tokens", mask.query_tokens}, {"key_tokens", mask.key_tokens},
        {"first_head", mask.first_head}, {"heads", mask.heads}, {"keys", mask.keys}, {"rows", std::move(rows)}});
  }
  return json{{"model", file}, {"tokens", tokens}, {"masks", std::move(all)}}.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Masks do not depend on the vocabulary, which is left out: it would be most of the weights.
ModelConfig config_of(const MasksOptions& options) {
  ModelConfig config = request_run(options.run.file(), options.run.overrides()).config.model;
  config.vocab = 1;
  return config;
}

}  // namespace

std::string name_of(const Mask& mask) {
  const std::string who = mask.heads == 0   ? mask.layer
                          : mask.heads == 1 ? fmt::format("{}, head {}", mask.layer, mask.first_head)
                                            : fmt::format("{}, heads {}", mask.layer, heads_of(mask));
  return fmt::format("{}: {} {} {}", who, cell_name(mask.query_tokens), mask.heads ? "see" : "hear", cell_name(mask.key_tokens));
}

std::string mask_drawing(
    const std::string& title, const std::vector<Mask>& masks, const std::vector<std::string>& names, Theme theme, bool with_style) {
  int64_t tokens = 1;
  for (const Mask& mask : masks) tokens = std::max({tokens, std::ssize(mask.rows) * mask.query_tokens, mask.keys * mask.key_tokens});
  const auto columns = std::min<int64_t>(kColumns, std::ssize(masks)), rows = (std::ssize(masks) + kColumns - 1) / kColumns;
  const double step = kSide + kGap, tall = kName + kSide + kFoot;
  const double width = std::max(2 * kEdge + step * static_cast<double>(columns) - kGap, 520.0),
               height = kTop + tall * static_cast<double>(rows) + 26;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.6g} {1:.6g}\" width=\"{0:.6g}\" height=\"{1:.6g}\" role=\"img\" "
      "font-family=\"system-ui, 'DejaVu Sans', Arial, sans-serif\" font-size=\"12\">\n<title>{2}</title>\n",
      width, height, escaped(title));
  svg += "<style>\n.grid{stroke-width:.6} .axis{stroke-width:1}\n" + (with_style ? style_of(theme) : "") + "</style>\n";
  svg += rectangle(0, 0, width, height, "class=\"background\"");
  svg += fmt::format("<text x=\"{}\" y=\"30\" class=\"ink\" font-size=\"17\" font-weight=\"600\">{}</text>\n", kEdge, escaped(title));
  svg +=
      text(kEdge, 50, "muted", fmt::format("rows: what sees, from the first of {} tokens down; columns: the tokens that are seen", tokens));
  for (int64_t i = 0; i < std::ssize(masks); ++i) {
    const Mask& mask = masks[static_cast<size_t>(i)];
    const int colour = mask.key_tokens == 1 ? 0 : 1 + static_cast<int>(std::lround(std::log2(static_cast<double>(mask.key_tokens)))) / 2;
    svg += draw_mask(mask, names[static_cast<size_t>(i)], kEdge + step * static_cast<double>(i % kColumns),
        kTop + kName + tall * static_cast<double>(i / kColumns), tokens, colour % kColours);
  }
  return svg + "</svg>\n";
}

Report analyse_masks(const MasksOptions& options) {
  const ModelConfig config = config_of(options);
  constexpr int64_t kMaxTokens = 256;  // whose rows can still be told apart
  const int64_t tokens = std::min(options.tokens ? options.tokens : kMaxTokens, config.ctx);
  const std::vector<Mask> masks = ricci::masks(Model(config), tokens);
  if (masks.empty()) fail("masks: a text of {} tokens, which is shorter than a cell", {tokens});
  const std::string file = options.run.file().empty() ? "the default model" : options.run.file();
  std::vector<std::string> names;
  Report report;
  const bool mixes = config.traits().mixes;
  report.title =
      fmt::format("{}: {}{}, {} tokens", file, name_of(config.family), mixes ? fmt::format(", {}", name_of(config.mixer)) : "", tokens);
  report.texts = 3, report.table = {{"layer", "queries", "keys", "heads", "keys seen, mean", "most", "first query that sees one"}};
  for (const Mask& mask : masks) {
    names.push_back(name_of(mask));
    const int64_t first = first_query(mask);
    report.table.push_back({mask.layer, cell_name(mask.query_tokens), cell_name(mask.key_tokens), heads_of(mask),
        fmt::format("{:.1f}", mean_keys(mask)), std::to_string(most_keys(mask)), first < 0 ? "none" : std::to_string(first)});
  }
  report.json = json_of(file, tokens, masks);
  report.svg = [=, title = report.title](Theme theme, bool with_style) { return mask_drawing(title, masks, names, theme, with_style); };
  return report;
}

}  // namespace ricci::apps
