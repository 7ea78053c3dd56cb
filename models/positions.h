// What tells positions apart: a row for each, added to the embedding of its token.
#pragma once
#include "core/choice.h"
#include "models/layers.h"
#include "ops/elements/arithmetic.h"
#include "ops/embedding/positions.h"
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

}  // namespace ricci
