// One layer of a decoder: a token mixer and a feed-forward map around the residual stream.
//   pre:   x += drop(mix(ln1(x)));            x += drop(fc_out(act(fc(ln2(x)))))
//   post:  x = ln1(x + drop(mix(x)));         x = ln2(x + drop(fc_out(drop(act(fc(x))))))
// The stream travels as x and a branch not yet added, so that every sum is fused with the norm that reads it.
#pragma once
#include <vector>

#include "autograd/recompute.h"
#include "models/config.h"
#include "models/drop.h"
#include "models/layers.h"
#include "ops/elements/arithmetic.h"
#include "ops/elements/gelu.h"
#include "ops/elements/relu.h"

namespace ricci {

enum class Activation : uint8_t { gelu, gelu_tanh, relu };

inline Tensor activate(Activation f, const Arg& x) { return f == Activation::gelu ? gelu(x) : f == Activation::gelu_tanh ? gelu_tanh(x) : relu(x); }

// The residual stream is x + branch; an empty branch is zero.
struct Stream {
  Tensor x, branch;
};

template <class Mixer> struct Block {
  LayerNorm ln1, ln2;
  Mixer mixer;
  Linear fc, fc_out;
  Activation activation = Activation::gelu;
  bool pre_norm = true;
  double dropout = 0;

  explicit Block(const ModelConfig& c)
      : ln1(c.d, c.norm_bias), ln2(c.d, c.norm_bias), mixer(c), fc(c.d, c.feed_forward(), c.bias), fc_out(c.feed_forward(), c.d, c.bias),
        activation(c.activation == "relu" ? Activation::relu : c.activation == "gelu_tanh" ? Activation::gelu_tanh : Activation::gelu),
        pre_norm(c.norm == "pre"), dropout(c.dropout) {}

  // mix(y) calls one of the mixer's operator(): on whole sequences, on those with padding, or the cached one when decoding.
  template <class Mix> Stream operator()(const Stream& s, const Mix& mix) const { return pre_norm ? pre(s, mix) : post(s.x, mix); }

  template <class Mix> Stream pre(const Stream& s, const Mix& mix) const {
    const auto [x, n1] = s.branch ? ln1(s.x, s.branch) : std::array{s.x, ln1(s.x)};
    const auto [y, n2] = ln2(x, drop(mix(n1), dropout));
    return {y, drop(fc_out(activate(activation, fc(n2))), dropout)};
  }
  template <class Mix> Stream post(const Tensor& x, const Mix& mix) const {
    const Tensor y = ln1(x, drop(mix(x), dropout))[1];
    const Tensor hidden = drop(activate(activation, fc(y)), dropout);
    return {ln2(y, drop(fc_out(hidden), dropout))[1], {}};
  }

  // The same bits, but the tape keeps only the stream in front of the block and backward computes the block again. The block
  // and what mix refers to must live until then.
  template <class Mix> Stream recomputed(const Stream& s, const Mix& mix) const {
    const auto run = [this, mix, training = Training::active()](const std::vector<Tensor>& in) {
      const Training mode(training);
      const Stream y = (*this)({in[0], in.size() > 1 ? in[1] : Tensor()}, mix);
      return std::array{y.x, y.branch};
    };
    const std::vector<Arg> inputs = s.branch ? std::vector<Arg>{s.x, s.branch} : std::vector<Arg>{s.x};
    if (!pre_norm) return {recompute([run](const std::vector<Tensor>& in) { return run(in)[0]; }, inputs), {}};
    const auto [x, branch] = recompute(run, inputs);
    return {x, branch};
  }

  template <class V> void visit(V&& v) { v("ln1", ln1), v("ln2", ln2), v("mixer", mixer), v("fc", fc), v("fc_out", fc_out); }
};

}  // namespace ricci
