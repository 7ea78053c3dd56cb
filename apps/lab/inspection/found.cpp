#include "apps/lab/inspection/found.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/error.h"
#include "cuda/device/device.h"
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

// A token so that it can be seen: blanks and line ends as signs.
std::string shown(const Tokenizer& tokenizer, int64_t id) {
  static const std::map<char, std::string> signs = {{' ', "␣"}, {'\n', "↵"}, {'\t', "⇥"}};
  std::string result;
  for (const char c : tokenizer.decode(std::vector{id})) result += signs.contains(c) ? signs.at(c) : std::string(1, c);
  return result.empty() ? "id " + std::to_string(id) : result;
}

std::vector<std::string> missing_of(const Found& found) {
  const std::string& m = found.mixer;
  std::vector<std::string> lines;
  const LayerFound& first = found.layers.front();
  if (first.seen.heads.empty() && !first.forms.m_nkK)
    return {m + " has neither scores, coefficients nor a metric: what a position hears does not depend on the text."};
  if (!first.seen.coefficients_bncr) lines.push_back(m + " has no dispatching coefficients: only the dispatcher has.");
  if (first.forms.symmetric && !first.forms.m_nkK)
    lines.push_back(m + " has no metric tensor to be trained: its form is the identity, and distances are those of the projections.");
  else if (!first.forms.m_nkK) lines.push_back(m + " has no metric tensor, nor Wq Wk^T: its scores are no products of two positions.");
  if (first.heads.front().nearest.empty())
    lines.push_back(m + " has no distances between tokens: " + (first.forms.m_nkK ? "its form is not symmetric." : "it has no metric."));
  return lines;
}

// The nearest tokens to `self` in a row of distances to the whole vocabulary.
std::vector<Neighbour> nearest_in(const double* row, int64_t vocab, int64_t self, int64_t count) {
  std::vector<Neighbour> all;
  for (int64_t id = 0; id < vocab; ++id)
    if (id != self) all.push_back({id, row[id]});
  const auto nearer = [](const Neighbour& a, const Neighbour& b) {
    return a.squared_distance != b.squared_distance ? a.squared_distance < b.squared_distance : a.id < b.id;
  };
  const auto end = all.begin() + std::min<int64_t>(count, static_cast<int64_t>(all.size()));
  std::partial_sort(all.begin(), end, all.end(), nearer);
  all.erase(end, all.end());
  return all;
}

HeadFound look_at_head(int64_t head, const Forms& forms, const Tensor& distances_ntv, const std::vector<int64_t>& tokens, int64_t nearest) {
  HeadFound found{head, {}, {}, {}};
  if (forms.m_nkK) {
    const Tensor m_kk = forms.m_nkK.rows(head, 1).reshaped({forms.m_nkK.shape()[1], forms.m_nkK.shape()[2]});
    found.spectrum = forms.symmetric ? eigenvalues(m_kk) : singular_values(m_kk);
  }
  if (!distances_ntv) return found;
  const int64_t vocab = distances_ntv.shape()[2];
  for (size_t i = 0; i < tokens.size(); ++i) {
    const double* const row = distances_ntv.data<double>() + (head * static_cast<int64_t>(tokens.size()) + static_cast<int64_t>(i)) * vocab;
    found.nearest.push_back(nearest_in(row, vocab, tokens[i], nearest));
    for (const int64_t other : tokens) found.squared_distances.push_back(other == tokens[i] ? 0 : row[other]);
  }
  return found;
}

Tensor ids_tensor(const std::vector<int64_t>& ids, const Shape& shape, Device device) {
  const Tensor t(shape, Dtype::i64);
  std::copy(ids.begin(), ids.end(), t.data<int64_t>());
  return to(t, device);
}

std::string name_of(int64_t number, const MixingLayer& layer) {
  const std::string name = format_message("layer {}", {number});
  if (layer.kind != "attention") return name + " (" + layer.kind + ")";
  return layer.tokens == 1 ? name : name + format_message(" (cells of {})", {layer.tokens});
}

void name_tokens(Found& found, const Tokenizer& tokenizer) {
  for (const int64_t id : found.text_ids) found.text.push_back(shown(tokenizer, id));
  for (const int64_t id : found.token_ids) found.tokens.push_back(shown(tokenizer, id));
  found.vocabulary.resize(static_cast<size_t>(tokenizer.vocab_size()));
  for (const LayerFound& layer : found.layers)
    for (const HeadFound& head : layer.heads)
      for (const auto& neighbours : head.nearest)
        for (const Neighbour& each : neighbours) {
          std::string& name = found.vocabulary.at(static_cast<size_t>(each.id));
          if (name.empty()) name = shown(tokenizer, each.id);
        }
}

}  // namespace

std::vector<std::string> cell_texts(const Found& found, int64_t tokens) {
  std::vector<std::string> cells(found.text.size() / static_cast<size_t>(tokens));
  for (size_t i = 0; i < cells.size() * static_cast<size_t>(tokens); ++i) cells[i / static_cast<size_t>(tokens)] += found.text[i];
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

Found inspect(const OpenModel& open, const std::vector<int64_t>& text_ids, const InspectionOptions& options, const AfterHead& after_head) {
  const ModelConfig& config = open.run.config().model;
  const Tokenizer& tokenizer = *open.run.tokenizer();
  const FamilyTraits family = config.traits();
  Found found{open.run.path(), family.mixes ? name_of(config.mixer) : family.name, text_ids, {}, {}, {}, {}, {}, {}};
  for (const std::string& token : options.tokens) found.token_ids.push_back(id_of(tokenizer, token));
  if (found.token_ids.empty()) found.token_ids = most_frequent(text_ids);
  const std::vector<int64_t> heads = chosen("--heads", options.heads, heads_of(config), "heads");
  std::vector<MixingLayer> mixing = open.model.layers();
  std::erase_if(mixing, [](const MixingLayer& layer) { return layer.kind == "join"; });
  const std::vector<int64_t> layers = chosen("--layers", options.layers, std::ssize(mixing), "layers");
  const auto positions = static_cast<int64_t>(text_ids.size());
  const std::vector<Observation> seen = observe(open.model, {ids_tensor(text_ids, {1, positions}, open.device)});
  const Tensor tokens_t = ids_tensor(found.token_ids, {static_cast<int64_t>(found.token_ids.size())}, open.device);
  int64_t done = 0;
  for (const int64_t layer : layers) {
    const auto i = static_cast<size_t>(layer);
    LayerFound& each =
        found.layers.emplace_back(LayerFound{layer, name_of(layer, mixing[i]), mixing[i].tokens, seen[i], mixing[i].forms(), {}});
    const Tensor distances_ntv = token_distances(open.model, mixing[i], tokens_t);
    for (const Tensor& t : {each.forms.m_nkK, distances_ntv})
      if (t && count_nonfinite(t)) fail("layer {}: weights of the {} mixer are not finite", {layer, found.mixer});
    for (const int64_t head : heads) {
      each.heads.push_back(look_at_head(head, each.forms, distances_ntv, found.token_ids, options.nearest));
      after_head(++done, static_cast<int64_t>(layers.size() * heads.size()));
    }
  }
  name_tokens(found, tokenizer);
  found.missing = missing_of(found);
  return found;
}

}  // namespace ricci::apps
