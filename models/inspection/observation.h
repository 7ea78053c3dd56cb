// Tables of a model's layers at work, for people to look at. A text goes through the model as always, while a Watch makes tables of the
// ops in which positions exchange information; a test holds the tables to the ops.
#pragma once
#include <map>
#include <vector>

#include "models/layers/watch.h"
#include "models/model.h"

namespace ricci {

// The factor of the value of position C in position c, for one head.
struct HeadTable {
  Tensor table_bcC{};     // f64 on the CPU; empty if there is no key at all
  int64_t key_scale = 1;  // queries per key cell
};

// A layer and a text.
struct Observation {
  std::vector<HeadTable> heads;  // empty if the layer has no table, or its cells are longer than the text
  Tensor coefficients_bncr;      // f64 on the CPU: what each level of a Dispatcher multiplies the values by that it reads
};

class Observing final : public Watch {
 public:
  // replaces: the model goes on with the output rebuilt from the tables, which equals the output of the fused op up to rounding.
  explicit Observing(bool replaces = false) : replaces_(replaces) {}
  std::map<const void*, Observation> seen;  // per layer

  void enter(const void* layer) override { layer_ = layer; }
  Tensor attend(const Rows& q, const Rows& k, const Rows& v, const Visibility& sees, const AttentionOptions& options) override;
  Tensor dispatch(const Arg& v_bcd, const Arg& coef_bcx, const ShiftAndSumOptions& options) override;
  void skip_heads(int64_t heads) override;

 private:
  void add_heads(const Tensor& table_bncC, int64_t key_scale);

  bool replaces_;
  const void* layer_ = nullptr;
};

// One for each layer of Model::layers that is no join, without dropout.
std::vector<Observation> observe(const Model& model, const Inputs& inputs);

// The columns of a view as a tensor [b c k].
Tensor columns_of(const Rows& rows);

// The squared distances of tokens to all others under the metric of every head [n t v], f64 on the CPU: a token alone comes to the
// layer, without a position. Returns an empty tensor if the layer's scores are no metric's.
struct MixingLayer;
Tensor token_distances(const Model& model, const MixingLayer& layer, const Tensor& ids_t);

// Output of every stack, one vector for each whole cell; a stack whose cells are longer than the text is left out.
struct Representation {
  int64_t tokens = 1;  // per cell
  Tensor h_bmd;
};
std::vector<Representation> representations(const Model& model, const Inputs& inputs);

// The keys that the queries of a layer see, row by row. The ops are asked for their rule (ops/attention/visibility.h,
// ops/scales/cells.h).
struct Mask {
  std::string layer;                         // "attention", "aggregation", "join": what has this mask
  int64_t query_tokens = 1, key_tokens = 1;  // per cell
  int64_t first_head = 0, heads = 0;         // 0 heads: none, it is no attention
  struct Row {
    int64_t first = 0, end = 0;  // the query sees the keys first .. end - 1; none where end is not above first
  };
  std::vector<Row> rows;  // per query
  int64_t keys = 0;
};

// The masks of a text of this length: one for each kind of layer, in an attention one for each group of heads. Error: a mixer
// without attention.
std::vector<Mask> masks(const Model& model, int64_t tokens);

}  // namespace ricci
