// Decoding.
#include "tests/ops/shift_and_sum/cases.h"

using namespace ricci;

namespace {

// Positions first .. first + count of a tensor [b c x], on the CPU.
Tensor positions(const Tensor& t, int64_t first, int64_t count) {
  const Tensor host = to(convert(t, Dtype::f64), Device::cpu);
  const int64_t b = host.shape()[0], c = host.shape()[1], x = host.shape()[2];
  const Tensor some({b, count, x}, Dtype::f64);
  for (int64_t s = 0; s < b; ++s)
    for (int64_t i = 0; i < count * x; ++i) some.data<double>()[s * count * x + i] = host.data<double>()[(s * c + first) * x + i];
  return to(convert(some, t.dtype()), t.device());
}

}  // namespace

TEST_CASE("shift_and_sum_cached: positions read in any portions give what they give at once") {
  on_every_device_and_dtype([](Device device, Dtype dtype) {
    for (const ShiftCase& of : {ShiftCase{2, 13, 2, 5, 4}, ShiftCase{1, 20, 1, 3, 2}, ShiftCase{1, 9, 1, 130, 5}}) {
      const Tensor v = of.v(dtype, device), coef = of.coef(dtype, device), full = shift_and_sum(v, coef, of.options());
      for (int64_t portion : {1, 2, 3, 7, 100}) {
        Tensor rings = zeros({of.b, (int64_t{1} << of.levels) - 1, of.d()}, dtype, device);
        for (int64_t past = 0; past < of.c; past += portion) {
          const int64_t count = std::min(portion, of.c - past);
          const Tensor y = shift_and_sum_cached(positions(v, past, count), positions(coef, past, count), rings, past, of.options());
          CHECK(error_of(y, values_of(positions(full, past, count))) <= 16 * unit(dtype));
        }
      }
    }
  });
}

TEST_CASE("shift_and_sum_cached: rings of fewer levels leave out those that no position reaches") {
  const ShiftCase of{1, 4, 1, 3, 6};
  const Tensor v = of.v(Dtype::f64, Device::cpu), coef = of.coef(Dtype::f64, Device::cpu);
  Tensor rings = zeros({1, 3, 3}, Dtype::f64, Device::cpu);
  const Tensor y = shift_and_sum_cached(v, coef, rings, 0, of.options());
  CHECK(error_of(y, values_of(shift_and_sum(v, coef, of.options()))) < 1e-15);
}

TEST_CASE("shift_and_sum_cached: messages") {
  const auto said = [](Shape v, Shape rings, int64_t past, ShiftAndSumOptions options = {}, int64_t levels = 3) {
    return message_of([&] {
      Tensor memory(rings);
      shift_and_sum_cached(Tensor(v), Tensor({v[0], v[1], levels}), memory, past, options);
    });
  };
  CHECK(said({2, 1, 4}, {2, 0, 4}, 0, {}, 0) == "shift_and_sum_cached: 0 levels, expected 1 .. 30");
  CHECK(said({2, 1, 4}, {2, 6, 4}, 0) == "shift_and_sum_cached: rings of 6 slots, expected one less than a power of two");
  CHECK(said({2, 1, 4}, {1, 7, 4}, 0) == "shift_and_sum_cached: index b is 2 in v_bcd[2 1 4] but 1 in rings_bsd[1 7 4]");
  CHECK(said({2, 1, 4}, {2, 7, 4}, -1) == "shift_and_sum_cached: past is -1, expected 0 or more");
  CHECK(said({2, 1, 4}, {2, 7, 4}, 0, {.dropout = 0.5}) == "shift_and_sum_cached: dropout is 0.5, expected none");
}
