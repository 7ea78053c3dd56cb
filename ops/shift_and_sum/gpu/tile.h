// The place of a thread block of the GPU kernels, and the way of its rows and their coefficients into shared memory and back.
#pragma once
#include <type_traits>

#include "core/tensor.h"
#include "cuda/ptx.h"
#include "ops/shift_and_sum/gpu/parts.h"

namespace ricci::shift_and_sum_kernels {

// The place of a thread block: a slice of the columns of a head, and a tile of positions.
struct Place {
  int64_t sequence, head, slice;
  Tile tile;

  __device__ static Place of_block(const Problem& problem, const Part& part, bool halo_after) {
    const uint32_t slices = static_cast<uint32_t>((problem.width + kColumns - 1) / kColumns);
    const uint32_t tiles = static_cast<uint32_t>(part.step() * part.tiles), heads = static_cast<uint32_t>(problem.heads);
    const uint32_t tile = blockIdx.x / slices % tiles, head = blockIdx.x / slices / tiles;
    return {head / heads, head % heads, blockIdx.x % slices, tile_of(part, tile, problem.positions, halo_after)};
  }
  __device__ bool empty() const { return tile.begin >= tile.end; }
  __device__ int rows() const { return static_cast<int>(tile.held_end - tile.held_first); }
  // The rows that are stored, counted from the first one held.
  __device__ int begin() const { return static_cast<int>(tile.begin - tile.held_first); }
  __device__ int end() const { return static_cast<int>(tile.end - tile.held_first); }
  // The position of a row that is held.
  __device__ int64_t position(const Part& part, int row) const { return tile.m + (tile.held_first + row) * part.step(); }
};
inline int64_t blocks_of(const Problem& problem, const Part& part) {
  return problem.batches * problem.heads * ((problem.width + kColumns - 1) / kColumns) * part.step() * part.tiles;
}

// Bit l: level first + l of the part is computed. Every lane asks for one level.
__device__ inline uint32_t active_levels(const Problem& problem, const Part& part) {
  const int level = static_cast<int>(threadIdx.x % 32);
  return __ballot_sync(~0u, level < part.levels && problem.dropout.stays(part.first + level));
}

// Copies the rows of a slice between a tensor [b c d] and shared memory. A thread copies four neighbouring columns at a time.
template <class T> struct Copy {
  static constexpr int kQuad = 4, kThreadsOfRow = kColumns / kQuad;
  using A = Accumulator<T>;
  struct alignas(kQuad * sizeof(T) < 16 ? kQuad * sizeof(T) : 16) Four {
    T element[kQuad];
  };
  struct alignas(16) Quad {
    A element[kQuad];
  };
  int first_row, column, rows_at_once, width;  // the thread's; width: the number of its columns that exist
  int64_t offset, row;                         // place of the first row held, at the thread's columns; step to the next row

  __device__ Copy(const Problem& problem, const Part& part, const Place& place)
      : first_row(static_cast<int>(threadIdx.x) / kThreadsOfRow),
        column(static_cast<int>(threadIdx.x) % kThreadsOfRow * kQuad),
        rows_at_once(static_cast<int>(blockDim.x) / kThreadsOfRow),
        width(static_cast<int>(between<int64_t>(0, problem.width - place.slice * kColumns - column, kQuad))),
        offset((place.sequence * problem.positions + place.position(part, 0)) * problem.d() + place.head * problem.width +
               place.slice * kColumns + column),
        row(problem.d() * part.step()) {}

  __device__ bool whole(const T* tensor) const {
    return width == kQuad && row % kQuad == 0 && reinterpret_cast<uintptr_t>(tensor + offset) % alignof(Four) == 0;
  }
  __device__ static Four rounded(const Quad& v) {
    if constexpr (std::is_same_v<T, bf16>) {  // two at once
      const uint32_t pairs[] = {ptx::pack_bf16(v.element[0], v.element[1]), ptx::pack_bf16(v.element[2], v.element[3])};
      Four four;
      __builtin_memcpy(&four, pairs, sizeof four);
      return four;
    } else {
      return {T(v.element[0]), T(v.element[1]), T(v.element[2]), T(v.element[3])};
    }
  }
  __device__ static Quad& quad_at(A* shared, int row, int column) { return *reinterpret_cast<Quad*>(shared + row * kColumns + column); }

  __device__ void load(const T* tensor, A* shared, int rows) const {
    const T* const source = tensor + offset;
    if (whole(tensor)) {
      UNROLL(4)
      for (int i = first_row; i < rows; i += rows_at_once) {
        const Four four = *reinterpret_cast<const Four*>(source + i * row);
        quad_at(shared, i, column) = {A(four.element[0]), A(four.element[1]), A(four.element[2]), A(four.element[3])};
      }
    } else {
      UNROLL(1)
      for (int i = first_row; i < rows; i += rows_at_once)
        for (int x = 0; x < kQuad; ++x) shared[i * kColumns + column + x] = x < width ? A(source[i * row + x]) : A(0);
    }
  }
  __device__ void store(A* shared, T* tensor, int begin, int end) const {
    T* const target = tensor + offset;
    if (whole(tensor)) {
      T* y = target + (begin + first_row) * row;
      UNROLL(4)
      for (int i = begin + first_row; i < end; i += rows_at_once, y += rows_at_once * row)
        *reinterpret_cast<Four*>(y) = rounded(quad_at(shared, i, column));
    } else {
      UNROLL(1)
      for (int i = begin + first_row; i < end; i += rows_at_once)
        for (int x = 0; x < width; ++x) target[i * row + x] = T(shared[i * kColumns + column + x]);
    }
  }
};

// Coefficients in shared memory: the three levels of a walk are together, a row after the other, a walk after the other. Levels that
// dropout skips have zeros, and so have the levels that a walk is short of.
template <class T>
__device__ void copy_coefficients(
    const Problem& problem, const Part& part, const Place& place, uint32_t active, const T* c, Accumulator<T>* shared) {
  const int l = static_cast<int>(threadIdx.x) % kCoefficients, first = static_cast<int>(threadIdx.x) / kCoefficients;
  const int rows = place.rows(), rows_at_once = static_cast<int>(blockDim.x) / kCoefficients;
  const T* const source =
      c + ((place.sequence * problem.positions + place.position(part, 0)) * problem.heads + place.head) * problem.levels + part.first + l;
  const int64_t row = problem.coefficients() * part.step();
  for (int q = 0; q < part.levels; q += kWalkLevels) {
    const bool is_active = l < kWalkLevels && active >> (q + l) & 1;
    const T* x = source + first * row + q;
    UNROLL(2)
    for (int i = first; i < rows; i += rows_at_once, x += rows_at_once * row)
      shared[i * kCoefficients + l] = is_active ? Accumulator<T>(*x) : Accumulator<T>(0);
    shared += rows * kCoefficients;
  }
}

}  // namespace ricci::shift_and_sum_kernels
