// Shows a model at work. A text passes through the model as usual, while a Watch computes tables that the ops never store, such as
// attention weights.
#pragma once
#include <map>
#include <vector>

#include "models/layers/watch.h"
#include "models/model.h"

namespace ricci {

// The weight that position c gives to the value of position C, for one head.
struct HeadTable {
  Tensor table_bcC{};     // f64 on the CPU; empty for a head without keys
  int64_t key_scale = 1;  // queries per key cell
};

// The results of one layer for a text.
struct Observation {
  std::vector<HeadTable> heads;  // empty if the mixer has no table, or its cells are longer than the text
  Tensor coefficients_bncr;      // f64 on the CPU: the coefficient c of every level of a Dispatcher
};

class Observing : public Watch {
 public:
  std::map<const void*, Observation> seen;  // one per layer

  Tensor attend(const void* layer, const ColumnSlice& q, const ColumnSlice& k, const ColumnSlice& v, const Visibility& sees,
      const AttentionOptions& options) override;
  Tensor dispatch(const void* layer, const Arg& v_bcd, const Arg& coef_bcx, const ShiftAndSumOptions& options) override;
  void skip_heads(const void* layer, int64_t heads) override;

 private:
  void add_heads(const void* layer, const Tensor& table_bncC, int64_t key_scale);
};

// One Observation for each of Model::layers except joins, without dropout.
std::vector<Observation> observe(const Model& model, const Batch& batch);

}  // namespace ricci
