#include "apps/lab/inspection/report.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "apps/terminal/progress.h"
#include "core/files/file.h"

namespace ricci::apps {
namespace {

using json = nlohmann::ordered_json;

double rounded(double value) { return std::isfinite(value) ? std::strtod(fmt::format("{:.8g}", value).c_str(), nullptr) : value; }

json row_of(const double* first, int64_t count) {
  json row = json::array();
  for (int64_t i = 0; i < count; ++i) row.push_back(rounded(first[i]));
  return row;
}
json rows_of(const std::vector<double>& values, int64_t columns) {
  json rows = json::array();
  for (size_t i = 0; i < values.size(); i += static_cast<size_t>(columns)) rows.push_back(row_of(values.data() + i, columns));
  return rows;
}

json tokens_of(const std::vector<int64_t>& ids, const std::vector<std::string>& names) {
  json list = json::array();
  for (size_t i = 0; i < ids.size(); ++i) list.push_back({{"id", ids[i]}, {"token", names[i]}});
  return list;
}

json nearest_of(const Found& found, const HeadFound& head) {
  json list = json::array();
  for (size_t i = 0; i < head.nearest.size(); ++i) {
    json neighbours = json::array();
    for (const Neighbour& each : head.nearest[i])
      neighbours.push_back({{"id", each.id}, {"token", found.vocabulary[static_cast<size_t>(each.id)]},
          {"squared_distance", rounded(each.squared_distance)}});
    list.push_back({{"id", found.token_ids[i]}, {"token", found.tokens[i]}, {"neighbours", std::move(neighbours)}});
  }
  return list;
}

json head_of(const Found& found, const LayerFound& layer, const HeadFound& head) {
  json result{{"head", head.head}};
  const Observation& seen = layer.seen;
  if (const auto [table_bcC, key_scale] = table_of(layer, head.head); table_bcC) {
    if (layer.tokens * key_scale > 1) result["key_tokens"] = layer.tokens * key_scale;
    result["scores"] = rows_of(of_head(table_bcC, 0), table_bcC.shape()[2]);
  }
  if (seen.coefficients_bncr)
    result["coefficients"] = rows_of(of_head(seen.coefficients_bncr, head.head), seen.coefficients_bncr.shape()[3]);
  if (const Tensor& m = layer.forms.m_nkK) {
    if (m.shape()[1] <= kMaxColumns) result["matrix"] = rows_of(of_head(m, head.head), m.shape()[1]);
    result["symmetric"] = layer.forms.symmetric;
    result[layer.forms.symmetric ? "eigenvalues" : "singular_values"] =
        row_of(head.spectrum.data(), static_cast<int64_t>(head.spectrum.size()));
  }
  if (head.nearest.empty()) return result;
  result["squared_distances"] = rows_of(head.squared_distances, static_cast<int64_t>(found.tokens.size()));
  result["nearest"] = nearest_of(found, head);
  return result;
}

std::string nearest_table(const Found& found, const LayerFound& layer, const HeadFound& head) {
  std::string html = fmt::format(
      "<table>\n<tr><th>{}, head {}: token</th><th>its nearest tokens in the whole vocabulary, with squared distances</th></tr>\n",
      layer.name, head.head);
  for (size_t i = 0; i < head.nearest.size(); ++i) {
    html += "<tr><td>" + escaped(found.tokens[i]) + "</td><td>";
    for (const Neighbour& each : head.nearest[i])
      html += (&each == head.nearest[i].data() ? "" : ", ") + escaped(found.vocabulary[static_cast<size_t>(each.id)]) +
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
  for (const std::string& token : found.text) text += escaped(token);
  std::string html;
  html += fmt::format("<p>mixer {}, the first {} tokens of the text:</p>\n<pre>{}</pre>\n", escaped(found.mixer), found.text.size(), text);
  for (const std::string& line : found.missing) html += "<p class=\"muted\">" + escaped(line) + "</p>\n";
  for (const LayerFound& layer : found.layers) html += layer_section(found, layer, pictures, theme);
  return text_page(found.run, html, theme);
}

std::string json_of(const Found& found) {
  json result{{"run", found.run}, {"mixer", found.mixer}, {"text", tokens_of(found.text_ids, found.text)},
      {"tokens", tokens_of(found.token_ids, found.tokens)}, {"missing", found.missing}};
  result["layers"] = json::array();
  for (const LayerFound& layer : found.layers) {
    json heads = json::array();
    for (const HeadFound& head : layer.heads) heads.push_back(head_of(found, layer, head));
    result["layers"].push_back({{"layer", layer.layer}, {"name", layer.name}, {"query_tokens", layer.tokens}, {"heads", std::move(heads)}});
  }
  return result.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

int64_t write_report(const std::string& folder, const Found& found, Theme theme) {
  make_folders(folder);
  const Folder open(folder);
  const std::vector<Picture> pictures = pictures_of(found);
  Progress progress({.steps = static_cast<int64_t>(pictures.size()), .unit = "drawing", .out = stderr});
  int64_t files = 0;
  for (const Picture& picture : pictures) {
    write_file_atomically({open, picture.name + ".svg"}, picture.svg(theme, true));
    progress.update(++files, 0);
  }
  write_file_atomically({open, "inspect.json"}, json_of(found));
  write_file_atomically({open, "index.html"}, page_of(found, pictures, theme));
  return files + 2;
}

}  // namespace ricci::apps
