// A stack of blocks, with position embeddings and the final norm. A decoder has one stack. A multi-scale model has one per scale, each with
// its own length and positions.
#pragma once
#include <algorithm>
#include <vector>

#include "autograd/tape.h"
#include "models/layers/block.h"
#include "models/layers/embedding.h"
#include "models/layers/watch.h"

namespace ricci {

template <Mixer M> struct StackConfig {
  MixerShape shape;  // for the first block
  int64_t layers = 1;
  PositionKind positions = PositionKind::learned;
  BlockConfig block;
  typename M::Config mixer;
};

template <Mixer M> struct Stack {
  // Processes full sequences. x_bcd are token embeddings with positions added.
  Tensor operator()(const Arg& x_bcd, const Tensor& lengths_b) const {
    Residual r{drop(x_bcd, dropout), {}};
    const Tape* const tape = recomputes_blocks ? Tape::recording() : nullptr;
    for (const Block<M>& block : blocks) {
      const auto mix = [&block, lengths_b](const Tensor& y_bcd) { return block.mixer(y_bcd, lengths_b); };
      r = tape && block.wants_gradient(*tape, r) ? block.recomputed(r, mix) : block(r, mix);
    }
    return watched_output(this, final_norm(r));
  }

  Positions pos;
  std::vector<Block<M>> blocks;
  LayerNorm ln;  // only after pre-norm blocks
  double dropout;
  bool recomputes_blocks = false;  // the backward pass computes the activations of blocks again

  explicit Stack(const StackConfig<M>& c) : pos(c.positions, c.shape.ctx, c.shape.d, c.shape.init), dropout(c.block.dropout) {
    MixerShape shape = c.shape;
    for (; shape.layer < c.layers; ++shape.layer) blocks.emplace_back(shape, c.block, c.mixer);
    if (c.block.norm == Norm::pre) ln = LayerNorm(c.shape.d, c.block.norms());
  }

  // Decoding: the number of positions read so far, and the cache of each block.
  struct State {
    int64_t position = 0;
    std::vector<typename M::Cache> caches;
  };
  State make_state(int64_t batch, Dtype dtype, Device device) const {
    State state;
    for (const Block<M>& block : blocks) state.caches.push_back(block.mixer.make_cache(batch, dtype, device));
    return state;
  }
  // Processes the next positions, at most positions_at_once() of them.
  Tensor advance(const Tensor& x_bcd, State& state) const {
    Residual r{x_bcd, {}};
    for (size_t i = 0; i < blocks.size(); ++i)
      r = blocks[i](r, [&](const Tensor& y_bcd) { return blocks[i].mixer(y_bcd, state.caches[i]); });
    state.position += x_bcd.shape()[1];
    return final_norm(r);
  }
  int64_t positions_at_once() const {
    int64_t smallest = INT64_MAX;
    for (const Block<M>& block : blocks) smallest = std::min(smallest, block.mixer.positions_at_once());
    return smallest;
  }

  // The other members of a Body (models/families/body.h).
  Arg positions() const { return pos.rows(); }
  template <class F> void each_attention(const F& f) { f(1, *this); }
  template <class V> void visit(V&& v) { v("pos", pos, "blocks", blocks, "ln", ln); }

 private:
  Tensor final_norm(const Residual& r) const {
    if (!ln.weight.value) return r.x;
    return r.branch ? ln(r.x, r.branch)[1] : ln(r.x);
  }
};

}  // namespace ricci
