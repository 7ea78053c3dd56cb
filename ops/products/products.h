// Linear maps and sums of products.
#pragma once
#include <string_view>

#include "autograd/arg.h"
#include "ops/elements/activations.h"

namespace ricci {

// y = x W^T + bias over the innermost index: x_rd is [... d], w_fd is stored (out, in), y is [... f]. An empty bias_f is none.
// Errors: widths that disagree, inputs that differ in dtype or device, an x_rd without indices.
Tensor linear(const Arg& x_rd, const Arg& w_fd, const Arg& bias_f);

// The gradients dw_fd = dy_rf x_rd and dbias_f = sum_r dy_rf of that map, inside the backward of an op that contains it; empty where not
// wanted. w_input is the number of the op's input w_fd, bias_input the number of bias_f, or -1 without a bias.
struct MapGradients {
  Tensor dw_fd, dbias_f;
};
MapGradients map_gradients(const Tensor& dy_rf, const Tensor& x_rd, const Tensor& w_fd, int w_input, int bias_input);

// y = gelu_tanh(x W^T + bias) V^T + out_bias, the feed-forward map: x_rd is [... d], w_fd and v_ef are stored (out, in), y is [... e]. It
// keeps the sums that gelu is taken of, and on cuda cuBLASLt takes gelu and its slope within the products.
// Errors: widths that disagree, inputs that differ in dtype or device, an empty bias.
Tensor feed_forward(const Arg& x_rd, const Arg& w_fd, const Arg& bias_f, const Arg& v_ef, const Arg& out_bias_e);

// Multiplies two tensors and sums over every index that is not in the formula's result:
//   contract("bcnk,bCnk->bncC", q_bcnk, k_bCnk)      scores of attention
//   contract("mk,kn->mn", a_mk, b_kn)                a matrix product
// No factor is copied, whatever the order of its indices.
// Errors: a formula that is not "p,q->o", an index twice in one factor or in the result, an index of the result in neither
// factor, factors that do not have the formula's indices, disagree about an extent, or differ in dtype or device.
Tensor contract(std::string_view formula, const Arg& a, const Arg& b);

// Linear map and cross-entropy in one: the mean over counted rows of -log softmax(x_d w_vd^T + bias_v)[target], in nats,
// as an f64 scalar. A row whose target is -1 does not count; no counted row: 0. An empty bias_v is none.
// Logits exist for a chunk of rows at a time; while a tape records, the gradients are made in the same pass.
// Errors: shapes that disagree, inputs that differ in dtype or device, targets that are not i64; on the cpu a target outside
// -1 .. v-1. On other devices the op does not wait to look at the targets: such a target makes the loss NaN.
Tensor classifier_loss(const Arg& x_rd, const Arg& w_vd, const Arg& bias_v, const Tensor& targets_r);

// The gated product of a feed-forward layer (Shazeer 2020): act(gate) * up, where x_rd is [... 2f], its columns gate | up; y is [... f].
// SwiGLU is silu, GEGLU gelu. Error: an odd number of columns, an x_rd without indices.
Tensor gated(Activation activation, const Arg& x_rd);

}  // namespace ricci
