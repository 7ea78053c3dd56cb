// family: decoder. Token embeddings and positions, a stack of blocks around one mixer, a linear map to the vocabulary.
// Presets gpt (GPT-2 style, pre-norm) and msa (the masked-self-attention baseline of the Dispatcher paper, post-norm).
#pragma once
#include "models/block.h"
#include "models/config.h"
#include "models/inputs.h"
#include "models/layers.h"
#include "models/mixers/sdp.h"

namespace ricci {

struct Decoder {
  ModelConfig config;
  Table tok, pos;        // pos is empty unless positions are learned
  Tensor sinusoid_Cd;    // and this unless they are sinusoidal
  std::vector<Block<SelfAttention>> blocks;
  LayerNorm ln_f;        // pre-norm only
  Linear head;           // weight is empty when tied to tok
  bool recompute = false;  // every block's activations in the backward, instead of keeping them

  explicit Decoder(const ModelConfig& config);

  Tensor hidden(const Inputs& inputs) const;  // what the head reads, [b c d]
  Tensor logits(const Inputs& inputs) const;  // [b c v]
  // Mean nats over targets other than -1, f64 []: the targets of padding too, unless they are -1.
  Tensor loss(const Inputs& inputs) const;

  // Keys and values of the positions read so far, per layer.
  struct State {
    int64_t position = 0;
    std::vector<KeyValueCache> layers;
  };
  State init_state(int64_t batch) const;
  // Reads the next positions of every sequence and returns their logits [b c v].
  Tensor advance(const Tensor& ids_bc, State& state) const;

  void init(uint64_t seed);                       // draws every parameter, on the CPU
  void place(Dtype dtype, Device device);         // moves parameters and constants

  template <class V> void visit(V&& v) { v("tok", tok), v("pos", pos), v("blocks", blocks), v("ln_f", ln_f), v("head", head); }

 private:
  Tensor advance_piece(const Tensor& ids_bc, State& state) const;
  Tensor embed(const Arg& ids_bc, int64_t first_position) const;
  Tensor close(const Stream& s) const;  // the last sum and the final norm
  const Parameter& head_weight() const { return head.weight.value ? head.weight : tok.weight; }
  void check_length(int64_t length) const;
};

}  // namespace ricci
