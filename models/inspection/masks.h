// The attention masks of a model.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "models/model.h"

namespace ricci {

// The keys visible to the queries of a layer, row by row, by the rules of the ops (ops/attention/visibility.h, ops/scales/cells.h).
struct Mask {
  std::string layer;                         // "attention", "aggregation", "join"
  int64_t query_tokens = 1, key_tokens = 1;  // per cell
  int64_t first_head = 0, heads = 0;         // 0 for a join
  struct Row {
    int64_t first = 0, end = 0;  // the query attends to the keys first .. end - 1
  };
  std::vector<Row> rows;  // one per query
  int64_t keys = 0;
};

// The masks for a text of `tokens` tokens: one per kind of layer, and one per group of heads in an attention layer. Error: a mixer has no
// attention.
std::vector<Mask> masks(const Model& model, int64_t tokens);

}  // namespace ricci
