// Every model that predicts the next token: token embeddings, a body and the map to the vocabulary. Training computes logits for all
// positions, decoding only for the last.
//   logits_bcv = body(embed(ids))_bcd W_vd^T + bias_v,   W = tok.weight when tied
#pragma once
#include <utility>
#include <vector>

#include "models/families/body.h"
#include "models/families/family.h"
#include "ops/elements/arithmetic.h"

namespace ricci {

// A body can also define
//   scored_from()                  the first scored position
//   each_scale(e_bcd, lengths_b)   if its coarse scales have a loss: the output of each scale, body(e_bcd, lengths_b) first;
//                                  scales[i].tokens and .bag_weight are then also required
template <Body B> struct LanguageModel : Shell<B> {
  using Shell<B>::body, Shell<B>::tok, Shell<B>::hidden;
  using typename Shell<B>::State;

  Tensor logits(const Batch& batch) const { return output.logits(hidden(batch), tok); }  // [b c v]

  // The mean nats over the targets other than -1 at scored positions, an f64 scalar; 0 if no such target exists.
  Tensor text_loss(const Batch& batch) const {
    check_targets(batch);
    return loss_of(hidden(batch), batch.targets);
  }
  // Returns text_loss plus the weighted bag_loss of every coarse scale with a weight.
  Tensor loss(const Batch& batch) const {
    if constexpr (requires { body.each_scale(Tensor(), Tensor()); }) {
      check_targets(batch);
      std::vector<Tensor> h_s = body.each_scale(this->embedded(batch.ids_bc), batch.lengths_b);
      Tensor sum = loss_of(std::move(h_s[0]), batch.targets);
      for (size_t i = 1; i < h_s.size(); ++i)
        if (const auto& scale = body.scales[i]; h_s[i] && scale.bag_weight > 0)
          sum = sum + bag_loss(h_s[i], output, tok, batch, scale.tokens) * scale.bag_weight;
      return sum;
    } else return text_loss(batch);
  }
  int64_t counted(const Batch& batch) const { return scored_from() == 0 ? batch.scored : count_targets(batch.targets, scored_from()); }

  Output output;
  bool causal;

  LanguageModel(const ModelKeys& c, B made)
      : Shell<B>(c.vocab, c.embedding, shape_of(c), std::move(made)), output(c.vocab, c.output, shape_of(c)), causal(c.causal) {}

  // Decoding, as in Model.
  State init_state(int64_t batch) const {
    if (!causal) fail("model: only a causal model can decode token by token");
    return Shell<B>::init_state(batch);
  }
  Tensor advance(const Tensor& ids_bc, State& state) const { return output.last_logits(this->read(ids_bc, state), tok); }

  template <class V> void visit(V&& v) {
    v("tok", tok);
    visit_body(body, v);
    v("head", output.head);
  }

 private:
  int64_t scored_from() const {
    if constexpr (requires { body.scored_from(); }) return body.scored_from();
    else return 0;
  }
  Tensor scored(const Arg& x) const {  // without the unscored positions
    const int64_t length = x.shape()[1], first = std::min(scored_from(), length);
    return slice(x, 1, first, length - first);
  }
  Tensor loss_of(Tensor h_bcd, const Tensor& targets_bc) const {
    if (scored_from() == 0) return output.loss(h_bcd, tok, targets_bc);
    h_bcd = scored(h_bcd);  // frees the full tensor before the loss allocates
    return output.loss(h_bcd, tok, scored(targets_bc));
  }
};

// family: decoder. Its body is one stack of blocks with the mixer of the run file.
struct Decoder {
  static constexpr FamilyTraits kTraits{.name = "decoder", .mixes = true, .reads_layers = true};
  using Config = NoKeys;

  template <class Made> static void build(const ModelKeys& c, const Config&, const Made& made) {
    make_stack(c, [&](auto stack) { made(LanguageModel(c, std::move(stack))); });
  }
};

}  // namespace ricci
