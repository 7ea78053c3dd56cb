#include "apps/lab/inspection/inspection.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>

#include "apps/terminal/progress.h"
#include "core/error.h"
#include "core/files/file.h"
#include "cuda/verbs/arithmetic.h"
#include "models/inspection/layers.h"
#include "models/inspection/observation.h"
#include "models/inspection/spectrum.h"
#include "models/inspection/token_distances.h"

namespace ricci::apps {
namespace {

// The requested indices, or all. Error: an index is not below count.
std::set<int64_t> chosen(const char* option, const std::vector<int64_t>& requested, int64_t count, const char* what) {
  std::set<int64_t> numbers(requested.begin(), requested.end());
  if (requested.empty())
    for (int64_t i = 0; i < count; ++i) numbers.insert(i);
  if (*numbers.rbegin() >= count) fail("{}: {}, but the model has {} {}", {option, *numbers.rbegin(), count, what});
  return numbers;
}

// The largest number of heads in a layer.
int64_t heads_of(const ModelConfig& config) {
  int64_t heads = 1;
  each_mixer(config, [&]<class M>() {
    if constexpr (requires(const typename M::Config& c) { c.heads; }) heads = std::max(heads, config.settings<M>().heads);
  });
  return heads;
}

std::vector<int64_t> most_frequent(const std::vector<int64_t>& ids) {
  std::map<int64_t, int64_t> counts;
  for (const int64_t id : ids) ++counts[id];
  std::vector<int64_t> tokens;
  for (const auto& [id, count] : counts) tokens.push_back(id);
  return best_of(tokens, 16, [&](int64_t a, int64_t b) { return counts[a] != counts[b] ? counts[a] > counts[b] : a < b; });
}

// The id of a vocabulary token, or of a text that is one token.
int64_t id_of(const Tokenizer& tokenizer, const std::string& text) {
  if (const int64_t id = tokenizer.find(text); id >= 0) return id;
  const std::vector<int64_t> ids = tokenizer.encode(text);
  if (ids.size() != 1) fail("--token: '{}' is {} tokens, expected one", {one_line(text), ids.size()});
  return ids[0];
}

std::string layer_name(int64_t number, const MixingLayer& layer) {
  const std::string name = format_message("layer {}", {number});
  if (layer.kind != "attention") return name + " (" + layer.kind + ")";
  return layer.tokens == 1 ? name : name + format_message(" (cells of {})", {layer.tokens});
}

// The text of each token, or of each complete cell.
std::vector<std::string> texts_of(const Inspection& found, const std::vector<int64_t>& ids, int64_t tokens = 1) {
  std::vector<std::string> texts;
  for (auto first = ids.begin(); ids.end() - first >= tokens; first += tokens)
    texts.push_back(shown(*found.tokenizer, {first, first + tokens}, true));
  return texts;
}

// The elements of a head of a tensor [n x y] or [1 n x y], row by row.
std::vector<double> numbers_of(const Tensor& t_nxy, int64_t head) {
  const int64_t size = t_nxy.shape()[-1] * t_nxy.shape()[-2];
  const double* const first = t_nxy.data<double>() + head * size;
  return {first, first + size};
}

void add_tables(InspectedHead& head, const Inspection& found, int64_t query_tokens, const Observation& seen, const Forms& forms) {
  const auto cell = [](int64_t tokens) { return tokens == 1 ? "position" : format_message("cell of {}", {tokens}); };
  const Tensor& coefficients_bncr = seen.coefficients_bncr;
  const Tensor scores_bcC = seen.heads.empty() ? Tensor() : seen.heads.at(static_cast<size_t>(head.head)).table_bcC;
  if (scores_bcC) {
    const int64_t key_tokens = head.key_tokens = query_tokens * seen.heads[static_cast<size_t>(head.head)].key_scale;
    InspectedTable& table = head.tables.emplace_back(InspectedTable{"scores", {}, {}});
    table.map = {"scores", cell(query_tokens) + " (query)", cell(key_tokens) + " (key)", texts_of(found, found.text_ids, query_tokens),
        texts_of(found, found.text_ids, key_tokens), scores_bcC.shape()[2], numbers_of(scores_bcC, 0)};
    table.caption = "Row i shows the weight of the value of position j in position i: the softmax of the scores. Each row adds up to 1.";
    if (coefficients_bncr) {
      table.map.title = "products of coefficients";
      table.caption = "Row i shows the factor of the value of position j in position i: the product of the coefficients along the way "
                      "from j to i.";
    }
  }
  if (coefficients_bncr) {
    const Tensor levels_bnrc = transpose(coefficients_bncr, 2, 3);
    head.tables.push_back({"coefficients",
        {"dispatching coefficients", "level", "position", {}, texts_of(found, found.text_ids), levels_bnrc.shape()[3],
            numbers_of(levels_bnrc, head.head)},
        "Level r shows the factor of the sum that each position adds from 2^r positions before it."});
  }
  if (const Tensor& m_nkK = forms.m_nkK) {
    const Tensor m_kk = m_nkK.rows(head.head, 1).reshaped({m_nkK.shape()[1], m_nkK.shape()[2]});
    head.spectrum = forms.symmetric ? eigenvalues(m_kk) : singular_values(m_kk);
    InspectedTable& table = head.tables.emplace_back(InspectedTable{"matrix", {}, {}});
    table.map = {forms.name, "component of the query", "component of the key", {}, {}, m_kk.shape()[1], numbers_of(m_nkK, head.head)};
    table.caption = format_message("The score of two positions is the product of their {} with this matrix between them, divided by the "
                                   "root of the head's width.",
        {forms.of_input ? "inputs" : "projections"});
    if (forms.turned) table.caption += " This is the score at distance 0: at other distances, a rotation comes between Wq and Wk.";
  }
}

// `distances`: from each token to the tokens of the vocabulary, [token vocab].
void add_distances(InspectedHead& head, const Inspection& found, const std::vector<double>& distances, int64_t nearest, bool positive) {
  const std::vector<std::string> names = texts_of(found, found.token_ids);
  InspectedTable table{"distances", {"squared distances of tokens", "token", "token", names, names, std::ssize(names), {}},
      "The squared distance of two tokens under the head's metric, by their embeddings at this layer without positions or "
      "neighbours."};
  if (!positive)
    table.caption += " The metric is not positive: squares are below 0 if two tokens differ along directions of negative eigenvalues.";
  const size_t vocab = distances.size() / names.size();
  for (size_t i = 0; i < names.size(); ++i) {
    const double* const row = distances.data() + i * vocab;
    std::vector<Neighbour> others;
    for (int64_t id = 0; id < static_cast<int64_t>(vocab); ++id)
      if (id != found.token_ids[i]) others.push_back({row[id], id});
    head.nearest.push_back(best_of(others, nearest, std::less<>()));
    for (const int64_t other : found.token_ids) table.map.values.push_back(other == found.token_ids[i] ? 0 : row[other]);
  }
  head.tables.push_back(table);
}

// ---- Pictures
// The heading of a page row; each kind of table has a row.
std::string group_of(const InspectedLayer& layer, const InspectedTable& table) {
  return "L" + layer.name.substr(1) + ": " + table.map.title;
}

Picture picture_of(const InspectedLayer& layer, const InspectedHead& head, const InspectedTable& table) {
  HeatMap map = table.map;
  map.title = fmt::format("head {}", head.head);
  Picture picture = picture_of(map);
  picture.name = fmt::format("layer{}_head{}_{}", layer.layer, head.head, table.kind);
  picture.group = group_of(layer, table);
  if (head.head == layer.heads[0].head) picture.caption = table.caption;
  if (const int64_t block = block_of(map); block > 1 && !picture.caption.empty())
    picture.caption += fmt::format(" A cell is the largest in magnitude of {0} x {0} numbers.", block);
  return picture;
}

// Draws the spectra, with a colour for each head. Few values are drawn as dots, many as a line.
Picture spectrum_of(const InspectedLayer& layer, const InspectedTable& matrix) {
  const std::string numbers = layer.symmetric ? "eigenvalues" : "singular values";
  Chart chart{.x_name = "number, from the largest on", .whole_x = true, .panels = {{numbers + " of " + matrix.map.title, ""}}};
  std::vector<Curve>& curves = chart.panels[0].curves;
  for (size_t i = 0; i < layer.heads.size(); ++i) {
    const std::vector<double>& spectrum = layer.heads[i].spectrum;
    for (size_t n = 0; n < spectrum.size(); ++n) {
      if (n == 0 || spectrum.size() <= 16)
        curves.push_back({.name = fmt::format("head {}", layer.heads[i].head), .colour = static_cast<int>(i)});
      curves.back().points.push_back({static_cast<double>(n + 1), spectrum[n]});
    }
  }
  Picture picture = pictures_of(chart).at(0);
  picture.name = fmt::format("layer{}_spectrum", layer.layer);
  picture.group = group_of(layer, matrix);
  picture.caption = layer.symmetric
                        ? "Similar positions score high along directions of large eigenvalues, opposite positions along directions of "
                          "negative ones. If all eigenvalues are equal, all directions have equal weight."
                        : "Each large singular value is a direction of the input that the scores depend on.";
  return picture;
}

// ---- Numbers
double rounded(double value) { return std::isfinite(value) ? std::strtod(fmt::format("{:.8g}", value).c_str(), nullptr) : value; }

// Returns the rows, or the columns if `turned`.
Json rows_of(const HeatMap& map, bool turned) {
  Json rows = Json::array();
  const int64_t count = turned ? map.columns : map.rows(), length = turned ? map.rows() : map.columns;
  for (int64_t i = 0; i < count; ++i) {
    Json& row = rows.emplace_back(Json::array());
    for (int64_t j = 0; j < length; ++j) row.push_back(rounded(map.values[static_cast<size_t>(turned ? j * count + i : i * length + j)]));
  }
  return rows;
}

Json token_json(const Inspection& found, int64_t id) { return {{"id", id}, {"token", found.token(id)}}; }
Json tokens_json(const Inspection& found, const std::vector<int64_t>& ids) {
  return values_of(ids, [&](int64_t id) { return token_json(found, id); });
}

Json head_json(const Inspection& found, const InspectedLayer& layer, const InspectedHead& head) {
  Json result = {{"head", head.head}};
  if (head.key_tokens > 1) result["key_tokens"] = head.key_tokens;
  for (const InspectedTable& table : head.tables) {
    const bool is_matrix = table.kind == "matrix";
    if (!is_matrix || table.map.columns <= kMaxColumns)
      result[table.kind == "distances" ? "squared_distances" : table.kind] = rows_of(table.map, table.kind == "coefficients");
    if (!is_matrix) continue;
    result["symmetric"] = layer.symmetric;
    result[layer.symmetric ? "eigenvalues" : "singular_values"] = values_of(head.spectrum, rounded);
  }
  for (size_t i = 0; i < head.nearest.size(); ++i) {
    Json& token = result["nearest"].emplace_back(token_json(found, found.token_ids[i]));
    for (const auto& [squared_distance, id] : head.nearest[i]) {
      token["neighbours"].push_back(token_json(found, id));
      token["neighbours"].back()["squared_distance"] = rounded(squared_distance);
    }
  }
  return result;
}

// A page with the pictures, the nearest tokens and the text.
Report report_of(const Inspection& found, const std::vector<Picture>& pictures) {
  Report report{.title = found.run + ": " + found.mixer, .pictures = pictures};
  if (!found.note.empty()) report.notes.push_back(found.note);
  std::string text;
  for (const int64_t id : found.text_ids) text += found.token(id);
  report.notes.push_back(fmt::format("The first {} tokens of the text: {}", found.text_ids.size(), text));
  ResultTable table{{{.heading = "layer"}, {.heading = "head"}, {.heading = "token", .left = true},
      {.heading = "its nearest tokens in the vocabulary, with squared distances", .left = true}}};
  for (const InspectedLayer& layer : found.layers)
    for (const InspectedHead& head : layer.heads)
      for (size_t i = 0; i < head.nearest.size(); ++i) {
        std::string others;
        for (const auto& [squared_distance, id] : head.nearest[i])
          others += fmt::format("{}{} {:.3g}", others.empty() ? "" : ", ", found.token(id), squared_distance);
        table.add_row({layer.layer, head.head, found.token(found.token_ids[i]), others});
      }
  if (table.rows()) report.table = table;
  return report;
}

}  // namespace

Inspection inspect(const OpenModel& open, const std::vector<int64_t>& text_ids, const InspectionOptions& options) {
  const ModelConfig& config = open.model.config();
  const FamilyTraits family = config.traits();
  Inspection found{open.run.weights().label(), family.mixes ? names_of(config.mixer) : family.name, open.run.tokenizer(), text_ids, {}};
  for (const std::string& token : options.tokens) found.token_ids.push_back(id_of(*found.tokenizer, token));
  if (found.token_ids.empty()) found.token_ids = most_frequent(text_ids);
  const std::set<int64_t> heads = chosen("--heads", options.heads, heads_of(config), "heads");
  std::vector<MixingLayer> mixing = open.model.layers();
  std::erase_if(mixing, [](const MixingLayer& layer) { return layer.kind == "join"; });
  const std::set<int64_t> layers = chosen("--layers", options.layers, std::ssize(mixing), "layers");
  const std::vector<Observation> all_seen = observe(open.model, {ids_tensor(text_ids, 1, open.device)});
  const Tensor tokens_1t = ids_tensor(found.token_ids, 1, open.device), tokens_t = tokens_1t.reshaped({tokens_1t.size()});
  Progress progress({.steps = std::ssize(layers) * std::ssize(heads), .unit = "head", .out = stderr});
  int64_t done = 0;
  bool empty = true;
  for (const int64_t layer : layers) {
    const MixingLayer& mixer = mixing[static_cast<size_t>(layer)];
    const Forms forms = mixer.forms();
    const Tensor distances_ntv = token_distances(open.model, mixer, tokens_t);
    for (const Tensor& t : {forms.m_nkK, distances_ntv})
      if (t && count_nonfinite(t)) fail("layer {}: the weights of the {} mixer are not finite", {layer, found.mixer});
    InspectedLayer& each = found.layers.emplace_back(InspectedLayer{layer, layer_name(layer, mixer), mixer.tokens, forms.symmetric});
    for (const int64_t head : heads) {
      const Observation& seen = all_seen[static_cast<size_t>(layer)];
      if (!seen.heads.empty() && head >= std::ssize(seen.heads)) continue;  // this layer has fewer heads
      InspectedHead& result = each.heads.emplace_back(InspectedHead{head});
      add_tables(result, found, mixer.tokens, seen, forms);
      if (distances_ntv) add_distances(result, found, numbers_of(distances_ntv, head), options.nearest, forms.positive);
      empty &= result.tables.empty();
      progress.update(++done, 0);
    }
  }
  if (empty) found.note = found.mixer + " has neither scores, coefficients nor a metric: it mixes all texts in the same way.";
  return found;
}

std::vector<Picture> pictures_of(const Inspection& found) {
  std::vector<Picture> all;
  for (const InspectedLayer& layer : found.layers)
    for (const char* const kind : {"scores", "coefficients", "matrix", "distances"})
      for (const InspectedHead& head : layer.heads)
        for (const InspectedTable& table : head.tables) {
          if (table.kind != kind) continue;
          all.push_back(picture_of(layer, head, table));
          if (table.kind == "matrix" && &head == &layer.heads.back()) all.push_back(spectrum_of(layer, table));
        }
  return all;
}

Json json_of(const Inspection& found) {
  const auto layer_json = [&](const InspectedLayer& layer) {
    const auto of_layer = [&](const InspectedHead& head) { return head_json(found, layer, head); };
    return Json{{"layer", layer.layer}, {"name", layer.name}, {"query_tokens", layer.tokens}, {"heads", values_of(layer.heads, of_layer)}};
  };
  Json missing = Json::array();
  if (!found.note.empty()) missing.push_back(found.note);
  return {{"run", found.run}, {"mixer", found.mixer}, {"text", tokens_json(found, found.text_ids)},
      {"tokens", tokens_json(found, found.token_ids)}, {"missing", missing}, {"layers", values_of(found.layers, layer_json)}};
}

int64_t write_report(const std::string& folder, const Inspection& found) {
  make_folders(folder);
  const std::vector<Picture> pictures = pictures_of(found);
  for (const Picture& picture : pictures)
    write_atomically(folder + "/" + picture.name + ".svg", to_svg(found.run + ": " + found.mixer, {picture}));
  write_atomically(folder + "/inspect.json", to_text(json_of(found)) + "\n");
  write_atomically(folder + "/index.html", page_of(report_of(found, pictures)));
  return std::ssize(pictures) + 2;
}

}  // namespace ricci::apps
