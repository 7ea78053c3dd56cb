// The host functions of the shift-and-sum's implementations, and the parts of its work on a GPU.
#pragma once
#include <vector>

#include "core/tensor.h"
#include "ops/shift_and_sum/problem.h"
#include "ops/shift_and_sum/shift_and_sum.h"

namespace ricci::shift_and_sum_kernels {

// Checks the arguments of the public ops (throws) and turns them into a Problem. Dropout uses one random stream.
Problem check(const char* op, const Tensor& v_bcd, const Tensor& coef_bcx, const ShiftAndSumOptions& options);

// No extent is 0. `partial` is described in problem.h; the implementation decides its number of slices.
void forward_cpu(const Problem& problem, const Tensor& v_bcd, const Tensor& coef_bcx, const Tensor& y_bcd);
void backward_cpu(
    const Problem& problem, const Tensor& dy_bcd, const Tensor& v_bcd, const Tensor& coef_bcx, const Tensor& dv_bcd, const Tensor& partial);
int64_t gradient_slices_cpu(const Problem& problem);

// dcoef = the sum of the slices; 0 for the levels that are not used.
void sum_slices(const Problem& problem, const Tensor& partial, const Tensor& dcoef_bcx);

// ---- GPU. A thread block holds 32 columns of some positions in shared memory. If a sequence does not fit, the levels are divided into
// parts. The levels from `first` on connect only positions at a distance of a multiple of step = 2^first. Such a class of positions, rows
// 0, 1, 2, ..., is 2^first times shorter than the sequence, and within it the levels are shifts by 1, 2, 4, ... rows. A class that is still
// too long is divided into tiles of rows. The rows of a tile depend on rows at most halo = 2^levels - 1 away: the tile also holds these
// rows and computes them again.

constexpr int kColumns = 32;          // in a slice
constexpr int kLanes = kColumns / 2;  // in a half-warp: each owns two columns
constexpr int kForwardWalks = 4;      // at most, in a forward kernel
constexpr int kBackwardWalks = 3;     // at most, in a backward kernel
constexpr int kTileLevels = 6;        // at most, in a part with tiles
// In a thread block: the backward pass uses 128 registers per thread (f32) or 256 (f64).
template <class A> inline constexpr int kMaxWarps = sizeof(A) == 4 ? 16 : 8;

struct Part {
  int first, levels;  // first .. first + levels - 1
  int64_t tiles;      // in the longest class
  int64_t rows;       // in a tile, without the halo
  int64_t halo;
  int bytes;  // shared memory
  int warps;  // in a thread block, a power of two

  HD int64_t step() const { return int64_t{1} << first; }
  HD int64_t rows_of_class(int64_t m, int64_t positions) const { return (positions - m + step() - 1) >> first; }
};

// A thread block holds the rows held_first .. held_end - 1 of the class of position m, and stores the results of the rows begin .. end - 1.
// If begin is not below end, the block does nothing.
struct Tile {
  int64_t m, held_first, held_end, begin, end;
};
HD Tile tile_of(const Part& part, uint32_t number, int64_t positions, bool halo_after) {
  const uint32_t tiles = static_cast<uint32_t>(part.tiles), m = number / tiles, tile = number % tiles;
  const int64_t rows = m < positions ? part.rows_of_class(m, positions) : 0, begin = tile * part.rows;
  const int64_t end = begin + part.rows < rows ? begin + part.rows : rows;
  const int64_t before = begin > part.halo ? begin - part.halo : 0, after = halo_after ? part.halo : 0;
  return {m, before, end + after < rows ? end + after : rows, begin, end};
}

// The numbers in shared memory for a row: its values, in the backward pass also the gradient and the values before every walk but the
// first, and the coefficients.
HD int buffers_of(int levels, bool backward) {
  const int of_backward = walks_of(levels) > 2 ? walks_of(levels) : 2;
  return backward ? of_backward : 1;
}
HD int numbers_of_row(int levels, bool backward) { return kColumns * buffers_of(levels, backward) + kWalkLevels * walks_of(levels); }

// The parts of a forward or a backward pass with `bytes` of shared memory for a thread block and elements of `size` bytes.
using Plan = std::vector<Part>;
Plan plan(const Problem& problem, bool backward, int64_t size, int64_t bytes);

// For cuda and cuda_emulated. The forward and backward passes have different plans.
void forward_gpu(const Problem& problem, const Plan& plan, const Tensor& v_bcd, const Tensor& coef_bcx, const Tensor& y_bcd);
void backward_gpu(const Problem& problem, const Plan& plan, const Tensor& dy_bcd, const Tensor& v_bcd, const Tensor& coef_bcx,
    const Tensor& dv_bcd, const Tensor& partial);
inline int64_t gradient_slices_gpu(const Problem& problem) { return (problem.width + kColumns - 1) / kColumns; }
// Computes one part. The backward pass also calls it for the input of the later parts.
void forward_part(const Problem& problem, const Part& part, const Tensor& v_bcd, const Tensor& coef_bcx, const Tensor& y_bcd);

}  // namespace ricci::shift_and_sum_kernels
