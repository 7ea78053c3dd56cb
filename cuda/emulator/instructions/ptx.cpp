// Implements the wrapped instructions as they are defined: from a warp's registers before the instruction to those after it.
#include "cuda/ptx.h"

#include <algorithm>
#include <cstring>

#include "cuda/emulator/block.h"
#include "cuda/emulator/report.h"

namespace emu {
namespace {

struct MmaLane {
  float* c;
  const uint32_t *a, *b;
};

float element(uint32_t bits, unsigned half) { return __builtin_bit_cast(float, bits >> 16 * half << 16); }

// c [16][8] += a [16][16] b [16][8]. A register holds two adjacent elements along k.
void resolve_mma(void* const* payloads, unsigned) {
  constexpr unsigned kDepth = 16;
  float a[16][kDepth], b[kDepth][8];
  const auto payload_of = [&](unsigned lane) -> const MmaLane& { return *static_cast<const MmaLane*>(payloads[lane]); };
  for (unsigned lane = 0; lane < kLanes; ++lane)
    for (unsigned half = 0; half < 2; ++half) {
      const unsigned g = lane / 4, k = lane % 4 * 2 + half;
      for (unsigned r = 0; r < 4; ++r) a[g + 8 * (r % 2)][k + 8 * (r / 2)] = element(payload_of(lane).a[r], half);
      for (unsigned r = 0; r < 2; ++r) b[k + 8 * r][g] = element(payload_of(lane).b[r], half);
    }
  for (unsigned lane = 0; lane < kLanes; ++lane)
    for (unsigned r = 0; r < 4; ++r) {
      const unsigned row = lane / 4 + 8 * (r / 2), column = lane % 4 * 2 + r % 2;
      float sum = payload_of(lane).c[r];
      for (unsigned k = 0; k < kDepth; ++k) sum += a[row][k] * b[k][column];
      payload_of(lane).c[r] = sum;
    }
}

struct LdmatrixLane {
  uint16_t row[8];
  uint32_t* r;
  int matrices;
  bool transposed;
};

void resolve_ldmatrix(void* const* payloads, unsigned) {
  const auto payload_of = [&](unsigned lane) -> const LdmatrixLane& { return *static_cast<const LdmatrixLane*>(payloads[lane]); };
  for (int matrix = 0; matrix < payload_of(0).matrices; ++matrix) {
    const auto tile = [&](unsigned row, unsigned column) -> uint32_t {
      return payload_of(static_cast<unsigned>(matrix) * 8 + row).row[column];
    };
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const unsigned g = lane / 4, t = lane % 4 * 2;
      const bool transposed = payload_of(lane).transposed;
      const uint32_t low = transposed ? tile(t, g) : tile(g, t), high = transposed ? tile(t + 1, g) : tile(g, t + 1);
      payload_of(lane).r[matrix] = low | high << 16;
    }
  }
}

// Throws if not all `bytes` bytes at p are in the block's shared memory.
void check_shared(const char* what, const void* p, size_t bytes, Loc loc) {
  if (!current_block->shared().contains(p, bytes))
    current_block->fail_thread(std::string(what) + " at " + describe(loc) + ": the address is not in shared memory");
}

}  // namespace

void check_aligned(const char* what, const void* p, unsigned bytes, Loc loc) {
  const unsigned beyond = reinterpret_cast<uintptr_t>(p) % bytes;
  if (beyond)
    current_block->fail_thread(std::string(what) + " at " + describe(loc) + ": the address is " + std::to_string(beyond) +
                               " bytes beyond a multiple of " + std::to_string(bytes));
}

void check_not_shared(const char* what, const void* p, Loc loc) {
  if (current_block->shared().contains(p, 1))
    current_block->fail_thread(std::string(what) + " at " + describe(loc) + ": the address is in shared memory");
}

void mma_bf16(float* c, const uint32_t* a, const uint32_t* b, Loc loc) {
  MmaLane payload{c, a, b};
  current_block->collective("mma_bf16", ~0u, &payload, &resolve_mma, loc, true);
}

void ldmatrix(const char* name, int matrices, bool transposed, uint32_t* r, const void* row, Loc loc) {
  LdmatrixLane payload{{}, r, matrices, transposed};
  if (current_block->lane() < static_cast<unsigned>(matrices) * 8) {
    check_aligned(name, row, 16, loc);
    check_shared(name, row, 16, loc);
    std::memcpy(payload.row, row, 16);  // each lane reads its own row here, visible to the sanitizers
  }
  current_block->collective(name, ~0u, &payload, &resolve_ldmatrix, loc, true);
}

// ---- asynchronous copies

void begin_copy(void* shared, const void* global, int bytes, int source_bytes, Loc loc) {
  Block& block = *current_block;
  if (source_bytes < 0 || source_bytes > bytes)
    block.fail_thread("cp_async at " + describe(loc) + ": " + std::to_string(source_bytes) + " bytes of the source, expected 0 to " +
                      std::to_string(bytes));
  check_aligned("cp_async, destination", shared, static_cast<unsigned>(bytes), loc);
  check_shared("cp_async, destination", shared, static_cast<size_t>(bytes), loc);
  check_aligned("cp_async, source", global, static_cast<unsigned>(bytes), loc);
  if (source_bytes > 0 && !block.in_device_memory(global, static_cast<size_t>(source_bytes)))
    block.fail_thread("cp_async, source at " + describe(loc) + ": the address is not in device memory");
  block.copies().begin(shared, global, static_cast<size_t>(bytes), static_cast<size_t>(source_bytes), loc);
}

void commit_copies() {
  Quiet quiet;
  current_block->copies().commit();
}
void wait_for_copies(unsigned groups_left) { current_block->copies().wait(groups_left); }
void wait_for_all_copies() { current_block->copies().wait_for_all(); }

}  // namespace emu
