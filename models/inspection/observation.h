// Shows a model at work, for ricci inspect and ricci analyze. A text passes through the model as usual, while a Watch computes the tables
// that the ops never store, such as attention weights. Tests compare the tables with the ops.
#pragma once
#include <map>
#include <vector>

#include "models/layers/watch.h"
#include "models/model.h"

namespace ricci {

// The weight that position c gives to the value of position C, for one head.
struct HeadTable {
  Tensor table_bcC{};     // f64 on the CPU; empty for a head without any key
  int64_t key_scale = 1;  // queries per key cell
};

// The results of one layer for a text.
struct Observation {
  std::vector<HeadTable> heads;  // empty if the mixer has no table, or its cells are longer than the text
  Tensor coefficients_bncr;      // f64 on the CPU: the coefficient c of every level of a Dispatcher
};

class Observing : public Watch {
 public:
  std::map<const void*, Observation> seen;  // per layer

  Tensor attend(const void* layer, const ColumnSlice& q, const ColumnSlice& k, const ColumnSlice& v, const Visibility& sees,
      const AttentionOptions& options) override;
  Tensor dispatch(const void* layer, const Arg& v_bcd, const Arg& coef_bcx, const ShiftAndSumOptions& options) override;
  void skip_heads(const void* layer, int64_t heads) override;

 private:
  void add_heads(const void* layer, const Tensor& table_bncC, int64_t key_scale);
};

// One for each of Model::layers except joins, without dropout.
std::vector<Observation> observe(const Model& model, const Batch& batch);

// The squared distances from each token to the whole vocabulary under every head's metric, without positions: [n t v], f64 on the CPU.
// Empty if the layer's scores do not come from a metric.
struct MixingLayer;
Tensor token_distances(const Model& model, const MixingLayer& layer, const Tensor& ids_t);

// The output of every stack, one vector per whole cell. Stacks with cells longer than the text are left out.
struct Representation {
  int64_t tokens = 1;  // per cell
  Tensor h_bmd;
};
std::vector<Representation> representations(const Model& model, const Batch& batch);

// The keys that the queries of a layer see, row by row, by the rules of the ops (ops/attention/visibility.h, ops/scales/cells.h).
struct Mask {
  std::string layer;                         // "attention", "aggregation", "join"
  int64_t query_tokens = 1, key_tokens = 1;  // per cell
  int64_t first_head = 0, heads = 0;         // 0 for a join
  struct Row {
    int64_t first = 0, end = 0;  // the query sees the keys first .. end - 1
  };
  std::vector<Row> rows;  // per query
  int64_t keys = 0;
};

// The masks for a text of this length: one per kind of layer, and one per group of heads in an attention layer. Error: a mixer without
// attention.
std::vector<Mask> masks(const Model& model, int64_t tokens);

// The eigenvalues of a symmetric matrix [k k], f64 on the CPU, from the largest to the smallest, to about 1e-15 of the largest in
// magnitude; O(k^3). Error: not square, not f64 on the CPU, a number that is not finite.
std::vector<double> eigenvalues(const Tensor& m_kk);

// The singular values of a square matrix, from the largest to the smallest: the roots of the eigenvalues of M^T M, so those below 1e-8 of
// the largest are lost in rounding. Errors: as for eigenvalues.
std::vector<double> singular_values(const Tensor& m_kk);

}  // namespace ricci
