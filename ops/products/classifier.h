#pragma once
#include "autograd/arg.h"

namespace ricci {

// Linear map and cross-entropy in one: the mean over counted rows of -log softmax(x_d w_vd^T + bias_v)[target], in nats,
// as an f64 scalar. A row whose target is -1 does not count; no counted row: 0. An empty bias_v is none.
// Logits exist for a chunk of rows at a time; while a tape records, the gradients are made in the same pass.
// Errors: shapes that disagree, inputs that differ in dtype or device, targets that are not i64; on the cpu a target outside
// -1 .. v-1. On other devices nobody waits to look at the targets: such a target makes the loss NaN.
Tensor classifier_loss(const Arg& x_rd, const Arg& w_vd, const Arg& bias_v, const Tensor& targets_r);

}  // namespace ricci
