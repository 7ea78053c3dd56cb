#include "models/families/decoder.h"

#include <algorithm>
#include <cmath>

#include "autograd/tape.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "models/init.h"
#include "models/visit.h"
#include "ops/embedding/embedding.h"
#include "ops/embedding/positions.h"
#include "ops/products/classifier.h"
#include "ops/shapes/shape_ops.h"

namespace ricci {

Decoder::Decoder(const ModelConfig& c) : config(c), tok(c.vocab, c.d) {
  if (c.positions == "learned") pos = Table(c.ctx, c.d);
  if (c.positions == "sinusoidal") sinusoid_Cd = sinusoidal_positions(c.ctx, c.d, Dtype::f64, Device::cpu);
  for (int64_t i = 0; i < c.layers_of_decoder(); ++i) blocks.emplace_back(c);
  if (c.norm == "pre") ln_f = LayerNorm(c.d, c.norm_bias);
  if (!c.tie) head = Linear(c.d, c.vocab, false);
  if (c.head_bias) head.bias.value = Tensor({c.vocab});
}

void Decoder::check_length(int64_t length) const {
  if (length > config.ctx) fail("model: {} positions, but the context it was built for is {}", {length, config.ctx});
}

Tensor Decoder::embed(const Arg& ids_bc, int64_t first_position) const {
  const double scale = config.scale_embedding ? std::sqrt(static_cast<double>(config.d)) : 1.0;
  if (pos.weight.value) return embedding(ids_bc, tok.weight, pos.weight, scale, first_position);
  return embedding(ids_bc, tok.weight, sinusoid_Cd, scale, first_position);
}

Tensor Decoder::close(const Stream& s) const {
  if (!ln_f.weight.value) return s.x;
  return s.branch ? ln_f(s.x, s.branch)[1] : ln_f(s.x);
}

Tensor Decoder::hidden(const Inputs& inputs) const {
  const auto& [ids_bc, targets_bc, lengths_b] = inputs;
  check_length(ids_bc.shape()[1]);
  Stream s{drop(embed(ids_bc, 0), config.dropout), {}};
  const bool again = recompute && Tape::recording();
  for (const auto& block : blocks) {
    const auto mix = [&block, lengths_b](const Tensor& y) { return block.mixer(y, lengths_b); };
    s = again ? block.recomputed(s, mix) : block(s, mix);
  }
  return close(s);
}

Tensor Decoder::logits(const Inputs& inputs) const { return linear(hidden(inputs), head_weight(), head.bias); }

Tensor Decoder::loss(const Inputs& inputs) const {
  const Tensor x_bcd = hidden(inputs);
  const int64_t rows = x_bcd.shape()[0] * x_bcd.shape()[1];
  if (inputs.targets.size() != rows) fail("model: {} targets for {} positions", {inputs.targets.size(), rows});
  return classifier_loss(reshape(x_bcd, {rows, config.d}), head_weight(), head.bias, inputs.targets.reshaped({rows}));
}

Decoder::State Decoder::init_state(int64_t batch) const {
  if (!config.causal) fail("model: only a causal model decodes token by token");
  State state;
  for (const auto& block : blocks) state.layers.push_back(block.mixer.make_cache(batch));
  return state;
}

Tensor Decoder::advance_piece(const Tensor& ids_bc, State& state) const {
  Stream s{embed(ids_bc, state.position), {}};
  for (size_t i = 0; i < blocks.size(); ++i)
    s = blocks[i](s, [&](const Tensor& y) { return blocks[i].mixer(y, state.layers[i]); });
  state.position += ids_bc.shape()[1];
  return linear(close(s), head_weight(), head.bias);
}

// With a window the caches are short, and a long prompt is read a window at a time.
Tensor Decoder::advance(const Tensor& ids_bc, State& state) const {
  const int64_t length = ids_bc.shape()[1], piece = config.window.value_or(length);
  check_length(state.position + length);
  if (length <= piece) return advance_piece(ids_bc, state);
  std::vector<Arg> logits;
  for (int64_t first = 0; first < length; first += piece)
    logits.push_back(advance_piece(slice(ids_bc, 1, first, std::min(piece, length - first)), state));
  return concatenate(logits, 1);
}

// GPT-2's normal weights with smaller residual writers, or the ranges of the Dispatcher
// paper's baseline.
void Decoder::init(uint64_t seed) {
  const bool gpt = config.preset != "msa";
  const double residual = 0.02 / std::sqrt(2.0 * static_cast<double>(blocks.size()));
  const double d = static_cast<double>(config.d);
  each_parameter(*this, "", [&](const std::string& path, Parameter& p) {
    const bool bias = path.ends_with(".bias"), norm = path.find("ln") != path.npos;
    const bool qkv = path.find("mixer.qkv") != path.npos, token = path == "tok.weight" || path == "head.weight";
    const double fan_in = path.find("fc_out") != path.npos ? static_cast<double>(config.feed_forward()) : d;
    Draw draw{seed, path};
    if (norm) return draw.constant(p, bias ? 0 : 1);
    if (gpt && bias) return draw.constant(p, 0);
    if (gpt) return draw.normal(p, path.ends_with("proj.weight") || path.ends_with("fc_out.weight") ? residual : 0.02);
    if (token) return draw.uniform(p, 0.1);
    if (path == "head.bias" || (bias && path.find("mixer.") != path.npos)) return draw.constant(p, 0);
    if (qkv) return draw.uniform(p, std::sqrt(6.0 / (4.0 * d)));
    draw.uniform(p, 1.0 / std::sqrt(fan_in));
  });
}

void Decoder::place(Dtype dtype, Device device) {
  each_parameter(*this, "", [&](const std::string& path, Parameter& p) {
    p.path = path;
    p.value = to(convert(p.value, dtype), device);
  });
  if (sinusoid_Cd) sinusoid_Cd = to(convert(sinusoid_Cd, dtype), device);
}

}  // namespace ricci
