#include <algorithm>
#include <map>
#include <numeric>

#include "apps/lab/inspection/inspection.h"
#include "apps/lab/report/statistics.h"
#include "apps/terminal/progress.h"
#include "core/error.h"
#include "cuda/verbs/arithmetic.h"
#include "models/inspection/spectrum.h"

namespace ricci::apps {
namespace {

constexpr size_t kMaxFrequent = 16;

// The numbers asked for, each once, or all. Error: one that is not below count.
std::vector<int64_t> chosen(const char* option, const std::vector<int64_t>& asked, int64_t count, const char* what) {
  for (const int64_t i : asked)
    if (i >= count) fail("{}: {}, but the model has {} {}", {option, i, count, what});
  std::vector<int64_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  if (asked.empty()) return all;
  all = asked;
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

int64_t heads_of(const ModelConfig& config) {
  int64_t heads = 1;
  Mixers::call_for(config.mixer, [&]<class M>() {
    if constexpr (requires(const typename M::Config& c) { c.heads; }) heads = config.settings<M>().heads;
  });
  return heads;
}

std::vector<int64_t> most_frequent(const std::vector<int64_t>& ids) {
  std::map<int64_t, int64_t> counts;
  for (const int64_t id : ids) ++counts[id];
  std::vector<int64_t> tokens;
  for (const auto& [id, count] : counts) tokens.push_back(id);
  std::stable_sort(tokens.begin(), tokens.end(), [&](int64_t a, int64_t b) { return counts[a] > counts[b]; });
  tokens.resize(std::min(tokens.size(), kMaxFrequent));
  return tokens;
}

// A piece of the vocabulary as it is written there, or a text that is one token.
int64_t id_of(const Tokenizer& tokenizer, const std::string& text) {
  if (const int64_t id = tokenizer.find(text); id >= 0) return id;
  const std::vector<int64_t> ids = tokenizer.encode(text);
  if (ids.size() != 1) fail("--token: '{}' is {} tokens, expected one", {one_line(text), ids.size()});
  return ids[0];
}

std::vector<std::string> missing_of(const Found& found) {
  const std::string& m = found.mixer;
  std::vector<std::string> lines;
  const LayerFound& first = found.layers.front();
  if (first.seen.heads.empty() && !first.forms.m_nkK)
    return {m + " has neither scores, coefficients nor a metric: what a position reads does not depend on the text."};
  if (!first.seen.coefficients_bncr) lines.push_back(m + " has no dispatching coefficients: only the dispatcher has.");
  if (first.forms.symmetric && !first.forms.m_nkK)
    lines.push_back(m + " has no metric tensor to be trained: its form is the identity, and distances are distances of the projections.");
  else if (!first.forms.m_nkK) lines.push_back(m + " has no metric tensor, nor Wq Wk^T: its scores are no products of two positions.");
  if (first.heads.front().nearest.empty())
    lines.push_back(m + " has no distances between tokens: " + (first.forms.m_nkK ? "its form is not symmetric." : "it has no metric."));
  return lines;
}

// `distances`: from each of the tokens to the whole vocabulary, [token vocab].
void add_distances(HeadFound& found, std::span<const double> distances, const std::vector<int64_t>& tokens, int64_t nearest) {
  const size_t vocab = distances.size() / tokens.size();
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::span row = distances.subspan(i * vocab, vocab);
    std::vector<Neighbour> others;
    for (size_t id = 0; id < vocab; ++id)
      if (static_cast<int64_t>(id) != tokens[i]) others.push_back({static_cast<int64_t>(id), row[id]});
    const auto nearer = [](const Neighbour& a, const Neighbour& b) {
      return a.squared_distance != b.squared_distance ? a.squared_distance < b.squared_distance : a.id < b.id;
    };
    found.nearest.push_back(best_of(std::move(others), nearest, nearer));
    for (const int64_t other : tokens) found.squared_distances.push_back(other == tokens[i] ? 0 : row[static_cast<size_t>(other)]);
  }
}

std::string layer_name(int64_t number, const MixingLayer& layer) {
  const std::string name = format_message("layer {}", {number});
  if (layer.kind != "attention") return name + " (" + layer.kind + ")";
  return layer.tokens == 1 ? name : name + format_message(" (cells of {})", {layer.tokens});
}

}  // namespace

std::vector<std::string> Found::tokens(const std::vector<int64_t>& ids) const {
  std::vector<std::string> all;
  for (const int64_t id : ids) all.push_back(token(id));
  return all;
}

std::vector<std::string> cell_texts(const Found& found, int64_t tokens) {
  std::vector<std::string> cells;
  for (auto first = found.text_ids.begin(); found.text_ids.end() - first >= tokens; first += tokens)
    cells.push_back(shown(*found.tokenizer, {first, first + tokens}, true));
  return cells;
}

HeadTable table_of(const LayerFound& layer, int64_t head) {
  return layer.seen.heads.empty() ? HeadTable() : layer.seen.heads.at(static_cast<size_t>(head));
}

std::vector<double> of_head(const Tensor& t_nxy, int64_t head) {
  const int64_t size = t_nxy.shape()[-1] * t_nxy.shape()[-2];
  const double* const first = t_nxy.data<double>() + head * size;
  return {first, first + size};
}

Found inspect(const OpenModel& open, const std::vector<int64_t>& text_ids, const InspectionOptions& options) {
  const ModelConfig& config = open.run.config().model;
  const FamilyTraits family = config.traits();
  Found found{open.run.path(), family.mixes ? name_of(config.mixer) : family.name, open.run.tokenizer(), text_ids, {}};
  for (const std::string& token : options.tokens) found.token_ids.push_back(id_of(*found.tokenizer, token));
  if (found.token_ids.empty()) found.token_ids = most_frequent(text_ids);
  const std::vector<int64_t> heads = chosen("--heads", options.heads, heads_of(config), "heads");
  std::vector<MixingLayer> mixing = open.model.layers();
  std::erase_if(mixing, [](const MixingLayer& layer) { return layer.kind == "join"; });
  const std::vector<int64_t> layers = chosen("--layers", options.layers, std::ssize(mixing), "layers");
  const std::vector<Observation> seen = observe(open.model, {ids_tensor(text_ids, 1, open.device)});
  const Tensor tokens_1t = ids_tensor(found.token_ids, 1, open.device), tokens_t = tokens_1t.reshaped({tokens_1t.size()});
  Progress progress({.steps = std::ssize(layers) * std::ssize(heads), .unit = "head", .out = stderr});
  int64_t done = 0;
  for (const int64_t layer : layers) {
    const auto i = static_cast<size_t>(layer);
    LayerFound& each =
        found.layers.emplace_back(LayerFound{layer, layer_name(layer, mixing[i]), mixing[i].tokens, seen[i], mixing[i].forms()});
    const Tensor distances_ntv = token_distances(open.model, mixing[i], tokens_t);
    for (const Tensor& t : {each.forms.m_nkK, distances_ntv})
      if (t && count_nonfinite(t)) fail("layer {}: weights of the {} mixer are not finite", {layer, found.mixer});
    for (const int64_t head : heads) {
      HeadFound& looked_at = each.heads.emplace_back(HeadFound{head});
      if (const Tensor& m_nkK = each.forms.m_nkK) {
        const Tensor m_kk = m_nkK.rows(head, 1).reshaped({m_nkK.shape()[1], m_nkK.shape()[2]});
        looked_at.spectrum = each.forms.symmetric ? eigenvalues(m_kk) : singular_values(m_kk);
      }
      if (distances_ntv) add_distances(looked_at, of_head(distances_ntv, head), found.token_ids, options.nearest);
      progress.update(++done, 0);
    }
  }
  found.missing = missing_of(found);
  return found;
}

}  // namespace ricci::apps
