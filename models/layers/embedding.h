// From token ids to the vectors that the first block reads:
//   x_bcd = scale tok_vd[ids_bc] + positions_cd,   scale = sqrt(d) or 1
#pragma once
#include <cmath>
#include <concepts>

#include "core/choice.h"
#include "core/fields.h"
#include "models/layers/layers.h"
#include "ops/elements/arithmetic.h"
#include "ops/embedding/embedding.h"
#include "ops/shapes/shape_ops.h"

namespace ricci {

enum class PositionKind : uint8_t {
  learned,     // a trained table
  sinusoidal,  // fixed: Vaswani et al. 2017
  none,
};
constexpr auto choices(PositionKind) { return std::array{"learned", "sinusoidal", "none"}; }

struct Positions {
  Parameter weight{.role = Role::table};  // (ctx, d), learned
  Constant sinusoid;                      // [ctx d], made in f64

  Positions(PositionKind kind, int64_t ctx, int64_t d, const InitialWeights& init) {
    if (kind == PositionKind::learned) weight = new_parameter({ctx, d}, Role::table, init.positions(d));
    if (kind == PositionKind::sinusoidal) sinusoid.value = sinusoidal_positions(ctx, d, Dtype::f64, Device::cpu);
  }
  // One row per position; empty where there are none.
  Arg rows() const { return weight.value ? Arg(weight) : Arg(sinusoid.value); }
  template <class V> void visit(V&& v) { v("weight", weight, "sinusoid", sinusoid); }
};

// x_bcd with the rows of the positions from `first` on added.
inline Tensor with_positions(const Arg& x_bcd, const Positions& pos, int64_t first = 0) {
  const Arg rows_Cd = pos.rows();
  return rows_Cd ? x_bcd + slice(rows_Cd, 0, first, x_bcd.shape()[1]) : Tensor(x_bcd);
}

struct EmbeddingConfig {
  PositionKind positions = PositionKind::learned;
  bool scale_embedding = false;
  bool operator==(const EmbeddingConfig&) const = default;
};

inline void visit_fields(EmbeddingConfig& c, const Fields& field) {
  field("positions", c.positions, "what marks a position (preset)").follows();
  field("scale_embedding", c.scale_embedding, "token embeddings times sqrt(d) (preset)").follows();
}

inline double embedding_scale(const EmbeddingConfig& config, const Table& tok) {
  return config.scale_embedding ? std::sqrt(static_cast<double>(tok.weight.value.shape()[1])) : 1.0;
}

// Token embeddings of positions from `first` on, each with its row of positions_Cd added; empty: no positions.
inline Tensor embed(const Arg& ids_bc, const Table& tok, const Arg& positions_Cd, const EmbeddingConfig& config, int64_t first = 0) {
  return embedding(ids_bc, tok.weight, positions_Cd, embedding_scale(config, tok), first);
}

}  // namespace ricci
