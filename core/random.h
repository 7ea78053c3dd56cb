// Random numbers for the host: normal and uniform values, indices, permutations. Each is a function of (generator, i), so a run can resume
// at any point without sampling the earlier numbers. The values are computed in f64 with the C library's log, sin and cos, then rounded.
#pragma once
#include <concepts>
#include <cstdint>

#include "core/philox.h"

namespace ricci {

// x[k] = mean + deviation * z(first + k) with independent standard normal z(0), z(1), ... (G. Box and M. Muller, 1958).
// Filling in parts, in any order, gives the same values. Errors: n or deviation is negative.
template <std::floating_point T> void fill_normal(T* x, int64_t n, double mean, double deviation, const Philox& random, uint64_t first = 0);

// x[k] = low + (high - low) * random.uniform_f64(first + k), in [low, high). Errors: n is negative, low is above high.
template <std::floating_point T> void fill_uniform(T* x, int64_t n, double low, double high, const Philox& random, uint64_t first = 0);

// The i-th of independent indices in [0, n), all exactly equally likely. Error: n is 0.
// D. Lemire, "Fast random integer generation in an interval", TOMACS 2019.
uint64_t index_below(uint64_t n, const Philox& random, uint64_t i);

// A random order of 0, 1, ..., n - 1: permutation(i) is the i-th element. The order is computed, not stored, so n can be in the billions. A
// Feistel network permutes the numbers below a power of two >= n. A result that is not below n is sent through the network again.
class Permutation {
 public:
  Permutation(uint64_t n, uint64_t seed);
  uint64_t operator()(uint64_t i) const;  // Error: i is not below n
  uint64_t size() const { return n_; }

 private:
  static constexpr int kRounds = 8;
  uint64_t n_, key_[kRounds];
  int left_bits_, right_bits_;
};

}  // namespace ricci
