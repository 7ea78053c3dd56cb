// A batch: sequences that are computed together. data/ builds it on the CPU, models/ uses it, and `to` (cuda/device/device.h) copies it to
// a device. A training step uses one Batch per micro-batch.
#pragma once
#include "core/tensor.h"

namespace ricci {

inline constexpr int64_t kNoTarget = -1;  // not scored

struct Batch {
  Tensor ids_bc;       // i64 [b c]: tokens; shorter sequences are padded with zeros
  Tensor targets{};    // i64 [b c]: the next token at each position; for a classifier, i64 [b]: the label. Only the loss uses targets
  Tensor lengths_b{};  // i64 [b], 0 .. c: the positions from lengths_b[b] on are padding and are ignored; empty without padding
  int64_t scored = 0;  // number of targets other than kNoTarget; the loss is the mean over these
};

}  // namespace ricci
