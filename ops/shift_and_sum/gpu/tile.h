// The place of a thread block of the GPU kernels, and the way of its rows into shared memory and back. A team of columns / 4 threads works
// on a row, each thread on four columns.
#pragma once
#include "core/tensor.h"
#include "cuda/seam.h"
#include "ops/shift_and_sum/gpu/parts.h"

namespace ricci::shift_and_sum_kernels {

constexpr int kGpuThreads = 256, kQuad = 4;

// Four neighbouring columns of a row.
template <class A> struct alignas(16) Quad {
  A at[kQuad];
  __device__ Quad& operator+=(const Quad& other) {
    UNROLL(4)
    for (int x = 0; x < kQuad; ++x) at[x] += other.at[x];
    return *this;
  }
  __device__ friend Quad operator*(A factor, Quad v) {
    UNROLL(4)
    for (int x = 0; x < kQuad; ++x) v.at[x] *= factor;
    return v;
  }
  __device__ friend A dot(const Quad& a, const Quad& b) {
    A sum = 0;
    UNROLL(4)
    for (int x = 0; x < kQuad; ++x) sum += a.at[x] * b.at[x];
    return sum;
  }
};

template <class T> struct alignas(kQuad * sizeof(T) < 16 ? kQuad * sizeof(T) : 16) Four { T at[kQuad]; };

// The place of a thread block: a slice of the columns of a head, and a tile of positions.
struct Place {
  int64_t sequence, head, slice;
  Tile tile;

  __device__ static Place of_block(const Problem& problem, const Part& part, int columns, bool halo_behind) {
    const int64_t slices = (problem.width + columns - 1) / columns, tiles = part.step() * part.tiles;
    const int64_t tile = blockIdx.x / slices % tiles, head = blockIdx.x / slices / tiles;
    return {head / problem.heads, head % problem.heads, blockIdx.x % slices, tile_of(part, tile, problem.positions, halo_behind)};
  }
  __device__ bool empty() const { return tile.begin >= tile.end; }
  __device__ int rows() const { return static_cast<int>(tile.held_end - tile.held_first); }
  // The position of a row that is held.
  __device__ int64_t position(const Part& part, int row) const { return tile.m + (tile.held_first + row) * part.step(); }
};
inline int64_t blocks_of(const Problem& problem, const Part& part, int columns) {
  return problem.batches * problem.heads * ((problem.width + columns - 1) / columns) * part.step() * part.tiles;
}

// The thread's team and its place there.
struct Team {
  int size, number, teams, column;
  __device__ explicit Team(int columns)
      : size(columns / kQuad),
        number(static_cast<int>(threadIdx.x) / size),
        teams(kGpuThreads / size),
        column(static_cast<int>(threadIdx.x) % size * kQuad) {}
};

// Bit l: level first + l of the part is computed. Every lane asks for one level.
__device__ inline uint32_t active_levels(const Problem& problem, const Part& part) {
  const int level = static_cast<int>(threadIdx.x % 32);
  return __ballot_sync(~0u, level < part.levels && problem.dropout.stays(part.first + level));
}

// Copies the rows of a slice between a tensor [b c d] and shared memory.
template <class T> struct Copy {
  using A = Accumulator<T>;
  const Problem& problem;
  const Part& part;
  const Place& place;
  int columns;

  // The number of the four columns that exist, and their place.
  __device__ int width(int column) const {
    const int64_t left = problem.width - place.slice * columns - column;
    return static_cast<int>(between<int64_t>(0, left, kQuad));
  }
  __device__ int64_t at(int row, int column) const {
    return (place.sequence * problem.positions + place.position(part, row)) * problem.d() + place.head * problem.width +
           place.slice * columns + column;
  }
  __device__ static bool aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % alignof(Four<T>) == 0; }

  __device__ void in(const T* tensor, A* shared) const {
    const Team team(columns);
    const int n = width(team.column);
    UNROLL(4)
    for (int row = team.number; row < place.rows(); row += team.teams) {
      const T* const from = tensor + at(row, team.column);
      Quad<A> v{};
      if (n == kQuad && aligned(from)) {
        const Four<T> four = *reinterpret_cast<const Four<T>*>(from);
        for (int x = 0; x < kQuad; ++x) v.at[x] = A(four.at[x]);
      } else {
        for (int x = 0; x < n; ++x) v.at[x] = A(from[x]);
      }
      *reinterpret_cast<Quad<A>*>(shared + row * columns + team.column) = v;
    }
  }
  // The rows that the tile stores.
  __device__ void out(const A* shared, T* tensor) const {
    const Team team(columns);
    const int n = width(team.column), first = static_cast<int>(place.tile.begin - place.tile.held_first);
    const int end = static_cast<int>(place.tile.end - place.tile.held_first);
    UNROLL(4)
    for (int row = first + team.number; row < end; row += team.teams) {
      const Quad<A> v = *reinterpret_cast<const Quad<A>*>(shared + row * columns + team.column);
      T* const to = tensor + at(row, team.column);
      if (n == kQuad && aligned(to)) {
        Four<T> four;
        for (int x = 0; x < kQuad; ++x) four.at[x] = T(v.at[x]);
        *reinterpret_cast<Four<T>*>(to) = four;
      } else {
        for (int x = 0; x < n; ++x) to[x] = T(v.at[x]);
      }
    }
  }
};

}  // namespace ricci::shift_and_sum_kernels
