// The numbers of cuda/math.h, for float and double: the format, the split constants and the fitted polynomials.
#pragma once
#include <cstdint>

#include "core/dtype.h"

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

HD uint64_t to_bits(double x) {
  uint64_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}
HD double from_bits(uint64_t bits) {
  double x;
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

  static constexpr float log_smallest = -87.3365402f, log_largest = 88.7228317f;  // bounds of the normal numbers
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
  // (sin(r) - r) / r^3,  z = r^2,  |r| <= 0.84, pi/4 and the error of n at angle_limit
  HD static float sin_tail(float z) { return polynomial(z, -0.166666493f, 0.00833182409f, -0.000194710999f); }
  // (cos(r) - 1 + r^2/2) / r^4
  HD static float cos_tail(float z) { return polynomial(z, 0.0416666381f, -0.00138869009f, 2.4386627e-05f); }
};

template <> struct Constants<double> {
  using Bits = uint64_t;
  static constexpr int width = 64, mantissa = 52;
  static constexpr Bits sign = 0x8000000000000000u, mantissa_mask = 0x000fffffffffffffu;
  static constexpr Bits one = 0x3ff0000000000000u, sqrt_half = 0x3fe6a09e667f3bcdu;  // the bits of 1 and sqrt(1/2)
  static constexpr double infinity = __builtin_huge_val(), nan = __builtin_nan("");
  static constexpr double bias = 1023, two_to_mantissa = 0x1p52, rounder = 0x1.8p52;
  static constexpr double smallest_normal = 0x1p-1022, subnormal_scale = 0x1p54, subnormal_exponent = 54;

  static constexpr double log_smallest = -708.39641853226408, log_largest = 709.78271289338397;
  static constexpr double log2_e = 1.4426950408889634;
  static constexpr double ln2_high = 0x1.62e42fefa38p-1, ln2_low = 0x1.ef35793c7673p-45;
  static constexpr double two_over_pi = 0.63661977236758138;
  static constexpr double half_pi_0 = 0x1.921fb54442d18p+0, half_pi_1 = 0x1.1a62633145c07p-54;
  static constexpr double half_pi_2 = -0x1.f1976b7ed8fbcp-110;
  static constexpr double angle_limit = 1e14;
  static constexpr double erf_near = 1, erf_limit = 6, tanh_near = 0.625, tanh_limit = 20;

  // (e^r - 1 - r) / r^2,  |r| <= ln(2) / 2
  HD static double expm1_tail(double r) {
    return polynomial(r, 0.5, 0.16666666666666677, 0.041666666666666699, 0.0083333333333215787, 0.001388888888886678,
        0.00019841269886267194, 2.4801587360676791e-05, 2.7557244060966693e-06, 2.7557242652493897e-07, 2.5109090740851503e-08,
        2.0924477488120299e-09);
  }
  // (ln(1 + f) - f + f^2/2) / f^3,  sqrt(1/2) <= 1 + f <= sqrt(2)
  HD static double log_tail(double f) {
    return polynomial(f, 0.33333333333333248, -0.24999999999987477, 0.20000000000026935, -0.16666666669920221, 0.14285714285010667,
        -0.1249999968683044, 0.11111110856837582, -0.100000151765437, 0.090909333673078477, -0.083329222992937518, 0.076913535596703969,
        -0.071491499893418853, 0.066864336317408068, -0.062010452931832806, 0.056591587478702847, -0.0564564741993549, 0.065100365360114029,
        -0.060751915793850031, 0.026919525907798184);
  }
  // (erf(t) - t) / t,  z = t^2,  t <= 1
  HD static double erf_tail(double z) {
    return polynomial(z, 0.12837916709551256, -0.37612638903183543, 0.11283791670945063, -0.026866170643244182, 0.0052239776071486242,
        -0.00085483259760065183, 0.00012055294897144535, -1.4924736286894004e-05, 1.644741155963692e-06, -1.6208343580148986e-07,
        1.3719296716461217e-08, -7.7941812608996918e-10);
  }
  // ln(1 - erf(t)),  1 <= t <= 6, the error weighted by 1 - erf(t);  t - 1.5 keeps the terms of the sum small
  HD static double log_erfc(double t) {
    return polynomial(t - 1.5, -3.3844920895515527, -3.5088008017795249, -0.89264033061500292, -0.025824140633787501, 0.0060067463852182907,
        -0.0012572166843551767, 0.00021596331952354145, -2.247371310961759e-05, -2.6469053641815488e-06, 2.3709893787124424e-06,
        -8.1866287667172858e-07, 1.9216735582082219e-07, -2.7620906686235339e-08, -7.5722840840383872e-10, 1.7917869966378071e-09,
        -5.2991880834230321e-10, 7.7975408022115097e-11, -4.865188296302495e-12);
  }
  // (sin(r) - r) / r^3,  z = r^2,  |r| <= 0.84, pi/4 and the error of n at angle_limit
  HD static double sin_tail(double z) {
    return polynomial(z, -0.16666666666666588, 0.0083333333333119961, -0.00019841269821684483, 2.7557310957871477e-06,
        -2.505034398367654e-08, 1.5873618617556357e-10);
  }
  // (cos(r) - 1 + r^2/2) / r^4
  HD static double cos_tail(double z) {
    return polynomial(z, 0.041666666666666519, -0.0013888888888860037, 2.4801587280902547e-05, -2.755731194445192e-07,
        2.0875406188252078e-09, -1.1343774350291412e-11);
  }
};

}  // namespace ricci::math
