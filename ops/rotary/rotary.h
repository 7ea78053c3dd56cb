// Rotary positions (Su et al. 2021): the columns of a query and of a key are rotated by angles that grow with their position. The dot
// product of two rotated vectors depends on the difference of their angles, so a score depends only on the difference of the two positions.
#pragma once
#include <array>

#include "autograd/arg.h"

namespace ricci {

enum class RopeScaling : uint8_t {
  none,
  linear,  // every frequency divided by the factor
  llama3,  // as linear, only for wavelengths that are long compared with the trained context (Llama 3.1)
};
constexpr auto choices(RopeScaling) { return std::array{"none", "linear", "llama3"}; }

// The frequencies w_i = theta^(-2i / r) for i < r / 2, in radians per position, and their scaling.
struct RotaryFrequencies {
  double theta = 10000;
  RopeScaling scaling = RopeScaling::none;
  double factor = 8;  // for linear and llama3
  // For llama3: a wavelength below trained_ctx / high is unchanged, and one above trained_ctx / low is multiplied by the factor; between
  // them the frequencies change gradually.
  double low = 1, high = 4;
  int64_t trained_ctx = 8192;
};

// Returns w_i for r columns, after the scaling.
double rotary_frequency(int64_t i, int64_t r, const RotaryFrequencies& frequencies);

// The table [positions r] of the cosines (r / 2 columns) and sines of position times frequency for r columns of a head, a constant computed
// in f64. Errors: r is odd, theta or factor is not a positive number, 0 < low < high does not hold.
Tensor rotary_table(int64_t positions, int64_t r, const RotaryFrequencies& frequencies, Dtype dtype, Device device);

struct RotaryHeads {
  int64_t queries, keys;  // numbers of heads
  int64_t width;          // k, the columns of each head
};

// Normalises and rotates the heads of queries and keys: the first (queries + keys) width columns of x_bcd, head by head. The other columns
// (values) are not used. Returns [b c (queries + keys) width]. If the gains are not empty, each head is first RMS-normalised
// (ops/rows/rms_norm.h), queries with q_gain_k and keys with k_gain_k. Then the first r columns are rotated: columns i < r / 2 and
// i + r / 2 are a pair, and at position `first` + c the pair is rotated by the angle in that row of table_Cr. The other columns do not
// change. An empty table rotates nothing. Computed in f32 (f64 for f64) and rounded once. Errors: 2^32 positions or more; neither gains nor
// a table, or only one gain; gains or table have the wrong width; positions beyond the table; the table is not f32 (f64 for x in f64) or
// needs a gradient; inputs differ in dtype or device.
Tensor rotary(const Arg& x_bcd, const RotaryHeads& heads, const Arg& q_gain_k, const Arg& k_gain_k, const Tensor& table_Cr,
    int64_t first = 0, double eps = 1e-5);

}  // namespace ricci
