// family: classifier. Token embeddings and a stack of blocks as in a decoder, but without a mask; a linear map to the classes
// at every position, and the mean of their logits:
//   logits_bk = mean over the real positions c of (stack(embed(ids))_bcd W_kd^T + bias_k),      k: the classes
#pragma once
#include "core/dims.h"
#include "models/embedding.h"
#include "models/inputs.h"
#include "models/stack.h"
#include "ops/pooling/window_mean.h"
#include "ops/rows/cross_entropy.h"

namespace ricci {

struct ClassifierConfig {
  int64_t classes = 2;
  bool head_bias = true;
  bool operator==(const ClassifierConfig&) const = default;
};

inline void visit_fields(ClassifierConfig& c, const Fields& field) {
  field("classes", c.classes, "number of classes").in(2, kLargestSize);
  field("head_bias", c.head_bias, "the map to the classes has a bias");
}

template <Mixer M> struct Classifier {
  EmbeddingConfig embedding_config;
  Table tok;
  Stack<M> stack;
  Linear head;
  int64_t ctx;

  Classifier(int64_t vocab, const EmbeddingConfig& embedding, const ClassifierConfig& config, const StackConfig<M>& c)
      : embedding_config(embedding),
        tok(vocab, c.place.d, c.place.init.tokens()),
        stack(c),
        head(c.place.d, config.classes, config.head_bias, c.place.init.output()),
        ctx(c.place.ctx) {}

  Tensor embedded(const Inputs& inputs) const {  // what the first block reads, [b c d]
    check_positions(inputs.ids_bc.shape()[1], ctx);
    return embed(inputs.ids_bc, tok, stack.pos, embedding_config);
  }
  Tensor logits(const Inputs& inputs) const {  // [b k]
    return mean_over_positions(head(stack(embedded(inputs), inputs.lengths_b)), inputs.lengths_b);
  }
  // Mean nats over the sequences with a target other than -1, f64 [].
  Tensor loss(const Inputs& inputs) const {
    if (!(inputs.targets.shape() == Shape{inputs.ids_bc.shape()[0]}))
      fail("model: targets {} for ids {}, expected one per sequence", {show(inputs.targets.shape()), show(inputs.ids_bc.shape())});
    return cross_entropy(logits(inputs), inputs.targets);
  }

  struct State {};
  State init_state(int64_t) const { fail("model: a classifier does not write text"); }
  Tensor advance(const Tensor&, State&) const { fail("model: a classifier does not write text"); }
  Tensor advance_all(const Tensor&, State&) const { fail("model: a classifier does not write text"); }

  void recompute_blocks(bool on) { stack.recomputes_blocks = on; }
  template <class V> void visit(V&& v) {
    v("tok", tok), v("pos", stack.pos), v("blocks", stack.blocks), v("ln_f", stack.ln), v("head", head);
  }
};

}  // namespace ricci
