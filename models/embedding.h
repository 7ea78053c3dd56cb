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

template <std::same_as<EmbeddingConfig> Config, class Field> void visit_fields(Config& c, Field&& field) {
  field("positions", c.positions, "what marks a position (preset)");
  field("scale_embedding", c.scale_embedding, "token embeddings times sqrt(d) (preset)");
}

inline double embedding_scale(const EmbeddingConfig& config, const Table& tok) {
  return config.scale_embedding ? std::sqrt(static_cast<double>(tok.weight.value.shape()[1])) : 1.0;
}

// Token embeddings of positions from `first` on, each with its row of positions_Cd added; empty: no positions.
inline Tensor embed(const Arg& ids_bc, const Table& tok, const Arg& positions_Cd, const EmbeddingConfig& config, int64_t first = 0) {
  return embedding(ids_bc, tok.weight, positions_Cd, embedding_scale(config, tok), first);
}

}  // namespace ricci
