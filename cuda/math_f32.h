// What cuda/math.h needs of float: the format, the split constants and the fitted polynomials.
#pragma once
#include <cstdint>

#include "core/host_device.h"

namespace ricci::math {

template <class T> struct Constants;

HD uint32_t to_bits(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}
HD float from_bits(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

// c0 + c1 x + c2 x^2 + ..., by Horner's rule
template <class T> HD T polynomial(T, T c0) { return c0; }
template <class T, class... Rest> HD T polynomial(T x, T c0, Rest... rest) { return polynomial(x, rest...) * x + c0; }

template <> struct Constants<float> {
  using Bits = uint32_t;
  static constexpr int width = 32, mantissa = 23;
  static constexpr Bits sign = 0x80000000u, mantissa_mask = 0x007fffffu;
  static constexpr Bits one = 0x3f800000u, sqrt_half = 0x3f3504f3u;  // the bits of 1 and sqrt(1/2)
  static constexpr float infinity = __builtin_huge_valf(), nan = __builtin_nanf("");
  static constexpr float bias = 127, two_to_mantissa = 0x1p23f, rounder = 0x1.8p23f;
  static constexpr float smallest_normal = 0x1p-126f, subnormal_scale = 0x1p24f, subnormal_exponent = 24;

  static constexpr float log_smallest = -87.3365402f, log_largest = 88.7228317f;  // of the normal numbers
  static constexpr float log2_e = 1.44269502f;
  static constexpr float ln2_high = 0x1.62e4p-1f, ln2_low = 0x1.7f7d1cp-20f;
  static constexpr float two_over_pi = 0.636619747f;
  static constexpr float half_pi_0 = 0x1.921fb6p+0f, half_pi_1 = -0x1.777a5cp-25f, half_pi_2 = -0x1.ee59dap-50f;
  static constexpr float angle_limit = 5e5f;
  static constexpr float erf_near = 0.875f, erf_limit = 4, tanh_near = 0.625f, tanh_limit = 10;

  // (e^r - 1 - r) / r^2,  |r| <= ln(2) / 2
  HD static float expm1_tail(float r) { return polynomial(r, 0.5f, 0.166665435f, 0.0416662805f, 0.00836661085f, 0.00139464985f); }
  // (ln(1 + f) - f + f^2/2) / f^3,  sqrt(1/2) <= 1 + f <= sqrt(2)
  HD static float log_tail(float f) {
    return polynomial(
        f, 0.333333164f, -0.250008136f, 0.200022951f, -0.166244537f, 0.141809225f, -0.131295577f, 0.128838822f, -0.0786003694f);
  }
  // (erf(t) - t) / t,  z = t^2,  t <= 0.875
  HD static float erf_tail(float z) {
    return polynomial(z, 0.128379151f, -0.376125574f, 0.112825133f, -0.0267935041f, 0.00503511215f, -0.000621799321f);
  }
  // ln(1 - erf(t)),  0.875 <= t <= 4, the error weighted by 1 - erf(t)
  HD static float log_erfc(float t) {
    return polynomial(t, -0.000142962264f, -1.12789464f, -0.636811554f, -0.104258381f, 0.0223850533f, -0.00308302394f, 0.00020000794f);
  }
  // (sin(r) - r) / r^3,  z = r^2,  |r| <= 0.84: pi/4 and the error of n at angle_limit
  HD static float sin_tail(float z) { return polynomial(z, -0.166666493f, 0.00833182409f, -0.000194710999f); }
  // (cos(r) - 1 + r^2/2) / r^4
  HD static float cos_tail(float z) { return polynomial(z, 0.0416666381f, -0.00138869009f, 2.4386627e-05f); }
};

}  // namespace ricci::math
