// Which keys the queries of a layer see, row by row: for people to look at. The rule is that of the ops (ops/attention/visibility.h,
// ops/scales/join_upsampled.h), which are asked and not told again.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "models/model.h"

namespace ricci {

struct Mask {
  std::string layer;                         // "attention", "aggregation", "join": what has this mask
  int64_t query_tokens = 1, key_tokens = 1;  // per cell
  int64_t first_head = 0, heads = 0;         // 0 heads: none, it is no attention
  struct Row {
    int64_t first = 0, end = 0;  // the query sees the keys first .. end - 1; none where end is not above first
  };
  std::vector<Row> rows;  // of each query
  int64_t keys = 0;
};

// The masks of a text of so many tokens: of each kind of layer one, of an attention those of its groups of heads. Error: a mixer without
// attention.
std::vector<Mask> masks(const Model& model, int64_t tokens);

}  // namespace ricci
