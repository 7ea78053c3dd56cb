#include <fmt/format.h>

#include "apps/lab/drawing/heat_map.h"
#include "apps/lab/inspection/inspection.h"

namespace ricci::apps {
namespace {

void add(std::vector<Picture>& all, const LayerFound& layer, int64_t head, const char* kind, HeatMap map, std::string sentence) {
  map.title = fmt::format("{}, head {}: {}", layer.name, head, map.title);
  if (const int64_t block = shrunk(map).block; block > 1)
    sentence += fmt::format(" A cell is the largest in magnitude of {0} x {0} numbers.", block);
  all.push_back({fmt::format("layer{}_head{}_{}", layer.layer, head, kind), sentence, layer.layer,
      [map = std::move(map)](Theme theme, bool with_style) { return to_svg(map, theme, with_style); }});
}

// "position", or "cell of 4".
std::string reader(int64_t tokens) { return tokens == 1 ? "position" : fmt::format("cell of {}", tokens); }

void add_scores(std::vector<Picture>& all, const Found& found, const LayerFound& layer) {
  const bool dispatches = static_cast<bool>(layer.seen.coefficients_bncr);
  const std::string sentence =
      dispatches ? "Row i shows what the value of position j is multiplied by before it is added to position i: the product of the "
                   "coefficients on its way there."
                 : "Row i shows how much of the value of position j goes into position i: the softmax of the scores, which adds up to 1.";
  for (const HeadFound& head : layer.heads) {
    const auto [table_bcC, key_scale] = table_of(layer, head.head);
    if (!table_bcC) continue;
    const int64_t key_tokens = layer.tokens * key_scale;
    add(all, layer, head.head, "scores",
        {dispatches ? "products of coefficients" : "scores", reader(layer.tokens) + " that reads", reader(key_tokens) + " that is read",
            cell_texts(found, layer.tokens), cell_texts(found, key_tokens), table_bcC.shape()[2], of_head(table_bcC, 0)},
        sentence);
  }
}

void add_coefficients(std::vector<Picture>& all, const Found& found, const LayerFound& layer) {
  if (!layer.seen.coefficients_bncr) return;
  const Tensor levels_bnrc = transpose(layer.seen.coefficients_bncr, 2, 3);
  for (const HeadFound& head : layer.heads)
    add(all, layer, head.head, "coefficients",
        {"dispatching coefficients", "level", "position", {}, found.tokens(found.text_ids), levels_bnrc.shape()[3],
            of_head(levels_bnrc, head.head)},
        "Level r shows the factor of the sum that each position reads from 2^r positions before it.");
}

void add_matrices(std::vector<Picture>& all, const Found&, const LayerFound& layer) {
  if (!layer.forms.m_nkK) return;
  std::string sentence = layer.forms.of_input
                             ? "The score of two positions is the product of their inputs with this matrix between them, divided by "
                               "the root of the head's width."
                             : "The score of two positions is the product of their projections with this matrix between them, "
                               "divided by the root of the head's width.";
  if (layer.forms.turned) sentence += " That is the score at distance 0: between Wq and Wk comes the rotation by the distance of the two.";
  for (const HeadFound& head : layer.heads)
    add(all, layer, head.head, "matrix",
        {layer.forms.name, "component of the position that reads", "component of the position that is read", {}, {},
            layer.forms.m_nkK.shape()[1], of_head(layer.forms.m_nkK, head.head)},
        sentence);
}

// One chart per layer, with a curve per head.
void add_spectrum(std::vector<Picture>& all, const Found&, const LayerFound& layer) {
  if (!layer.forms.m_nkK) return;
  const char* const numbers = layer.forms.symmetric ? "eigenvalues" : "singular values";
  Chart chart{.title = fmt::format("{}: {} of {}", layer.name, numbers, layer.forms.name),
      .x_name = "number, from the largest on",
      .whole_x = true,
      .panels = {{numbers, ""}}};
  for (const HeadFound& head : layer.heads) {
    std::vector<Point> points;
    for (size_t n = 0; n < head.spectrum.size(); ++n)
      if (drawable(head.spectrum[n])) points.push_back({static_cast<double>(n + 1), head.spectrum[n]});
    add_curves(chart, fmt::format("head {}", head.head), {points}, false);
  }
  const std::string sentence =
      layer.forms.symmetric ? "Along the directions of large eigenvalues positions that are alike score high, along the directions of "
                              "negative ones positions that are opposite; where all are alike, every direction counts the same."
                            : "The number of large ones is the number of directions of the input that the scores depend on.";
  all.push_back({fmt::format("layer{}_spectrum", layer.layer), sentence, layer.layer,
      [chart](Theme theme, bool with_style) { return to_svg(chart, theme, with_style); }});
}

void add_distances(std::vector<Picture>& all, const Found& found, const LayerFound& layer) {
  const std::vector<std::string> names = found.tokens(found.token_ids);
  for (const HeadFound& head : layer.heads) {
    if (head.nearest.empty()) continue;
    std::string sentence =
        "The squared distance of two tokens under the metric of the head, as their embeddings alone come to this layer, without positions "
        "or neighbours.";
    if (!layer.forms.positive)
      sentence += " The metric is not positive: squares below 0 occur, where two tokens differ along directions of negative eigenvalues.";
    add(all, layer, head.head, "distances",
        {"squared distances of tokens", "token", "token", names, names, std::ssize(names), head.squared_distances}, sentence);
  }
}

}  // namespace

std::vector<Picture> pictures_of(const Found& found) {
  std::vector<Picture> all;
  for (const LayerFound& layer : found.layers)
    for (const auto& each : {add_scores, add_coefficients, add_matrices, add_spectrum, add_distances}) each(all, found, layer);
  return all;
}

}  // namespace ricci::apps
