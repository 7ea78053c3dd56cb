// Samples with Philox blocks, by Box-Muller, multiply-and-reject, and a Feistel network with cycle walking.
#include "core/random.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "core/cpu/parallel.h"
#include "core/error.h"

namespace ricci {
namespace {

struct NormalPair {
  double even, odd;
};

// z(2 pair) and z(2 pair + 1): the coordinates of a point with a normal distribution in the plane.
NormalPair normal_pair(const Philox& random, uint64_t pair) {
  const Philox::Block b = random.block(pair);
  const double u = 1 - Philox::unit_f64(b.v[0], b.v[1]);  // in (0, 1]
  const double radius = std::sqrt(-2 * std::log(u)), angle = 2 * std::numbers::pi * Philox::unit_f64(b.v[2], b.v[3]);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

// Any function of (x, key) that looks random would suffice. This is the last step of SplitMix64.
uint64_t mix(uint64_t x, uint64_t key) {
  x += key;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

uint64_t low_bits(uint64_t x, int count) { return x & ((uint64_t{1} << count) - 1); }

}  // namespace

template <std::floating_point T> void fill_normal(T* x, int64_t n, double mean, double deviation, const Philox& random, uint64_t first) {
  if (n < 0) fail("fill_normal: n is {}, expected at least 0", {n});
  if (!(deviation >= 0)) fail("fill_normal: deviation is {}, expected at least 0", {deviation});
  parallel_for(n, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end;) {
      const uint64_t i = first + static_cast<uint64_t>(k);
      const NormalPair z = normal_pair(random, i / 2);
      if (i % 2 == 0) x[k++] = static_cast<T>(mean + deviation * z.even);
      if (k < end) x[k++] = static_cast<T>(mean + deviation * z.odd);
    }
  });
}

template <std::floating_point T> void fill_uniform(T* x, int64_t n, double low, double high, const Philox& random, uint64_t first) {
  if (n < 0) fail("fill_uniform: n is {}, expected at least 0", {n});
  if (!(low <= high)) fail("fill_uniform: low is {}, expected at most high = {}", {low, high});
  const T end = static_cast<T>(high), last = std::nextafter(end, static_cast<T>(low));
  for (int64_t k = 0; k < n; ++k) {
    const T value = static_cast<T>(low + (high - low) * random.uniform_f64(first + static_cast<uint64_t>(k)));
    x[k] = value < end ? value : last;  // the sum may have been rounded up
  }
}

template void fill_normal(float*, int64_t, double, double, const Philox&, uint64_t);
template void fill_normal(double*, int64_t, double, double, const Philox&, uint64_t);
template void fill_uniform(float*, int64_t, double, double, const Philox&, uint64_t);
template void fill_uniform(double*, int64_t, double, double, const Philox&, uint64_t);

// The high word of bits * n is the index. Of the 2^64 products, 2^64 mod n are rejected: they would make some indices more likely.
uint64_t index_below(uint64_t n, const Philox& random, uint64_t i) {
  if (n == 0) fail("index_below: n is 0, expected at least 1");
  const uint64_t rejected = (0 - n) % n;
  for (Philox attempt = random;; attempt.stream += 0x9E3779B97F4A7C15u) {
    const Philox::Block b = attempt.block(i);
    const unsigned __int128 product = static_cast<unsigned __int128>(b.v[0] | uint64_t{b.v[1]} << 32) * n;
    if (static_cast<uint64_t>(product) >= rejected) return static_cast<uint64_t>(product >> 64);
  }
}

Permutation::Permutation(uint64_t n, uint64_t seed) : n_(n) {
  const Philox random{seed, 0x7065726D75746174u};
  for (int r = 0; r < kRounds; ++r) {
    const Philox::Block b = random.block(static_cast<uint64_t>(r));
    key_[r] = b.v[0] | uint64_t{b.v[1]} << 32;
  }
  const int bits = n > 64 ? std::bit_width(n - 1) : 6;  // a smaller network would not produce every order equally often
  left_bits_ = bits / 2;
  right_bits_ = bits - left_bits_;
}

uint64_t Permutation::operator()(uint64_t i) const {
  if (i >= n_) fail("permutation: index {} is not below {}", {i, n_});
  do {
    uint64_t left = i >> right_bits_, right = low_bits(i, right_bits_);
    for (int r = 0; r < kRounds; r += 2) {
      left ^= low_bits(mix(right, key_[r]), left_bits_);
      right ^= low_bits(mix(left, key_[r + 1]), right_bits_);
    }
    i = left << right_bits_ | right;
  } while (i >= n_);
  return i;
}

}  // namespace ricci
