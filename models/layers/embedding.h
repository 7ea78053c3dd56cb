// Maps token ids to vectors, the input of the first block:
//   x_bcd = scale tok_vd[ids_bc] + positions_cd,   scale = sqrt(d) or 1
#pragma once
#include <cmath>
#include <concepts>

#include "core/choice.h"
#include "core/fields.h"
#include "models/layers/layers.h"
#include "models/layers/rope.h"
#include "ops/elements/arithmetic.h"
#include "ops/embedding/embedding.h"
#include "ops/shapes/shape_ops.h"

namespace ricci {

enum class PositionKind : uint8_t {
  learned,     // a trained table
  sinusoidal,  // fixed: Vaswani et al. 2017
  none,
  rope,  // rotary: every block rotates its queries and keys by their position; nothing is added here
};
constexpr auto choices(PositionKind) { return std::array{"learned", "sinusoidal", "none", "rope"}; }

struct Positions {
  Parameter weight{.role = Role::table};  // (ctx, d), learned
  Constant sinusoid;                      // [ctx d], computed in f64

  Positions(PositionKind kind, int64_t ctx, int64_t d, const InitialWeights& init) {
    if (kind == PositionKind::learned) weight = new_parameter({ctx, d}, Role::table, init.positions(d));
    if (kind == PositionKind::sinusoidal) sinusoid.value = sinusoidal_positions(ctx, d, Dtype::f64, Device::cpu);
  }
  // One row per position; empty for `none` and `rope`.
  Arg rows() const { return weight.value ? Arg(weight) : Arg(sinusoid.value); }
  template <class V> void visit(V&& v) { v("weight", weight, "sinusoid", sinusoid); }
};

// Adds the position rows, starting at row `first`, to x_bcd.
inline Tensor with_positions(const Arg& x_bcd, const Positions& pos, int64_t first = 0) {
  const Arg rows_Cd = pos.rows();
  return rows_Cd ? x_bcd + slice(rows_Cd, 0, first, x_bcd.shape()[1]) : Tensor(x_bcd);
}

struct EmbeddingConfig {
  PositionKind positions = PositionKind::learned;
  bool scale_embedding = false;
  RotaryFrequencies rope{};
  double rope_fraction = 1;
};

inline void visit_fields(EmbeddingConfig& c, const Fields& field) {
  field("positions", c.positions, "position encoding (preset)").decides().follows();
  field("scale_embedding", c.scale_embedding, "token embeddings are multiplied by sqrt(d) (preset)").follows();
  const bool turns = c.positions == PositionKind::rope, scaled = turns && c.rope.scaling != RopeScaling::none;
  const Fields rope = field.when(turns, "positions: rope"), scaling = field.when(scaled, "rope_scaling: linear, llama3"),
               llama3 = field.when(turns && c.rope.scaling == RopeScaling::llama3, "rope_scaling: llama3");
  rope("rope_theta", c.rope.theta, "theta: pair i of r columns is rotated by theta^(-2i/r) per position").positive();
  rope("rope_fraction", c.rope_fraction, "the fraction of a head's columns that is rotated, from the first column").within({0, 1, false});
  rope("rope_scaling", c.rope.scaling, "how angles shrink for contexts longer than the trained one").decides();
  scaling("rope_factor", c.rope.factor, "divisor of the angles; for llama3, of the angles of long wavelengths").positive();
  llama3("rope_low", c.rope.low, "wavelengths above rope_trained_ctx / rope_low are scaled by the full factor").positive();
  llama3("rope_high", c.rope.high, "wavelengths below rope_trained_ctx / rope_high are not scaled").positive();
  llama3("rope_trained_ctx", c.rope.trained_ctx, "the trained context in tokens, before the scaling").in(1, kLargestSize);
}

inline double embedding_scale(const EmbeddingConfig& config, const Table& tok) {
  return config.scale_embedding ? std::sqrt(static_cast<double>(tok.weight.value.shape()[1])) : 1.0;
}

// Token embeddings, plus the rows of positions_Cd from row `first` on, unless positions_Cd is empty.
inline Tensor embed(const Arg& ids_bc, const Table& tok, const Arg& positions_Cd, const EmbeddingConfig& config, int64_t first = 0) {
  return embedding(ids_bc, tok.weight, positions_Cd, embedding_scale(config, tok), first);
}

}  // namespace ricci
