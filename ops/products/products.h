// Linear maps and sums of products.
#pragma once
#include <string_view>

#include "autograd/arg.h"
#include "ops/elements/activations.h"

namespace ricci {

// y = x W^T + bias over the innermost index: x_rd is [... d], w_fd is stored (out, in), y is [... f]. An empty bias_f adds nothing.
// Errors: the widths differ, inputs differ in dtype or device, x_rd has no indices.
Tensor linear(const Arg& x_rd, const Arg& w_fd, const Arg& bias_f);

// Multiplies two tensors and sums over every index that is not in the formula's result:
//   contract("bcnk,bCnk->bncC", q_bcnk, k_bCnk)      scores of attention
//   contract("mk,kn->mn", a_mk, b_kn)                a matrix product
// No factor is copied, whatever the order of its indices.
// Errors: the formula is not "p,q->o", has a duplicate index in a factor or the result, or a result index that is in neither factor; the
// factors do not have the formula's indices, disagree about an extent, or differ in dtype or device.
Tensor contract(std::string_view formula, const Arg& a, const Arg& b);

// A linear map and cross-entropy in one: the mean over scored rows of -log softmax(x_d w_vd^T + bias_v)[target], in nats, as an f64 scalar.
// A row with target -1 is not scored; if none is scored the loss is 0. An empty bias_v adds nothing. Logits exist only for one chunk of
// rows at a time. If a tape records, the same pass computes the gradients; a later backward pass would need the logits again.
// Errors: shapes disagree, inputs differ in dtype or device, targets are not i64; on the cpu a target is outside -1 .. v-1. On other
// devices, such a target makes the loss NaN, to avoid waiting for the targets.
Tensor classifier_loss(const Arg& x_rd, const Arg& w_vd, const Arg& bias_v, const Tensor& targets_r);

// The gated product of a feed-forward layer (Shazeer 2020): y = act(gate) * up, where x_rd is [... 2f], with the columns gate | up, and y
// is [... f]. SwiGLU uses silu, and GEGLU uses gelu. Errors: the number of columns is odd, or x_rd has no indices.
Tensor gated(Activation activation, const Arg& x_rd);

}  // namespace ricci
