// Which keys the queries of a layer see, row by row: for people to look at. The rule is that of the ops (ops/attention/visibility.h,
// ops/scales/join_upsampled.h), which are asked and not told again.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ops/attention/visibility.h"

namespace ricci {

struct Attending;

struct Mask {
  std::string layer;                         // "attention", "aggregation", "join": what has this mask
  int64_t query_tokens = 1, key_tokens = 1;  // of a cell
  int64_t first_head = 0, heads = 0;         // 0 heads: none, it is no attention
  struct Row {
    int64_t first = 0, end = 0;  // the query sees the keys first .. end - 1; none where end is not above first
  };
  std::vector<Row> rows;  // of each query
  int64_t keys = 0;
};

// Of a text of so many tokens. Queries are cells of query_tokens; the keys of `sees` are cells of sees.scale queries.
Mask visibility_mask(
    const std::string& layer, const Visibility& sees, int64_t query_tokens, int64_t first_head, int64_t heads, int64_t tokens);
// All heads of a mixer over cells.
Mask attention_mask(const Attending& attending, int64_t query_tokens, int64_t tokens);
// Which coarser cell each cell hears, by the op that joins them.
Mask joined_mask(int64_t query_tokens, int64_t key_tokens, int64_t shift, int64_t tokens);

}  // namespace ricci
