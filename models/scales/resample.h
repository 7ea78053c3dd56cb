// Maps a sequence to a coarser one (Downsample) and back (Upsample). The coarser sequence has a vector only for each complete cell of
// `size` positions: an incomplete cell would change with the next token. As in the multi-scale paper, the vector is a mean, an elementwise
// maximum, or a causal convolution with the cell size as its stride:
//   y_bjd = bias_d + sum over i, q of weight_diq x_b((j+1) size - K + q)i,   zero before the sequence
#pragma once
#include <algorithm>
#include <concepts>

#include "core/choice.h"
#include "core/fields.h"
#include "cuda/device/device.h"
#include "models/layers/layers.h"
#include "models/layers/mixer.h"
#include "ops/products/products.h"
#include "ops/scales/cells.h"
#include "ops/shapes/shape_ops.h"

namespace ricci {

enum class Down : uint8_t { avg, max, conv };
constexpr auto choices(Down) { return std::array{"avg", "max", "conv"}; }

struct DownConfig {
  Down down = Down::avg;
  int64_t conv_kernel = 1;
};

inline void visit_fields(DownConfig& c, const Fields& field) {
  field("down", c.down, "how the positions of a cell become one vector of a coarser scale").decides();
  const Fields of_conv = field.when(c.down == Down::conv, "down: conv");
  of_conv("conv_kernel", c.conv_kernel, "number of cells that the kernel covers; the last is the cell itself").in(1, 1024);
}

struct Downsample {
  // Maps [b c d] to [b c/size d]; empty if no cell is complete.
  Tensor operator()(const Arg& x_bcd) const { return x_bcd.shape()[1] < size ? Tensor() : cells(x_bcd, 0); }

  Parameter weight{.role = Role::matrix}, bias{.role = Role::bias};  // (d, d, K) and (d) for a convolution
  Down kind;
  int64_t size, kernel;  // in positions

  Downsample(const DownConfig& config, int64_t cell, int64_t d, const InitialWeights& init)
      : kind(config.down), size(cell), kernel(config.conv_kernel * cell) {
    if (kind != Down::conv) return;
    const MapInit first = init.map(d * kernel);
    weight = new_parameter({d, d, kernel}, Role::matrix, first.weight);
    bias = new_parameter({d}, Role::bias, first.bias);
  }

  // Decoding: the latest positions that the next cell needs.
  struct State {
    Tensor recent_bcd;
  };
  // The cells that the next positions complete; can be empty.
  Tensor advance(const Tensor& x_bcd, State& state) const {
    const int64_t b = x_bcd.shape()[0], d = x_bcd.shape()[2], history = kind == Down::conv ? kernel - size : 0;
    if (!state.recent_bcd && history) state.recent_bcd = zeros({b, history, d}, x_bcd.dtype(), x_bcd.device());
    const Tensor all_bcd = state.recent_bcd ? concatenate({state.recent_bcd, x_bcd}, 1) : x_bcd;
    const int64_t read = all_bcd.shape()[1], complete = (read - history) / size * size;
    state.recent_bcd = complete < read ? slice(all_bcd, 1, complete, read - complete) : Tensor();
    return complete ? cells(all_bcd, history) : Tensor();
  }

  template <class V> void visit(V&& v) { v("weight", weight, "bias", bias); }

 private:
  Tensor cells(const Arg& x_bcd, int64_t history) const {
    if (kind == Down::avg) return cell_mean(x_bcd, size);
    if (kind == Down::max) return cell_max(x_bcd, size);
    const int64_t d = bias.value.size();
    return linear(cell_windows(x_bcd, size, kernel, history), reshape(weight, {d, d * kernel}), bias);
  }
};

// The shift of the upsampled sequence, in rows.
enum class Shift : uint8_t {
  tight,  // ratio - 1: a position uses the coarse cell that it completes
  block,  // ratio: a coarse cell is used one finer cell later
};
constexpr auto choices(Shift) { return std::array{"tight", "block"}; }

// Maps a scale to the next finer one: a transposed convolution turns every cell into `ratio` rows, a shift hides each row until its cell is
// complete, and a linear map combines the rows with the cells of the finer scale.
//   u_i = rows(h)_(i - shift), 0 before,   row j ratio + q = W_q^T h_j + bias;      y_i = [a_i ; u_i] W^T + bias
struct Upsample {
  // The rows of every cell without the bias: z of join_upsampled.
  Tensor operator()(const Arg& h_bmd) const {
    const int64_t d = bias.value.size();
    return contract("bmi,ix->bmx", h_bmd, reshape(weight, {d, d * ratio}));
  }
  // Returns [a ; u]; u is 0 if z is empty.
  Tensor join(const Arg& a_bcd, const Tensor& z_bmx, int64_t shift) const {
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

// The layer of topdown that combines each cell with the complete coarser cells, shifted by `shift` cells.
struct Join {
  int64_t coarser_tokens, shift;
};

}  // namespace ricci
