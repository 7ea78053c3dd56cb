// From a scale to the next finer one: every cell becomes `ratio` rows by a transposed convolution, the rows are shifted so that
// none is read before its cell is complete, and a linear map combines them with what the finer scale has itself.
//   u_i = rows(h)_(i - shift), 0 before,   row j ratio + q = W_q^T h_j + bias;      y_i = [a_i ; u_i] W^T + bias
#pragma once
#include "core/choice.h"
#include "cuda/device/device.h"
#include "models/layers/layers.h"
#include "ops/products/products.h"
#include "ops/scales/cells.h"
#include "ops/shapes/shape_ops.h"

namespace ricci {

// By how many rows the upsampled sequence is shifted.
enum class Shift : uint8_t {
  tight,  // ratio - 1: from the position on that completes the coarse cell
  block,  // ratio: one cell of the finer scale later
};
constexpr auto choices(Shift) { return std::array{"tight", "block"}; }

struct Upsample {
  // The rows of every cell, without their bias: z of join_upsampled.
  Tensor operator()(const Arg& h_bmd) const {
    const int64_t d = bias.value.size();
    return contract("bmi,ix->bmx", h_bmd, reshape(weight, {d, d * ratio}));
  }
  // [a ; u], where z is empty u is 0.
  Tensor beside(const Arg& a_bcd, const Tensor& z_bmx, int64_t shift) const {
    if (z_bmx) return join_upsampled(a_bcd, z_bmx, bias, shift);
    return concatenate({a_bcd, zeros(a_bcd.shape(), a_bcd.dtype(), a_bcd.device())}, 2);
  }

  Parameter weight{.role = Role::matrix}, bias{.role = Role::bias};  // (d_in, d_out, ratio), (d_out)
  int64_t ratio = 1;

  Upsample() = default;
  Upsample(int64_t r, int64_t d, const InitialWeights& init) : ratio(r) {
    const MapInit first = init.map(d);
    weight = new_parameter({d, d, ratio}, Role::matrix, first.weight);
    bias = new_parameter({d}, Role::bias, first.bias);
  }
  template <class V> void visit(V&& v) { v("weight", weight, "bias", bias); }
};

// Decoding: the rows that no finer position has read yet.
struct UpsampleState {
  Tensor z_bmx{};  // of the cells from first_cell on; empty: none
  int64_t first_cell = 0;

  void append(const Tensor& z) { z_bmx = z_bmx ? concatenate({z_bmx, z}, 1) : z; }
  // Finer positions below `position` have read what they need.
  void forget(int64_t position, int64_t ratio, int64_t shift) {
    const int64_t needed = position > shift ? (position - shift) / ratio : 0;
    if (!z_bmx || needed <= first_cell) return;
    const int64_t cells = z_bmx.shape()[1], gone = needed - first_cell < cells ? needed - first_cell : cells;
    z_bmx = gone < cells ? slice(z_bmx, 1, gone, cells - gone) : Tensor();
    first_cell += gone;
  }
};

}  // namespace ricci
