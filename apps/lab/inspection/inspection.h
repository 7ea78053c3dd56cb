// ricci inspect: tables for each layer and head of a trained model, as pictures, JSON and a page.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/lab/analysis/analyses.h"
#include "apps/lab/report/report.h"
#include "core/fields.h"

namespace ricci::apps {

struct InspectionOptions {
  std::vector<int64_t> layers, heads;
  std::vector<std::string> tokens;  // to list with their nearest tokens; by default the most frequent tokens of the text
  int64_t nearest = 8;
};
inline void visit_fields(InspectionOptions& o, const Fields& field) {
  field("layers", o.layers, "layer indices, from 0, such as 0,3; by default all").at_least(0);
  field("heads", o.heads, "head indices, from 0; by default all").at_least(0);
  field("nearest", o.nearest, "number of nearest tokens to list for each token").at_least(1);
}

struct InspectedTable {
  std::string kind;  // scores, coefficients, matrix, distances
  HeatMap map;
  std::string caption;  // explains the map in a sentence
};

using Neighbour = std::pair<double, int64_t>;  // squared distance and id

struct InspectedHead {
  int64_t head = 0, key_tokens = 1;  // key_tokens: positions of a key's cell
  std::vector<InspectedTable> tables = {};
  std::vector<double> spectrum = {};                 // eigenvalues of a symmetric matrix, else singular values
  std::vector<std::vector<Neighbour>> nearest = {};  // for each token, with the nearest tokens first
};

struct InspectedLayer {
  int64_t layer = 0;
  std::string name;    // "layer 0"; in a model with multiple kinds of layers, "layer 3 (cells of 4)", "layer 0 (aggregation)"
  int64_t tokens = 1;  // positions of a query's cell
  bool symmetric = false;
  std::vector<InspectedHead> heads = {};
};

struct Inspection {
  std::string run, mixer;  // mixer: the family's name if the family defines its own attention
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<int64_t> text_ids, token_ids;
  std::string note = {};  // about a mixer with nothing to show
  std::vector<InspectedLayer> layers = {};

  std::string token(int64_t id) const { return shown(*tokenizer, {id}, true); }
};

// Layers are numbered as in Model::layers, but without joins. Errors: a layer, head or token is unknown; weights are not finite.
Inspection inspect(const OpenModel& open, const std::vector<int64_t>& text_ids, const InspectionOptions& options);

// The pictures, layer by layer and kind by kind. Only the first picture of a kind has a caption.
std::vector<Picture> pictures_of(const Inspection& found);

// The JSON omits matrices with more columns; model.safetensors contains their parameters.
constexpr int64_t kMaxColumns = 128;
//   {"run", "mixer", "text": [{"id", "token"}], "tokens", "missing", "layers": [{"layer", "name", "query_tokens", "heads": [
//     {"head", "key_tokens", "scores", "coefficients", "matrix", "symmetric", "eigenvalues" or "singular_values", "squared_distances",
//     "nearest"}]}]}
// Numbers have 8 significant digits. Members that a mixer lacks are omitted.
Json json_of(const Inspection& found);

// Writes NAME.svg for each picture, index.html with all of them, and inspect.json into a folder. Returns the number of files.
int64_t write_report(const std::string& folder, const Inspection& found);

}  // namespace ricci::apps
