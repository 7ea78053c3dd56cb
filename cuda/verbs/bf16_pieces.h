// Reads and writes eight contiguous bf16 numbers, a pack of 16 bytes, in one access, the fastest on a GPU.
#pragma once
#include "core/dtype.h"
#include "cuda/ptx.h"

namespace ricci {

inline constexpr int kPiece = 8;

__device__ inline void unpack_piece(const uint4& words, float (&values)[kPiece]) {
  const uint32_t pairs[4] = {words.x, words.y, words.z, words.w};
  UNROLL(4)
  for (int i = 0; i < 4; ++i) {
    values[2 * i] = __uint_as_float(pairs[i] << 16);
    values[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000u);
  }
}

// p must be a multiple of 16, as for store_piece.
__device__ inline void load_piece(const bf16* p, float (&values)[kPiece]) { unpack_piece(ptx::load16(p), values); }

// Rounds to nearest even.
__device__ inline void store_piece(bf16* p, const float (&from)[kPiece]) {
  ptx::store16(p, {ptx::pack_bf16(from[0], from[1]), ptx::pack_bf16(from[2], from[3]), ptx::pack_bf16(from[4], from[5]),
                      ptx::pack_bf16(from[6], from[7])});
}

}  // namespace ricci
