// One layer of a stack: a mixer and a feed-forward layer, each with a residual connection.
//   pre:   x += drop(mix(ln1(x)));            x += drop(fc_out(act(fc(ln2(x)))))
//   post:  x = ln1(x + drop(mix(x)));         x = ln2(x + drop(fc_out(drop(act(fc(x))))))
// With `gated`, fc outputs gate | up, and act(gate) up replaces act(fc(x)). With pre, the default, the residual stream is a plain sum, so
// gradients reach every depth unchanged.
#pragma once
#include <optional>
#include <vector>

#include "autograd/recompute.h"
#include "autograd/tape.h"
#include "core/choice.h"
#include "core/fields.h"
#include "models/layers/layers.h"
#include "models/layers/mixer.h"
#include "models/layers/visit.h"
#include "ops/elements/activations.h"
#include "ops/elements/arithmetic.h"

namespace ricci {

enum class Norm : uint8_t { pre, post };
constexpr auto choices(Norm) { return std::array{"pre", "post"}; }

struct BlockConfig {
  Norm norm = Norm::pre;
  Activation activation = Activation::gelu;
  std::optional<int64_t> ff;
  double dropout = 0;
  bool bias = true;
  bool norm_bias = true;
  NormKind norm_kind = NormKind::layer;
  double norm_eps = 1e-5;
  bool gated = false;
  NormConfig norms() const { return {norm_kind, norm_bias, norm_eps}; }
  bool ff_by_thirds = false;  // set by preset llama: 8 d / 3 gated columns have about as many weights as 4 d plain ones
  int64_t feed_forward(int64_t d) const { return ff.value_or(ff_by_thirds ? (d + 23) / 24 * 64 : 4 * d); }
};

inline void visit_fields(BlockConfig& c, const Fields& field) {
  field("norm", c.norm, "norm before or after the mixer and the feed-forward layer (preset)").follows();
  field("activation", c.activation, "activation of the feed-forward layer (preset)").follows();
  field("ff", c.ff, "width of the feed-forward layer (null: 4 d; with preset llama, 8 d / 3 rounded up to a multiple of 64)")
      .in(1, 4 * kLargestSize);
  field("dropout", c.dropout, "dropout probability").below_one();
  field("bias", c.bias, "the linear maps of the mixer and the feed-forward layer have biases (preset)").follows();
  field("norm_kind", c.norm_kind, "layer norm, or RMS norm without mean and bias (preset)").decides().follows();
  field.when(c.norm_kind == NormKind::layer, "norm_kind: layer")("norm_bias", c.norm_bias, "layer norms have biases (preset)").follows();
  field("norm_eps", c.norm_eps, "constant added to the variance or the mean square in every norm").positive();
  field("gated", c.gated, "the activation of half of fc's columns multiplies the other half, as in SwiGLU with silu (preset)").follows();
}

// The residual stream is x plus a branch that is added later, so one kernel computes the sum and its norm. An empty branch means zero.
struct Residual {
  Tensor x, branch;
};

template <Mixer M> struct Block {
  // mix(y) calls one operator() of the mixer: the one for full sequences or, in decoding, the one with a cache.
  template <class Mix> Residual operator()(const Residual& r, const Mix& mix) const {
    return config.norm == Norm::pre ? pre(r, mix) : post(r.x, mix);
  }

  template <class Mix> Residual pre(const Residual& r, const Mix& mix) const {
    const auto [x, n1] = r.branch ? ln1(r.x, r.branch) : std::array{r.x, ln1(r.x)};
    const auto [y, n2] = ln2(x, drop(mix(n1), config.dropout));
    return {y, drop(feed(n2), config.dropout)};
  }
  template <class Mix> Residual post(const Tensor& x, const Mix& mix) const {
    const Tensor y = ln1(x, drop(mix(x), config.dropout))[1];
    return {ln2(y, drop(feed(y), config.dropout))[1], {}};
  }
  Tensor feed(const Tensor& x) const {
    const Tensor hidden = config.gated ? gated(config.activation, fc(x)) : activate(config.activation, fc(x));
    return fc_out(config.norm == Norm::post ? drop(hidden, config.dropout) : hidden);
  }

  LayerNorm ln1, ln2;
  M mixer;
  Linear fc, fc_out;
  BlockConfig config;

  Block(const MixerShape& shape, const BlockConfig& c, const typename M::Config& mixer_config)
      : ln1(shape.d, c.norms()),
        ln2(shape.d, c.norms()),
        mixer(shape, mixer_config),
        fc(shape.d, (c.gated ? 2 : 1) * c.feed_forward(shape.d), c.bias, shape.init.map(shape.d)),
        fc_out(c.feed_forward(shape.d), shape.d, c.bias, shape.init.into_residual(c.feed_forward(shape.d))),
        config(c) {
    if (const int64_t f = c.feed_forward(shape.d); c.gated) fc.weight.row_blocks = {f, f};
  }

  // True if the residual or any parameter of the block needs a gradient.
  bool wants_gradient(const Tape& tape, const Residual& r) const {
    bool wanted = tape.has(r.x) || tape.has(r.branch);
    if (!wanted) each_parameter(*this, [&](const std::string&, const Parameter& p) { wanted |= !p.frozen; });
    return wanted;
  }

  // Like operator(), with bitwise identical results, but the tape keeps only the residual before the block, and the backward pass computes
  // the block again. The block and everything that mix refers to must live until then.
  template <class Mix> Residual recomputed(const Residual& r, const Mix& mix) const {
    const auto run = [this, mix, training = Training::active()](const std::vector<Tensor>& args) {
      const Training mode(training);
      const Residual y = (*this)({args[0], args.size() > 1 ? args[1] : Tensor()}, mix);
      return std::array{y.x, y.branch};
    };
    const std::vector<Arg> inputs = r.branch ? std::vector<Arg>{r.x, r.branch} : std::vector<Arg>{r.x};
    if (config.norm == Norm::post) return {recompute([run](const std::vector<Tensor>& args) { return run(args)[0]; }, inputs), {}};
    const auto [x, branch] = recompute(run, inputs);
    return {x, branch};
  }

  template <class V> void visit(V&& v) { v("ln1", ln1, "ln2", ln2, "mixer", mixer, "fc", fc, "fc_out", fc_out); }
};

}  // namespace ricci
