// ricci::math: exp, log, erf, tanh, sin, cos, sigmoid for float and double, the same code on every device.
// Largest errors in ulp, for both types and with or without fused multiply-add:
//   exp 1.1   log 1.0   erf 1.5   tanh 2.0   sin 1.1   cos 1.1   sigmoid 2.6
// exp(x) is 0 if e^x is below the smallest normal number. sin and cos stay within their bounds for |x| <= angle_limit, 5e5 for float and
// 1e14 for double, and return NaN beyond. A NaN stays a NaN; at infinities, the functions return their limits.
//
// The functions are our own. The C library and CUDA round differently, and a loop is vectorized only if its functions have no branches
// (with -fno-math-errno -fno-trapping-math; -ffast-math would lose NaN). The compiler fuses a*b + c if the instruction set supports it.
// Only sin and cos need the fused form, and call the C library without such an instruction. The coefficients are minimax fits (Remez
// exchange), rounded to the type.
#pragma once
#include "cuda/math_constants.h"

namespace ricci::math {

template <class T>
concept Real = requires {
  typename Constants<T>::Bits;
};

HD float sqrt(float x) { return __builtin_sqrtf(x); }
HD double sqrt(double x) { return __builtin_sqrt(x); }
HD float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }  // a*b + c, rounded once
HD double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
template <Real T> HD T abs(T x) { return from_bits(to_bits(x) & ~Constants<T>::sign); }
template <Real T> HD T copysign(T size, T sign) { return from_bits(to_bits(abs(size)) | (to_bits(sign) & Constants<T>::sign)); }
template <Real T> HD bool isnan(T x) { return x != x; }
template <Real T> HD bool isfinite(T x) { return abs(x) < Constants<T>::infinity; }
template <class T> HD T min(T a, T b) { return ((a < b) | (a != a)) ? a : b; }  // NaN if either number is NaN
template <class T> HD T max(T a, T b) { return ((a > b) | (a != a)) ? a : b; }

namespace formula {

// yes ? a : b, by bit operations. With the plain operator, g++ computes everything after it twice.
template <Real T> HD T select(bool yes, T a, T b) {
  using Bits = typename Constants<T>::Bits;
  const Bits mask = to_bits(yes ? from_bits(~Bits{0}) : T(0));
  return from_bits((to_bits(a) & mask) | (to_bits(b) & ~mask));
}

// The smaller of two numbers >= 0; limit if x is NaN. The bits of floats are ordered like the floats.
HD float clamp(float x, float limit) { return from_bits(min(to_bits(x), to_bits(limit))); }
HD double clamp(double x, double limit) { return select(x < limit, x, limit); }

// The nearest integer n to x * factor: the low bits of x * factor + 1.5 * 2^mantissa contain n, since floats of that size are 1 apart.
template <class T> struct Rounded {
  T n;
  typename Constants<T>::Bits bits;
};
template <Real T> HD Rounded<T> round_product(T x, T factor) {
  const T sum = x * factor + Constants<T>::rounder;
  return {sum - Constants<T>::rounder, to_bits(sum)};
}

// x = n ln 2 + r with |r| <= ln(2) / 2; ln 2 is the sum of two numbers, and n times the first is exact.
template <class T> struct Exponent {
  T expm1_r;
  typename Constants<T>::Bits n;  // shifted to the bits of the exponent
};
template <Real T> HD Exponent<T> split_exponent(T x) {
  using C = Constants<T>;
  const Rounded<T> k = round_product(x, C::log2_e);
  const T r = (x - k.n * C::ln2_high) - k.n * C::ln2_low;
  return {r + r * r * C::expm1_tail(r), k.bits << C::mantissa};
}

// 2^n e^r; n is added to the exponent of e^r. Correct if the result is a normal number.
template <Real T> HD T exp_normal(T x) {
  const Exponent<T> e = split_exponent(x);
  return from_bits(to_bits(1 + e.expm1_r) + e.n);
}

// x = n pi/2 + r + rest with |r| <= pi/4; pi/2 is the sum of three numbers, and x - n half_pi_0 is exact.
template <class T> struct Angle {
  T r, rest;
  typename Constants<T>::Bits quadrant;
};
template <Real T> HD Angle<T> reduce_angle(T x) {
  using C = Constants<T>;
  const Rounded<T> k = round_product(x, C::two_over_pi);
  const T first = fma(-k.n, C::half_pi_0, x), second = fma(-k.n, C::half_pi_1, first);
  const T step = first - second, step_error = (first - step) - second;
  const T second_error = fma(-k.n, C::half_pi_1, step) + step_error;
  const T third = fma(-k.n, C::half_pi_2, second_error);
  const T r = second + third;
  return {r, (second - r) + third, k.bits};
}

// sin(x + turn pi/2)
template <Real T> HD T sine(T x, int turn) {
  using C = Constants<T>;
  using Bits = typename C::Bits;
  const Angle<T> a = reduce_angle(x);
  const T z = a.r * a.r;
  const T sine_r = a.r + (a.r * z * C::sin_tail(z) + a.rest);
  const T cosine_r = 1 - (z / 2 - (z * z * C::cos_tail(z) - a.r * a.rest));
  const Bits quadrant = a.quadrant + static_cast<Bits>(turn);
  const T y = (quadrant & 1) != 0 ? cosine_r : sine_r;
  const T signed_y = from_bits(to_bits(y) ^ (quadrant & 2) << (C::width - 2));
  return abs(x) <= C::angle_limit ? signed_y : C::nan;
}

}  // namespace formula

// e^x
template <Real T> HD T exp(T x) {
  using C = Constants<T>;
  const T y = x < C::log_smallest ? T(0) : formula::exp_normal(x);
  return x <= C::log_largest ? y : x + C::infinity;  // infinity, or NaN if x is NaN
}

// ln x = e ln 2 + ln(1 + f) with 1 + f in [sqrt(1/2), sqrt(2));  ln(1 + f) = f - f^2/2 + f^3 Q(f)
template <Real T> HD T log(T x) {
  using C = Constants<T>;
  const bool subnormal = x < C::smallest_normal;
  const T normal = formula::select(subnormal, x * C::subnormal_scale, x);
  const typename C::Bits bits = to_bits(normal) + (C::one - C::sqrt_half);
  const T f = from_bits((bits & C::mantissa_mask) + C::sqrt_half) - 1;
  constexpr T excess = C::two_to_mantissa + C::bias;
  const T e =
      from_bits((bits >> C::mantissa) | to_bits(C::two_to_mantissa)) - formula::select(subnormal, excess + C::subnormal_exponent, excess);
  const T tail = f * f * (f * C::log_tail(f) - T(0.5)) + e * C::ln2_low;
  const T y = e * C::ln2_high + (f + tail);
  const T positive = x == C::infinity ? x : y, other = x == 0 ? -C::infinity : C::nan;
  return x > 0 ? positive : other;
}

// erf(x) = x + x P(x^2) near 0 and 1 - exp(Q(|x|)) beyond, with Q = log erfc.
template <Real T> HD T erf(T x) {
  using C = Constants<T>;
  const T t = abs(x);
  const T near = t + t * C::erf_tail(t * t);
  const T far = 1 - formula::exp_normal(C::log_erfc(formula::clamp(t, C::erf_limit)));  // erf rounds to 1 beyond the limit
  return copysign(formula::select(t >= C::erf_near, far, near), x);
}

// With g = e^(2t) - 1 = 2^n (e^r - 1) + (2^n - 1) and t = |x|:  tanh(t) = g / (g + 2), computed as
//   t + (g - 2t - t g) / (g + 2) near 0 and 1 - 2 / (g + 2) beyond; the quotient only corrects a larger number.
template <Real T> HD T tanh(T x) {
  using C = Constants<T>;
  const T t = abs(x);
  const formula::Exponent<T> e = formula::split_exponent(2 * formula::clamp(t, C::tanh_limit));  // tanh rounds to 1 beyond the limit
  const T power = from_bits(e.n + C::one);
  const T g = power * e.expm1_r + (power - 1);
  const bool far = t > C::tanh_near;
  const T correction = formula::select(far, T(-2), (g - 2 * t) - t * g) / (g + 2);
  return copysign(formula::select(far, T(1), t) + correction, x);
}

template <Real T> HD T sin(T x) { return formula::sine(x, 0); }
template <Real T> HD T cos(T x) { return formula::sine(x, 1); }

// 1 / (1 + e^-x)
template <Real T> HD T sigmoid(T x) { return 1 / (1 + exp(-x)); }

// 1 / sqrt(x), but NaN for infinity: if the mean square of a row overflowed, a norm would multiply the row by 0. x - x is 0 or NaN.
template <Real T> HD T reciprocal_sqrt(T x) { return (1 + (x - x)) / sqrt(x); }

}  // namespace ricci::math
