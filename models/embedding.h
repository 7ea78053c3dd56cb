// From token ids to the vectors that the first block reads:
//   x_bcd = scale tok_vd[ids_bc] + positions_cd,   scale = sqrt(d) or 1
#pragma once
#include <cmath>
#include <concepts>

#include "core/fields.h"
#include "models/positions.h"
#include "ops/embedding/embedding.h"

namespace ricci {

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

// Token embeddings of positions from `first` on, with their positions.
inline Tensor embed(const Arg& ids_bc, const Table& tok, const Positions& pos, const EmbeddingConfig& config, int64_t first = 0) {
  return embedding(ids_bc, tok.weight, pos.rows(), embedding_scale(config, tok), first);
}
// Without positions, for models whose stacks have their own.
inline Tensor embed(const Arg& ids_bc, const Table& tok, const EmbeddingConfig& config) {
  return embedding(ids_bc, tok.weight, Tensor(), embedding_scale(config, tok));
}

}  // namespace ricci
