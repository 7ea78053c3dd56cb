// family: classifier. Token embeddings and a stack of blocks as in a decoder, but without a mask. A linear map gives the class logits at
// every position, and the output is their mean:
//   logits_bk = mean over the real positions c of (stack(embed(ids))_bcd W_kd^T + bias_k),      k: the classes
#pragma once
#include "core/dims.h"
#include "models/families/body.h"
#include "models/families/family.h"
#include "ops/pooling/window_mean.h"
#include "ops/rows/cross_entropy.h"

namespace ricci {

struct ClassifierConfig {
  int64_t classes = 2;
  bool head_bias = true;
};

template <Body B> struct PooledClassifier : Shell<B> {
  using Shell<B>::body, Shell<B>::tok, Shell<B>::hidden;
  using typename Shell<B>::State;

  Tensor logits(const Batch& batch) const { return mean_over_positions(head(hidden(batch)), batch.lengths_b); }  // [b k]
  // The mean nats over the sequences with a target other than -1, an f64 scalar.
  Tensor loss(const Batch& batch) const {
    if (!(batch.targets.shape() == Shape{batch.ids_bc.shape()[0]}))
      fail("model: targets are {}, expected one per sequence of the ids {}", {show(batch.targets.shape()), show(batch.ids_bc.shape())});
    return cross_entropy(logits(batch), batch.targets);
  }

  Linear head;

  PooledClassifier(const ModelKeys& c, const ClassifierConfig& config, B made)
      : Shell<B>(c.vocab, c.embedding, shape_of(c), std::move(made)),
        head(c.d, config.classes, config.head_bias, shape_of(c).init.output()) {}

  State init_state(int64_t) const { fail("model: a classifier cannot generate text"); }
  Tensor advance(const Tensor&, State&) const { fail("model: a classifier cannot generate text"); }

  template <class V> void visit(V&& v) {
    v("tok", tok);
    visit_body(body, v);
    v("head", head);
  }
};

struct Classifier {
  static constexpr FamilyTraits kTraits{.name = "classifier", .objective = Objective::label, .mixes = true, .reads_layers = true};
  static constexpr bool kSeesAll = true;
  using Config = ClassifierConfig;

  template <class Made> static void build(const ModelKeys& c, const Config& config, const Made& made) {
    make_stack(c, [&](auto stack) { made(PooledClassifier(c, config, std::move(stack))); });
  }
};

inline void visit_fields(ClassifierConfig& c, const Fields& field) {
  field("classes", c.classes, "number of classes").in(2, kLargestSize);
  field("head_bias", c.head_bias, "the map to the classes has a bias");
}

}  // namespace ricci
