#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <span>

#include "apps/lab/inspection/inspection.h"
#include "apps/terminal/progress.h"
#include "core/files/file.h"

namespace ricci::apps {
namespace {

double rounded(double value) { return std::isfinite(value) ? std::strtod(fmt::format("{:.8g}", value).c_str(), nullptr) : value; }

Json rows_of(std::span<const double> values, int64_t columns) {
  Json rows = Json::array();
  for (; !values.empty(); values = values.subspan(static_cast<size_t>(columns)))
    rows.push_back(values_of(values.first(static_cast<size_t>(columns)), rounded));
  return rows;
}
Json rows_of(const Tensor& t_nxy, int64_t head) { return rows_of(of_head(t_nxy, head), t_nxy.shape()[-1]); }

Json tokens_of(const Found& found, const std::vector<int64_t>& ids) {
  return values_of(ids, [&](int64_t id) { return Json{{"id", id}, {"token", found.token(id)}}; });
}

Json as_json(const Found& found, const HeadFound& head, size_t token) {
  const int64_t id = found.token_ids[token];
  const auto neighbour = [&](const Neighbour& each) {
    return Json{{"id", each.id}, {"token", found.token(each.id)}, {"squared_distance", rounded(each.squared_distance)}};
  };
  return {{"id", id}, {"token", found.token(id)}, {"neighbours", values_of(head.nearest[token], neighbour)}};
}

Json as_json(const Found& found, const LayerFound& layer, const HeadFound& head) {
  const auto [table_bcC, key_scale] = table_of(layer, head.head);
  const Tensor& m_nkK = layer.forms.m_nkK;
  Json result = {{"head", head.head}};
  if (table_bcC && layer.tokens * key_scale > 1) result["key_tokens"] = layer.tokens * key_scale;
  if (table_bcC) result["scores"] = rows_of(table_bcC, 0);
  if (layer.seen.coefficients_bncr) result["coefficients"] = rows_of(layer.seen.coefficients_bncr, head.head);
  if (m_nkK) {
    if (m_nkK.shape()[1] <= kMaxColumns) result["matrix"] = rows_of(m_nkK, head.head);
    result["symmetric"] = layer.forms.symmetric;
    result[layer.forms.symmetric ? "eigenvalues" : "singular_values"] = values_of(head.spectrum, rounded);
  }
  if (head.nearest.empty()) return result;
  result["squared_distances"] = rows_of(head.squared_distances, std::ssize(found.token_ids));
  for (size_t i = 0; i < head.nearest.size(); ++i) result["nearest"].push_back(as_json(found, head, i));
  return result;
}

std::string nearest_table(const Found& found, const LayerFound& layer, const HeadFound& head) {
  std::string html = fmt::format(
      "<table>\n<tr><th>{}, head {}: token</th><th>its nearest tokens in the whole vocabulary, with squared distances</th></tr>\n",
      layer.name, head.head);
  for (size_t i = 0; i < head.nearest.size(); ++i) {
    html += "<tr><td>" + escaped(found.token(found.token_ids[i])) + "</td><td>";
    for (const Neighbour& each : head.nearest[i])
      html += (&each == head.nearest[i].data() ? "" : ", ") + escaped(found.token(each.id)) +
              fmt::format(" <span class=\"muted\">{:.3g}</span>", each.squared_distance);
    html += "</td></tr>\n";
  }
  return html + "</table>\n";
}

std::string layer_section(const Found& found, const LayerFound& layer, const std::vector<Picture>& pictures, Theme theme) {
  std::string html = fmt::format("<h2>L{}</h2>\n<div class=\"row\">\n", layer.name.substr(1));
  for (const Picture& picture : pictures) {
    if (picture.layer != layer.layer) continue;
    html += fmt::format("<figure{}>\n", picture.name.ends_with("_spectrum") ? " class=\"wide\"" : "") + picture.svg(theme, false) +
            "<figcaption>" + escaped(picture.sentence) + "</figcaption>\n</figure>\n";
  }
  html += "</div>\n";
  for (const HeadFound& head : layer.heads)
    if (!head.nearest.empty()) html += nearest_table(found, layer, head);
  return html;
}

}  // namespace

std::string page_of(const Found& found, const std::vector<Picture>& pictures, Theme theme) {
  std::string text;
  for (const int64_t id : found.text_ids) text += escaped(found.token(id));
  std::string html =
      fmt::format("<p>mixer {}, the first {} tokens of the text:</p>\n<pre>{}</pre>\n", escaped(found.mixer), found.text_ids.size(), text);
  for (const std::string& line : found.missing) html += "<p class=\"muted\">" + escaped(line) + "</p>\n";
  for (const LayerFound& layer : found.layers) html += layer_section(found, layer, pictures, theme);
  return text_page(found.run, html, theme);
}

std::string json_of(const Found& found) {
  const auto layer_json = [&](const LayerFound& layer) {
    const auto head_json = [&](const HeadFound& head) { return as_json(found, layer, head); };
    return Json{{"layer", layer.layer}, {"name", layer.name}, {"query_tokens", layer.tokens}, {"heads", values_of(layer.heads, head_json)}};
  };
  const Json all{{"run", found.run}, {"mixer", found.mixer}, {"text", tokens_of(found, found.text_ids)},
      {"tokens", tokens_of(found, found.token_ids)}, {"missing", found.missing}, {"layers", values_of(found.layers, layer_json)}};
  return to_text(all) + "\n";
}

int64_t write_report(const std::string& folder, const Found& found, Theme theme) {
  make_folders(folder);
  const std::vector<Picture> pictures = pictures_of(found);
  Progress progress({.steps = static_cast<int64_t>(pictures.size()), .unit = "drawing", .out = stderr});
  int64_t files = 0;
  for (const Picture& picture : pictures) {
    write_atomically(folder + "/" + picture.name + ".svg", picture.svg(theme, true));
    progress.update(++files, 0);
  }
  write_atomically(folder + "/inspect.json", json_of(found));
  write_atomically(folder + "/index.html", page_of(found, pictures, theme));
  return files + 2;
}

}  // namespace ricci::apps
