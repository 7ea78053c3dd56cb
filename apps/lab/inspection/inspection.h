// ricci-inspect: a look into a model, and its pictures, numbers and page.
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
  std::vector<std::string> tokens;  // whose distances to others are listed; if empty, the most frequent ones of the text
  int64_t nearest = 8;
};
inline void visit_fields(InspectionOptions& o, const Fields& field) {
  field("layers", o.layers, "numbers of layers, from 0: 0,3; all if not given").at_least(0);
  field("heads", o.heads, "numbers of heads, from 0; all if not given").at_least(0);
  field("nearest", o.nearest, "tokens to list as the nearest to each").at_least(1);
}

// ---- Findings in a trained model: for each layer and head, for a text and for some tokens.

// A table of numbers, with a sentence that explains it.
struct TableFound {
  std::string kind;  // scores, coefficients, matrix, distances
  HeatMap map;
  std::string caption;
};

using Neighbour = std::pair<double, int64_t>;  // its squared distance and its id

struct HeadFound {
  int64_t head = 0, key_tokens = 1;                  // key_tokens: per cell, the positions that are read
  std::vector<TableFound> tables = {};               // in the order of kinds
  std::vector<double> spectrum = {};                 // eigenvalues of a symmetric matrix, singular values of another one
  std::vector<std::vector<Neighbour>> nearest = {};  // to each token, the nearest first
};

struct LayerFound {
  int64_t layer = 0;
  std::string name;    // "layer 0"; of a model with multiple kinds of layers "layer 3 (cells of 4)", "layer 0 (aggregation)"
  int64_t tokens = 1;  // per cell, the positions that read
  bool symmetric = false;
  std::vector<HeadFound> heads = {};
};

struct Found {
  std::string run, mixer;  // mixer: the family's name if it defines its own attention
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<int64_t> text_ids, token_ids;
  std::string note = {};  // a line about a mixer that has nothing to look at
  std::vector<LayerFound> layers = {};

  std::string token(int64_t id) const { return shown(*tokenizer, {id}, true); }
};

// The layers are numbered as in Model::layers, joins left out. A bar on stderr shows how far it is.
// Errors: a layer, head or token that the model does not have; weights that are not finite.
Found inspect(const OpenModel& open, const std::vector<int64_t>& text_ids, const InspectionOptions& options);

// ---- The files

// Layer by layer and kind by kind. The first of a kind has the sentence that explains all.
std::vector<Picture> pictures_of(const Found& found);

// Matrices of more than this many columns are left out of the numbers; their parameters are in the run's model.safetensors.
constexpr int64_t kMaxColumns = 128;
//   {"run", "mixer", "text": [{"id", "token"}], "tokens", "missing", "layers": [{"layer", "name", "query_tokens", "heads": [
//     {"head", "key_tokens", "scores", "coefficients", "matrix", "symmetric", "eigenvalues" or "singular_values", "squared_distances",
//     "nearest"}]}]}
// Numbers have 8 digits; members that a mixer does not have are left out.
Json json_of(const Found& found);

// Writes NAME.svg for each picture, index.html with all of them, and inspect.json into a folder, which is made if it does not exist.
// Returns the number of files.
int64_t write_report(const std::string& folder, const Found& found);

}  // namespace ricci::apps
