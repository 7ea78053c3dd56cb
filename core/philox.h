// Philox4x32-10, a counter-based random number generator: the i-th number is a function of (seed, stream, i), not of earlier numbers. Every
// thread and device can compute any number and gets the same bits. J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011.
#pragma once
#include <cstdint>

#include "core/dtype.h"

namespace ricci {

// Two generators with different (seed, stream) are independent. bits, uniform and uniform_f64 use the same blocks in different ways, so use
// a separate stream for each of them.
struct Philox {
  uint64_t seed;
  uint64_t stream;

  struct Block {
    uint32_t v[4];
  };

  // 128 random bits: ten rounds on the counter (index, stream), with the seed as the key.
  HD Block block(uint64_t index) const { return rounds<10>({low(index), high(index), low(stream), high(stream)}, low(seed), high(seed)); }

  // The i-th 32-bit number: word i % 4 of block i / 4.
  HD uint32_t bits(uint64_t i) const {
    const Block b = block(i / 4);
    const uint32_t even = i & 2 ? b.v[2] : b.v[0], odd = i & 2 ? b.v[3] : b.v[1];
    return i & 1 ? odd : even;
  }

  // The i-th number in [0, 1), a multiple of 2^-24.
  HD float uniform(uint64_t i) const { return unit_f32(bits(i)); }

  // The i-th number in [0, 1), a multiple of 2^-53: half i % 2 of block i / 2.
  HD double uniform_f64(uint64_t i) const {
    const Block b = block(i / 2);
    return i & 1 ? unit_f64(b.v[2], b.v[3]) : unit_f64(b.v[0], b.v[1]);
  }

  // Converts random words to a number in [0, 1).
  HD static float unit_f32(uint32_t word) { return static_cast<float>(static_cast<int32_t>(word >> 8)) * 0x1p-24f; }
  HD static double unit_f64(uint32_t word0, uint32_t word1) {
    return (static_cast<int32_t>(word1 >> 5) * 67108864.0 + static_cast<int32_t>(word0 >> 6)) * 0x1p-53;
  }

 private:
  // The type of a 32-bit word of the state, and the halves of its product with a constant. Vectors multiply 64-bit lanes.
#ifdef __CUDA_ARCH__
  using Word = uint32_t;
  HD static Word product_low(Word a, uint32_t b) { return a * b; }
  HD static Word product_high(Word a, uint32_t b) { return __umulhi(a, b); }
#else
  using Word = uint64_t;
  HD static Word product_low(Word a, uint32_t b) { return low(a * b); }
  HD static Word product_high(Word a, uint32_t b) { return high(a * b); }
#endif
  HD static Word low(uint64_t x) { return x & 0xFFFFFFFFu; }
  HD static Word high(uint64_t x) { return static_cast<Word>(x >> 32); }

  struct State {
    Word v0, v1, v2, v3;
  };
  // Applies Count rounds, recursively. A loop over i that calls block(i) is vectorized only if block contains no loop.
  template <int Count> HD static Block rounds(const State& s, Word key0, Word key1) {
    if constexpr (Count == 0) {
      return {{uint32_t(s.v0), uint32_t(s.v1), uint32_t(s.v2), uint32_t(s.v3)}};
    } else {
      constexpr uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
      const State next{product_high(s.v2, kMultiplier1) ^ s.v1 ^ key0, product_low(s.v2, kMultiplier1),
          product_high(s.v0, kMultiplier0) ^ s.v3 ^ key1, product_low(s.v0, kMultiplier0)};
      constexpr uint32_t kGoldenRatio = 0x9E3779B9u, kSqrtOf3 = 0xBB67AE85u;  // the fractional parts of these constants, times 2^32
      return rounds<Count - 1>(next, low(key0 + kGoldenRatio), low(key1 + kSqrtOf3));
    }
  }
};

// ---- The random numbers of ops (dropout)

// A generator that an op passes to its kernel. `base` is for kernels that a CUDA graph launches repeatedly with the same arguments
// (cuda/device/graph.h): their stream index changes in memory.
struct PhiloxSource {
  uint64_t seed = 0, stream = 0;
  const uint64_t* base = nullptr;  // added to the stream, if it is not null
  HD Philox philox() const { return {seed, base ? *base + stream : stream}; }
};

// Every op that samples takes a new stream from this thread's state. recompute() restores the state (a few numbers) and samples the same
// numbers again.
struct RandomState {
  uint64_t seed = 0;
  uint64_t next_stream = 0;
  // The index of the micro-batch in its batch. An op samples by an element's position in the full batch, so a batch and its micro-batches
  // get the same dropout.
  uint64_t micro_batch = 0;
  const uint64_t* base = nullptr;  // in the memory of the device that samples
  bool operator==(const RandomState&) const = default;
};

inline constinit thread_local RandomState random_state_of_thread{};

inline RandomState random_state() { return random_state_of_thread; }
inline void set_random_state(RandomState state) { random_state_of_thread = state; }
// Restores the state when destroyed.
struct SavedRandomState {
  RandomState state = random_state();
  void restore() const { set_random_state(state); }
  ~SavedRandomState() { restore(); }
};

inline PhiloxSource take_stream() {  // returns a stream that no other call gets
  RandomState& state = random_state_of_thread;
  return {state.seed, state.next_stream++, state.base};
}

}  // namespace ricci
