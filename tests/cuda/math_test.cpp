// ricci::math against the C library in the next wider type: errors in units of the last place (ulp), special values, tails. All is
// evaluated in a loop under each instruction set of this CPU.
#include "cuda/math.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/cpu/isa.h"
#include "core/philox.h"
#include "tests/skip.h"

using namespace ricci;

namespace {

// The bounds of the errors in ulp are those of math.h.
#define FUNCTION(Name, name, exact_value, largest_error)                    \
  struct Name {                                                             \
    static constexpr const char* text = #name;                              \
    static constexpr double bound = largest_error;                          \
    template <class T> HD T operator()(T x) const { return math::name(x); } \
    template <class R> static R exact(R x) { return exact_value; }          \
  }
FUNCTION(Exp, exp, std::exp(x), 1.1);
FUNCTION(Log, log, std::log(x), 1.0);
FUNCTION(Erf, erf, std::erf(x), 1.5);
FUNCTION(Tanh, tanh, std::tanh(x), 2.0);
FUNCTION(Sin, sin, std::sin(x), 1.1);
FUNCTION(Cos, cos, std::cos(x), 1.1);
FUNCTION(Sigmoid, sigmoid, 1 / (1 + std::exp(-x)), 2.6);

template <class F> constexpr bool is_angle = std::is_same_v<F, Sin> || std::is_same_v<F, Cos>;
// 0 is allowed below the smallest normal number.
template <class F> constexpr bool flushes = std::is_same_v<F, Exp> || std::is_same_v<F, Sigmoid>;

template <class F, class T> struct Loop {
  const T* x;
  T* y;
  HD void operator()(int64_t begin, int64_t end) const {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) y[i] = F{}(x[i]);
  }
};

template <class F, class T> void evaluate(Isa isa, const std::vector<T>& x, std::vector<T>& y) {
  const int64_t n = static_cast<int64_t>(x.size());
  y.resize(x.size());
  const Loop<F, T> loop{x.data(), y.data()};
#if defined(__x86_64__)
  if (isa == Isa::avx512) return run_avx512(loop, 0, n);
  if (isa == Isa::avx2) return run_avx2(loop, 0, n);
#endif
  run_baseline(loop, 0, n);
}

std::vector<Isa> instruction_sets() {
  std::vector<Isa> all;
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512})
    if (isa <= cpu_isa()) all.push_back(isa);
  return all;
}

// |y - exact| in units of the last place of T at `exact`; infinite if only one of the two is finite.
template <class T, class R> double ulp_error(T y, R exact) {
  using Limits = std::numeric_limits<T>;
  const T rounded = static_cast<T>(exact);
  const bool same = rounded == y || (std::isnan(rounded) && std::isnan(y));
  if (!std::isfinite(rounded) || !std::isfinite(y)) return same ? 0 : HUGE_VAL;
  const int exponent = exact == 0 ? Limits::min_exponent : std::max(std::ilogb(exact) + 1, Limits::min_exponent);
  return static_cast<double>(std::abs(R(y) - exact) / std::ldexp(R(1), exponent - Limits::digits));
}

template <class F, class T> void check_bound(const std::vector<T>& x) {
  using R = std::conditional_t<std::is_same_v<T, float>, double, long double>;
  std::vector<R> exact;
  for (T value : x) exact.push_back(F::exact(R(value)));
  std::vector<T> y;
  for (Isa isa : instruction_sets()) {
    evaluate<F>(isa, x, y);
    double worst = -1;
    size_t at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      if (is_angle<F> && std::abs(x[i]) > math::Constants<T>::angle_limit) continue;
      const bool flushed = flushes<F> && y[i] == 0 && exact[i] < std::numeric_limits<T>::min();
      const double error = flushed ? 0 : ulp_error(y[i], exact[i]);
      if (error > worst) worst = error, at = i;
    }
    INFO(F::text, " of ", sizeof(T) * 8, " bits, ", name_of(isa), ", at x = ", static_cast<double>(x[at]));
    CHECK(worst <= F::bound);
    CHECK(worst >= 0);
  }
}

// f(Exp{}), f(Log{}), ...
template <class Check> void for_each_function(Check f) { f(Exp{}), f(Log{}), f(Erf{}), f(Tanh{}), f(Sin{}), f(Cos{}), f(Sigmoid{}); }

template <class T> void check_all_bounds(const std::vector<T>& x) {
  for_each_function([&]<class F>(F) { check_bound<F>(x); });
}

template <class F, class T> T at(T x) {
  std::vector<T> y;
  const std::vector<T> one = {x};
  evaluate<F>(Isa::baseline, one, y);
  return y[0];
}

template <class T> void check_special_values() {
  using Limits = std::numeric_limits<T>;
  const T inf = Limits::infinity();
  CHECK(at<Exp>(-inf) == 0);
  CHECK(at<Exp>(inf) == inf);
  CHECK((at<Exp>(Limits::max()) == inf && at<Exp>(Limits::lowest()) == 0));
  CHECK(at<Exp>(T(0)) == 1);
  CHECK((at<Log>(T(0)) == -inf && at<Log>(T(-0.0)) == -inf));
  CHECK(std::isnan(at<Log>(T(-1))));
  CHECK(std::isnan(at<Log>(-Limits::denorm_min())));
  CHECK(std::isnan(at<Log>(-inf)));
  CHECK(at<Log>(inf) == inf);
  CHECK(at<Log>(T(1)) == 0);
  for (T sign : {T(1), T(-1)}) {
    CHECK(at<Tanh>(sign * inf) == sign);
    CHECK(at<Tanh>(sign * Limits::max()) == sign);
    CHECK(at<Erf>(sign * inf) == sign);
    CHECK(at<Erf>(sign * Limits::max()) == sign);
    CHECK(std::isnan(at<Sin>(sign * inf)));
    CHECK(std::isnan(at<Cos>(sign * inf)));
    CHECK(std::isnan(at<Sin>(sign * 2 * math::Constants<T>::angle_limit)));  // out of range
    CHECK(std::signbit(at<Tanh>(sign * T(0))) == (sign < 0));
    CHECK(std::signbit(at<Erf>(sign * T(0))) == (sign < 0));
    CHECK(at<Tanh>(sign * Limits::denorm_min()) == sign * Limits::denorm_min());
  }
  CHECK(at<Sin>(T(0)) == 0);
  CHECK(at<Cos>(T(0)) == 1);
  CHECK(at<Sigmoid>(-inf) == 0);
  CHECK(at<Sigmoid>(inf) == 1);
  CHECK(at<Sigmoid>(T(0)) == T(0.5));
}

// The smallest and the largest normal number are reached; beyond them are 0 and infinity.
template <class T> void check_ends(T smallest, T largest) {
  using Limits = std::numeric_limits<T>;
  CHECK(at<Exp>(smallest) >= Limits::min());
  CHECK(at<Exp>(smallest) <= Limits::min() * T(1.0001));
  CHECK(at<Exp>(std::nextafter(smallest, T(-1000))) == 0);
  CHECK(at<Exp>(largest) >= Limits::max() * T(0.9999));
  CHECK(at<Exp>(largest) <= Limits::max());
  CHECK(at<Exp>(std::nextafter(largest, T(1000))) == Limits::infinity());
}

template <class T> void check_every_nan(const std::vector<T>& nans) {
  for_each_function([&]<class F>(F) {
    for (Isa isa : instruction_sets()) {
      std::vector<T> y;
      evaluate<F>(isa, nans, y);
      INFO(F::text, " ", name_of(isa));
      CHECK(std::all_of(y.begin(), y.end(), [](T value) { return std::isnan(value); }));
    }
  });
}

// Never falls from one step to the next, and never leaves [low, high].
template <class F, class T> void check_rises(T begin, T end, T step, T low, T high) {
  std::vector<T> x, y;
  for (T value = begin; value < end; value += step) x.push_back(value);
  for (Isa isa : instruction_sets()) {
    evaluate<F>(isa, x, y);
    INFO(F::text, " of ", sizeof(T) * 8, " bits, ", name_of(isa), ", from ", static_cast<double>(begin));
    CHECK(std::is_sorted(y.begin(), y.end()));
    CHECK(y.front() >= low);
    CHECK(y.back() <= high);
    CHECK(y.front() < y.back());
  }
}

template <class T> void check_tails() {
  const T inf = std::numeric_limits<T>::infinity(), step = T(1) / 512, widest = sizeof(T) == 4 ? T(100) : T(750);
  check_rises<Exp, T>(-widest, widest, step, 0, inf);
  check_rises<Sigmoid, T>(-widest, widest, step, 0, 1);
  check_rises<Tanh, T>(-30, 30, step, -1, 1);
  check_rises<Erf, T>(-8, 8, step, -1, 1);
  check_rises<Log, T>(step, 1000, step, -inf, inf);
}

template <class T> void check_helpers() {
  const T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
  for (T other : {T(-1), inf}) {
    CHECK(std::isnan(math::max(nan, other)));
    CHECK(std::isnan(math::max(other, nan)));
    CHECK(std::isnan(math::min(nan, other)));
    CHECK(std::isnan(math::min(other, nan)));
  }
  CHECK((math::isnan(nan) && !math::isnan(inf)));
  for (T infinite : {nan, inf, -inf}) CHECK(!math::isfinite(infinite));
  for (T finite : {T(0), std::numeric_limits<T>::max()}) CHECK((math::isfinite(finite) && math::isfinite(-finite)));
  CHECK(!std::signbit(math::abs(T(-0.0))));
  CHECK(math::copysign(T(2), T(-0.0)) == -2);
  CHECK(std::isnan(math::sqrt(T(-1))));
  const T tiny = std::numeric_limits<T>::epsilon();
  CHECK(math::fma(1 + tiny, 1 - tiny, T(-1)) == -tiny * tiny);  // 0 if the product is rounded
}

}  // namespace

TEST_CASE("math: float functions keep their bound over all magnitudes") {
  const uint64_t kStep = test::everything() ? 4001 : 40009;  // every so many of the 2^32 numbers
  std::vector<float> x;
  for (uint64_t i = 0; i < uint64_t{1} << 32; i += kStep) x.push_back(std::bit_cast<float>(static_cast<uint32_t>(i)));
  check_all_bounds(x);
}

TEST_CASE("math: double functions keep their bound over all magnitudes") {
  const Philox random{1, 2};
  std::vector<double> x;
  for (uint64_t i = 0; i < (test::everything() ? 200000 : 20000); ++i) {
    const Philox::Block b = random.block(i);
    x.push_back(std::bit_cast<double>(b.v[0] | uint64_t{b.v[1]} << 32));
  }
  check_all_bounds(x);
}

TEST_CASE("math: functions keep their bound where they vary") {
  const Philox random{3, 4};
  for (double range : {0.1, 1.5, 6.0, 30.0, 720.0}) {
    std::vector<float> x;
    std::vector<double> xd;
    for (uint64_t i = 0; i < (test::everything() ? 100000 : 10000); ++i) {
      xd.push_back((2 * random.uniform_f64(i) - 1) * range);
      x.push_back(static_cast<float>(xd.back()));
    }
    check_all_bounds(x);
    check_all_bounds(xd);
    for (size_t i = 0; i < x.size(); ++i) x[i] = 1 + x[i] / 1024, xd[i] = 1 + xd[i] / 1024;  // the logarithm's zero
    check_bound<Log>(x);
    check_bound<Log>(xd);
  }
}

TEST_CASE("math: sin and cos keep their bound next to multiples of pi/2") {
  std::vector<float> x;
  std::vector<double> xd;
  for (int64_t n = 1; n < 318000; n = n + 1 + n / 1000) {
    const long double turn = 1.570796326794896619231321691639751442L * static_cast<long double>(n);
    for (int side : {-1, 1}) {
      x.push_back(std::nextafter(static_cast<float>(turn), side * HUGE_VALF));
      xd.push_back(std::nextafter(static_cast<double>(turn), side * HUGE_VAL));
    }
    x.push_back(static_cast<float>(turn));
    xd.push_back(static_cast<double>(turn));
  }
  check_bound<Sin>(x);
  check_bound<Cos>(x);
  check_bound<Sin>(xd);
  check_bound<Cos>(xd);
}

TEST_CASE("math: special values") {
  check_special_values<float>();
  check_special_values<double>();
  check_ends(-87.3365402f, 88.7228317f);
  check_ends(-708.39641853226408, 709.78271289338397);
}

TEST_CASE("math: a NaN stays a NaN whatever its payload and sign") {
  std::vector<float> x;
  std::vector<double> xd;
  for (uint32_t bits = 0x7f800001u; bits < 0x80000000u; bits += bits < 0x7f802000u || bits > 0x7fffe000u ? 1 : 2057)
    for (uint32_t sign : {0u, 0x80000000u}) x.push_back(std::bit_cast<float>(bits | sign));
  for (uint64_t shift = 0; shift < 52; ++shift)
    for (uint64_t top : {0x7ff0000000000000u, 0x7ff8000000000000u, 0xfff0000000000000u, 0xfff8000000000000u})
      for (uint64_t low : {1u, 5u, 1023u, 4095u}) {
        const uint64_t payload = (low << shift & 0x000fffffffffffffu) | 1;
        xd.push_back(std::bit_cast<double>(top | payload));
      }
  check_every_nan(x);
  check_every_nan(xd);
}

TEST_CASE("math: functions rise through their tails") {
  check_tails<float>();
  check_tails<double>();
}

TEST_CASE("math: helpers") {
  check_helpers<float>();
  check_helpers<double>();
}
