// What is found in a trained model: of each layer and head, for a text and for some tokens.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/terminal/model_options.h"
#include "models/inspection/layers.h"
#include "models/inspection/observation.h"

namespace ricci::apps {

struct InspectionOptions {
  std::vector<int64_t> layers, heads;  // empty: all
  std::vector<std::string> tokens;     // whose distances are told; empty: the most frequent ones of the text
  int64_t nearest = 8;                 // tokens to be told of each
};

struct Neighbour {
  int64_t id = 0;
  double squared_distance = 0;
};

struct HeadFound {
  int64_t head = 0;
  std::vector<double> spectrum;                 // eigenvalues of a symmetric matrix, singular values of another one
  std::vector<std::vector<Neighbour>> nearest;  // of each token, the nearest first
  std::vector<double> squared_distances;        // between the tokens, row by row
};

struct LayerFound {
  int64_t layer = 0;
  std::string name;    // "layer 0"; where a model has several kinds of layers, "layer 3 (cells of 4)", "layer 0 (aggregation)"
  int64_t tokens = 1;  // per cell, the positions that hear
  Observation seen;
  Forms forms;
  std::vector<HeadFound> heads;
};

struct Found {
  std::string run, mixer;  // of a family with an attention of its own, its name
  std::vector<int64_t> text_ids, token_ids;
  std::vector<std::string> text, tokens;  // the same ids as they are read
  std::vector<std::string> vocabulary;    // of every id that is a neighbour; others are empty
  std::vector<std::string> missing;       // what the mixer does not have, a line each
  std::vector<LayerFound> layers;
};

// The text of its cells of so many tokens, as far as they are whole.
std::vector<std::string> cell_texts(const Found& found, int64_t tokens);

// The table of a head; empty: there is none.
HeadTable table_of(const LayerFound& layer, int64_t head);

// The numbers of one head of a tensor [n x y] or [1 n x y], row by row.
std::vector<double> of_head(const Tensor& t_nxy, int64_t head);

// Layers are those of Model::layers without joins, in their order. `after_head` is given how many heads of how many have been looked at.
// Errors: a layer, head or token that the model does not have; weights that are not finite.
using AfterHead = std::function<void(int64_t done, int64_t all)>;
Found inspect(
    const OpenModel& open, const std::vector<int64_t>& text_ids, const InspectionOptions& options,
    const AfterHead& after_head = [](int64_t, int64_t) {});

}  // namespace ricci::apps
