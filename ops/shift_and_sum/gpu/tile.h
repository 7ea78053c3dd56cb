// A thread block's work, and the copies of its rows and coefficients to and from shared memory.
#pragma once
#include <type_traits>

#include "core/tensor.h"
#include "cuda/ptx.h"
#include "ops/shift_and_sum/kernels.h"

namespace ricci::shift_and_sum_kernels {

// The work of a thread block: a slice of the columns of a head, and a tile of positions.
struct Place {
  int64_t sequence, head, slice, first_position;
  int rows, begin, end;  // the rows held, from first_position on; the rows `begin` to end - 1 are stored

  __device__ static Place of_block(const Problem& problem, const Part& part, bool halo_after) {
    const uint32_t slices = static_cast<uint32_t>((problem.width + kColumns - 1) / kColumns);
    const uint32_t tiles = static_cast<uint32_t>(part.step() * part.tiles), heads = static_cast<uint32_t>(problem.heads);
    const uint32_t number = blockIdx.x / slices % tiles, head = blockIdx.x / slices / tiles;
    const Tile tile = tile_of(part, number, problem.positions, halo_after);
    const auto held = [&](int64_t row) { return static_cast<int>(row - tile.held_first); };
    return {head / heads, head % heads, blockIdx.x % slices, tile.m + tile.held_first * part.step(), held(tile.held_end), held(tile.begin),
        held(tile.end)};
  }
  __device__ bool empty() const { return begin >= end; }
  __device__ int64_t position(const Part& part, int row) const { return first_position + row * part.step(); }
};
inline int64_t blocks_of(const Problem& problem, const Part& part) {
  return problem.batches * problem.heads * ((problem.width + kColumns - 1) / kColumns) * part.step() * part.tiles;
}

// Bit l is 1 if level first + l of the part is computed. Every lane checks one level.
__device__ inline uint32_t active_levels(const Problem& problem, const Part& part) {
  const int level = static_cast<int>(threadIdx.x % 32);
  return __ballot_sync(~0u, level < part.levels && problem.dropout.stays(part.first + level));
}

// Calls body.operator()<size>(i) for batches of the rows i, i + step, ..., i + (size - 1) step below `rows`. A body first reads all rows of
// its batch, to overlap the hundreds of cycles of each read.
template <int kSize, class Body> __device__ void in_batches(int i, int rows, int step, const Body& body) {
  UNROLL(1)
  for (; i + (kSize - 1) * step < rows; i += kSize * step) body.template operator()<kSize>(i);
  if constexpr (kSize > 1) in_batches<kSize / 2>(i, rows, step, body);
}

// Copies the rows of a slice between a tensor [b c d] and shared memory. A thread copies four adjacent columns at a time.
template <class T> struct Copy {
  static constexpr int kQuad = 4, kThreadsOfRow = kColumns / kQuad;
  using A = Accumulator<T>;
  struct alignas(kQuad * sizeof(T) < 16 ? kQuad * sizeof(T) : 16) Four {
    T element[kQuad];
  };
  struct alignas(16) Quad {
    A element[kQuad];
  };
  struct Load {
    const T* tensor;
    A* shared;
  };
  int first_row, column, rows_at_once, width;  // for this thread; width: the number of its columns that exist
  int64_t offset, row;                         // offset of the first row held, at the thread's columns; step to the next row

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
    if constexpr (std::is_same_v<T, bf16>) {  // converts two in one instruction
      const uint32_t pairs[] = {ptx::pack_bf16(v.element[0], v.element[1]), ptx::pack_bf16(v.element[2], v.element[3])};
      Four four;
      __builtin_memcpy(&four, pairs, sizeof four);
      return four;
    } else {
      return {T(v.element[0]), T(v.element[1]), T(v.element[2]), T(v.element[3])};
    }
  }
  // memcpy: an assignment compiles to four stores.
  __device__ void put(const Four& four, A* shared, int i) const {
    const Quad quad{A(four.element[0]), A(four.element[1]), A(four.element[2]), A(four.element[3])};
    __builtin_memcpy(&quad_at(shared, i, column), &quad, sizeof quad);
  }
  __device__ static Quad& quad_at(A* shared, int row, int column) { return *reinterpret_cast<Quad*>(shared + row * kColumns + column); }

  template <int n> __device__ void load(const Load (&loads)[n], int rows) const {
    bool is_whole = true;
    for (const Load& load : loads) is_whole &= whole(load.tensor);
    in_batches<8>(first_row, is_whole ? rows : 0, rows_at_once, [&]<int size>(int i) {
      Four batch[n][size];
      for (int t = 0; t < n; ++t)
        for (int k = 0; k < size; ++k)
          batch[t][k] = *reinterpret_cast<const Four*>(loads[t].tensor + offset + i * row + k * (rows_at_once * row));
      for (int t = 0; t < n; ++t)
        for (int k = 0; k < size; ++k) put(batch[t][k], loads[t].shared, i + k * rows_at_once);
    });
    UNROLL(1)
    for (int i = first_row; !is_whole && i < rows; i += rows_at_once)
      for (const Load& load : loads)
        for (int x = 0; x < kQuad; ++x) load.shared[i * kColumns + column + x] = x < width ? A(load.tensor[offset + i * row + x]) : A(0);
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

// Coefficients in shared memory: [walk][row][three levels]. Skipped and missing levels are zeros.
template <class T>
__device__ void copy_coefficients(
    const Problem& problem, const Part& part, const Place& place, uint32_t active, const T* c, Accumulator<T>* shared) {
  constexpr int kThreads = 16;  // for each row: one for each level
  static_assert(kForwardWalks * kWalkLevels <= kThreads);
  const int level = static_cast<int>(threadIdx.x) % kThreads, first = static_cast<int>(threadIdx.x) / kThreads;
  const int rows_at_once = static_cast<int>(blockDim.x) / kThreads, rows = level < walks_of(part.levels) * kWalkLevels ? place.rows : 0;
  const int64_t row = problem.coefficients() * part.step(), position = place.sequence * problem.positions + place.position(part, 0);
  const bool is_active = active >> level & 1;
  const T* const source = c + (position * problem.heads + place.head) * problem.levels + (is_active ? part.first + level : 0);
  shared += level / kWalkLevels * place.rows * kWalkLevels + level % kWalkLevels;
  in_batches<16>(first, rows, rows_at_once, [&]<int size>(int i) {
    T batch[size];
    for (int k = 0; k < size; ++k) batch[k] = source[i * row + k * (rows_at_once * row)];
    for (int k = 0; k < size; ++k) shared[(i + k * rows_at_once) * kWalkLevels] = is_active ? Accumulator<T>(batch[k]) : Accumulator<T>(0);
  });
}

}  // namespace ricci::shift_and_sum_kernels
