// ricci-inspect, in the order to read: found.cpp looks into a model, pictures.cpp draws what was found, report.cpp writes the files: a
// drawing each, a page with all of them, and the numbers.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/lab/analysis/text_runs.h"
#include "apps/lab/report/report.h"
#include "core/fields.h"
#include "models/inspection/layers.h"
#include "models/inspection/observation.h"

namespace ricci::apps {

// ---- Findings in a trained model: for each layer and head, for a text and for some tokens.

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

struct Neighbour {
  int64_t id = 0;
  double squared_distance = 0;
};

struct HeadFound {
  int64_t head = 0;
  std::vector<double> spectrum = {};                 // eigenvalues of a symmetric matrix, singular values of another one
  std::vector<std::vector<Neighbour>> nearest = {};  // to each token, the nearest first
  std::vector<double> squared_distances = {};        // between the tokens, row by row
};

struct LayerFound {
  int64_t layer = 0;
  std::string name;    // "layer 0"; where a model has several kinds of layers, "layer 3 (cells of 4)", "layer 0 (aggregation)"
  int64_t tokens = 1;  // per cell, the positions that read
  Observation seen;
  Forms forms;
  std::vector<HeadFound> heads = {};
};

struct Found {
  std::string run, mixer;  // the family's name where that has an attention of its own
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<int64_t> text_ids, token_ids;
  std::vector<std::string> missing = {};  // a line for each thing that the mixer does not have
  std::vector<LayerFound> layers = {};

  std::string token(int64_t id) const { return shown(*tokenizer, {id}, true); }
  // Each of the tokens, as it is read.
  std::vector<std::string> tokens(const std::vector<int64_t>& ids) const;
};

// The text of its cells with `tokens` tokens each, as far as they are whole.
std::vector<std::string> cell_texts(const Found& found, int64_t tokens);

// The table of a head; empty if there is none.
HeadTable table_of(const LayerFound& layer, int64_t head);

// The numbers of one head of a tensor [n x y] or [1 n x y], row by row.
std::vector<double> of_head(const Tensor& t_nxy, int64_t head);

// The layers are numbered as in Model::layers, joins left out. A bar on stderr shows how far it is.
// Errors: a layer, head or token that the model does not have; weights that are not finite.
Found inspect(const OpenModel& open, const std::vector<int64_t>& text_ids, const InspectionOptions& options);

// ---- The files of a report (pictures.cpp, report.cpp).

// A drawing with a sentence about it.
struct Picture {
  std::string name;  // the file is NAME.svg
  std::string sentence;
  int64_t layer = 0;
  Drawing svg;
};

// In the order of layers, and within a layer of kinds: scores, coefficients, matrices, spectrum, distances. They refer to `found`.
std::vector<Picture> pictures_of(const Found& found);

// One page that needs nothing else, well-formed as XML too.
std::string page_of(const Found& found, const std::vector<Picture>& pictures, Theme theme);

// Matrices of more than this many columns are left out of the numbers; their parameters are in the run's model.safetensors.
constexpr int64_t kMaxColumns = 128;
//   {"run", "mixer", "text": [{"id", "token"}], "tokens", "missing", "layers": [{"layer", "name", "query_tokens", "heads": [
//     {"head", "key_tokens", "scores", "coefficients", "matrix", "symmetric", "eigenvalues" or "singular_values", "squared_distances",
//     "nearest"}]}]}
// Numbers have 8 digits; what a mixer does not have is left out.
std::string json_of(const Found& found);

// Writes NAME.svg for each picture, index.html and inspect.json into a folder, which is made where it is not there. Returns the number of
// files.
int64_t write_report(const std::string& folder, const Found& found, Theme theme);

}  // namespace ricci::apps
