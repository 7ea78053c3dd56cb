// Shared by the flash attention kernels: tiles of bf16 in shared memory, and the products that a warp computes from them on tensor cores
// (Dao 2023, with mma m16n8k16). A warp has kTiles x 16 rows of the left operand and of the result. Of a result c[i][j], the lane with g =
// lane / 4 and q = lane % 4 holds the rows 16 i + g (elements 0, 1) and 16 i + g + 8 (2, 3), in the columns 8 j + 2 q and 8 j + 2 q + 1
// (cuda/ptx.h).
#pragma once
#include "core/tensor.h"
#include "cuda/ptx.h"

namespace ricci::attention_kernels::flash {

__device__ inline int lane() { return static_cast<int>(threadIdx.x) % 32; }
__device__ inline int warp() { return static_cast<int>(threadIdx.x) / 32; }
__device__ inline int lane_row() { return lane() / 4; }         // g
__device__ inline int lane_column() { return lane() % 4 * 2; }  // 2 q

// Rows of kWidth elements, in chunks of 16 bytes. ldmatrix reads one chunk of each of 8 adjacent rows, and these chunks must be in
// different banks. So the chunks of a row are permuted by an exclusive or with the row index.
template <int kWidth> struct Tile {
  static_assert(kWidth % 32 == 0);
  static constexpr int kChunks = kWidth / 8, kRowBytes = kWidth * 2, kSwapped = kWidth % 64 == 0 ? 8 : 4;
  bf16* data;

  __device__ static int offset(int row, int chunk) { return row * kWidth + (chunk ^ (row / (8 / kSwapped) % kSwapped)) * 8; }
  // The offset of chunk n + chunks for n = 0 or 1, given the offset of chunk n; `chunks` is even. Most of the result is constant: this
  // saves registers.
  __device__ static int moved(int offset, int chunks) { return (offset ^ chunks % kSwapped * 8) + chunks / kSwapped * kSwapped * 8; }
  __device__ bf16* at(int row, int chunk) const { return data + offset(row, chunk); }
  __device__ Tile after(int rows) const { return {data + rows * kWidth}; }  // `rows` is a multiple of 8

  // The offset of the address that a lane passes to ldmatrix for 16 x 16 elements. left_of_lane: for a left operand, or for a right operand
  // that is transposed while it is loaded. right_of_lane: for a right operand with its rows as the columns of the product.
  __device__ static int left_of_lane() { return offset(lane() % 16, lane() / 16); }
  __device__ static int right_of_lane() { return offset(lane() / 16 * 8 + lane() % 8, lane() / 8 % 2); }
};

// The number of lanes that share a row, each with 8 elements at a time: a power of two.
HD constexpr int lanes_of_row(int width) {
  if (width <= 32) return 4;
  return width <= 64 ? 8 : 16;
}

// Starts to copy kRows rows, `pitch` elements apart; rows from `rows` on become zeros. 2^n lanes share a row, so a thread's rows are a
// multiple of 8 apart and its chunks are permuted alike.
template <int kRows, int kThreads, int kWidth>
__device__ inline void begin_load(const Tile<kWidth>& tile, const bf16* from, int pitch, int rows) {
  constexpr int kLanes = lanes_of_row(kWidth), kStep = kThreads / kLanes;
  static_assert(kRows % kStep == 0 && kStep % 8 == 0);
  const int row = static_cast<int>(threadIdx.x) / kLanes, chunk = static_cast<int>(threadIdx.x) % kLanes;
  if (chunk >= Tile<kWidth>::kChunks) return;
  const bf16* source = from + row * pitch + chunk * 8;
  bf16* target = tile.at(row, chunk);
  UNROLL(16)
  for (int n = 0; n < kRows; n += kStep) {
    ptx::cp_async<16>(target, source, n + row < rows ? 16 : 0);
    source += kStep * pitch;
    target += kStep * kWidth;
  }
}

// A warp's rows of a left operand: held in registers, or read from the tile each time. get(k) returns the columns 16 k .. 16 k + 15.
template <int kTiles, int kWidth> struct ReadRows {
  Tile<kWidth> tile;
  int row;
  __device__ ReadRows(const Tile<kWidth>& tile_, int row_) : tile(tile_), row(row_) {}
  __device__ void get(int k, uint32_t (&a)[kTiles][4]) const {
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i) ptx::ldmatrix(a[i], tile.after(row + 16 * i).data + tile.moved(tile.left_of_lane(), 2 * k));
  }
};
template <int kTiles, int kWidth> struct HeldRows {
  uint32_t held[kWidth / 16][kTiles][4];
  __device__ HeldRows(const Tile<kWidth>& tile, int row) {
    UNROLL(16)
    for (int k = 0; k < kWidth / 16; ++k) ReadRows<kTiles, kWidth>(tile, row).get(k, held[k]);
  }
  __device__ void get(int k, uint32_t (&a)[kTiles][4]) const {
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i)
      for (int r = 0; r < 4; ++r) a[i][r] = held[k][i][r];
  }
};

template <bool held, int kTiles, int kWidth> struct Chosen { using Type = ReadRows<kTiles, kWidth>; };
template <int kTiles, int kWidth> struct Chosen<true, kTiles, kWidth> { using Type = HeldRows<kTiles, kWidth>; };
template <bool held, int kTiles, int kWidth> using ChosenRows = typename Chosen<held, kTiles, kWidth>::Type;

// Adds products to two adjacent tiles of 8 columns: c[i][j] += a[i] b and c[i][j + 1] += a[i] b', for all i.
template <int kTiles, int kColumnTiles>
__device__ inline void multiply(float (&c)[kTiles][kColumnTiles][4], int j, const uint32_t (&a)[kTiles][4], const uint32_t (&b)[4]) {
  const uint32_t left[2] = {b[0], b[1]}, right[2] = {b[2], b[3]};
  UNROLL(4)
  for (int i = 0; i < kTiles; ++i) {
    ptx::mma_bf16(c[i][j], a[i], left);
    ptx::mma_bf16(c[i][j + 1], a[i], right);
  }
}

// c_rs += sum_x a_rx b_sx for the rows s of b from `row` on, one for each column of c.
template <int kTiles, int kColumnTiles, int kWidth, class Rows>
__device__ inline void add_scores(float (&c)[kTiles][kColumnTiles][4], const Rows& rows, const Tile<kWidth>& b, int row) {
  UNROLL(16)
  for (int k = 0; k < kWidth / 16; ++k) {
    uint32_t a_k[kTiles][4];
    rows.get(k, a_k);
    UNROLL(16)
    for (int j = 0; j < kColumnTiles; j += 2) {
      uint32_t b_k[4];
      ptx::ldmatrix(b_k, b.after(row + 8 * j).data + b.moved(b.right_of_lane(), 2 * k));
      multiply(c, j, a_k, b_k);
    }
  }
}

// o_rx += sum_s w_rs b_sx for the rows s of b from `row` on, one for each column of w. The weights are rounded to bf16. They need no
// shuffle: a lane holds exactly the elements of the result that it needs as its part of a left operand.
template <int kTiles, int kWidth, int kWeightTiles>
__device__ inline void add_weighted(
    float (&o)[kTiles][kWidth / 8][4], const float (&w)[kTiles][kWeightTiles][4], const Tile<kWidth>& b, int row) {
  UNROLL(16)
  for (int k = 0; k < kWeightTiles / 2; ++k) {
    uint32_t w_k[kTiles][4];
    UNROLL(4)
    for (int i = 0; i < kTiles; ++i)
      for (int r = 0; r < 4; ++r) w_k[i][r] = ptx::pack_bf16(w[i][2 * k + r / 2][r % 2 * 2], w[i][2 * k + r / 2][r % 2 * 2 + 1]);
    UNROLL(16)
    for (int x = 0; x < kWidth / 8; x += 2) {
      uint32_t b_k[4];
      ptx::ldmatrix_trans(b_k, b.after(row + 16 * k).data + b.moved(b.left_of_lane(), x));
      multiply(o, x, w_k, b_k);
    }
  }
}

// Returns the sums of eight pairs of bf16.
__device__ inline uint4 add_bf16(const uint4& a, const uint4& b) {
  const auto add = [](unsigned x, unsigned y) {
    return ptx::pack_bf16(
        __uint_as_float(x << 16) + __uint_as_float(y << 16), __uint_as_float(x & 0xffff0000u) + __uint_as_float(y & 0xffff0000u));
  };
  return {add(a.x, b.x), add(a.y, b.y), add(a.z, b.z), add(a.w, b.w)};
}

// target_rx = factor(i, half) o_rx for the first `rows` rows of the warp; half 1 means the rows 16 i + g + 8. With `add`, target_rx +=
// instead. For stores of 16 bytes, the numbers pass through rows of a tile that belong to the warp and that no other warp still reads.
template <int kTiles, int kWidth, class Factor>
__device__ inline void store_rows(const float (&o)[kTiles][kWidth / 8][4], Factor factor, const Tile<kWidth>& by, int row, bf16* target,
    int pitch, int rows, bool add = false) {
  constexpr int kChunks = Tile<kWidth>::kChunks;
  __syncwarp();  // all lanes have read their parts
  UNROLL(4)
  for (int i = 0; i < kTiles; ++i)
    for (int half = 0; half < 2; ++half) {
      const float f = factor(i, half);
      UNROLL(16)
      for (int x = 0; x < kChunks; ++x) {
        bf16* const address = by.at(row + 16 * i + 8 * half + lane_row(), x) + lane_column();
        *reinterpret_cast<uint32_t*>(address) = ptx::pack_bf16(o[i][x][2 * half] * f, o[i][x][2 * half + 1] * f);
      }
    }
  __syncwarp();
  UNROLL(4)
  for (int n = 0; n < kTiles * 16 * kChunks / 32; ++n) {
    const int i = n * 32 + lane(), r = i / kChunks, chunk = i % kChunks;
    if (r >= rows) continue;
    bf16* const address = target + r * pitch + chunk * 8;
    const uint4 sum = ptx::load16(by.at(row + r, chunk));
    ptx::store16_whole(address, add ? add_bf16(sum, ptx::load16(address)) : sum);
  }
}

// Return the larger and the smaller of two numbers; if one is a NaN, the other number.
HD float larger(float a, float b) { return __builtin_fmaxf(a, b); }
HD float smaller(float a, float b) { return __builtin_fminf(a, b); }

// Reduces over the four lanes that share a row of a result.
template <class Op> __device__ inline float row_reduce(float value, Op op) {
  value = op(value, __shfl_xor_sync(~0u, value, 1));
  return op(value, __shfl_xor_sync(~0u, value, 2));
}

}  // namespace ricci::attention_kernels::flash
