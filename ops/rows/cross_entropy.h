#pragma once
#include "autograd/arg.h"

namespace ricci {

// The mean over scored rows of -log softmax(logits_r)[target_r], in nats, as an f64 scalar: logits [... v], targets i64 [...]. A row with
// target -1 is not scored; if no row is scored, the loss is 0. classifier_loss() computes the logits as well, without storing them all.
// Errors: leading indices differ; a target is outside -1 .. v-1 (on the cpu; on other devices the loss is then NaN).
Tensor cross_entropy(const Arg& logits_rv, const Arg& targets_r);

}  // namespace ricci
