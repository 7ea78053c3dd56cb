// A sequence beside an upsampled and shifted coarser one, against the formula spelled out.
#include "ops/products/products.h"
#include "ops/scales/cells.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

struct Case {
  int64_t b, c, d, cells, ratio, shift;
};

}  // namespace

TEST_CASE("join_upsampled: with contract a shifted transposed convolution beside a, on every device and dtype") {
  for (const Case& of : std::vector<Case>{{2, 11, 3, 2, 4, 3}, {2, 10, 3, 4, 2, 2}, {1, 5, 40, 3, 3, -2}, {2, 4, 5, 4, 1, 0},
           {1, 3, 2, 1, 4, 3}, {2, 9, 264, 2, 4, 1}, {1, 7, 16, 3, 2, -1}, {2, 11, 24, 1, 8, 2}})
    on_every_device_and_dtype([&](Device device, Dtype dtype) {
      const Tensor a = drawn({of.b, of.c, of.d}, dtype, device, 1), h = drawn({of.b, of.cells, of.d}, dtype, device, 2);
      const Tensor w = drawn({of.d, of.d, of.ratio}, dtype, device, 3), bias = drawn({of.d}, dtype, device, 4);
      const Tensor z = contract("bmi,ix->bmx", h, w.reshaped({of.d, of.d * of.ratio}));
      const Values av = values_of(a), hv = values_of(h), wv = values_of(w), bv = values_of(bias);
      Values expected, size;
      for (int64_t b = 0; b < of.b; ++b)
        for (int64_t c = 0; c < of.c; ++c) {
          for (int64_t i = 0; i < of.d; ++i)
            expected.push_back(av[static_cast<size_t>((b * of.c + c) * of.d + i)]), size.push_back(std::abs(expected.back()));
          const int64_t from = c - of.shift;
          for (int64_t o = 0; o < of.d; ++o) {
            double sum = 0, absolute = 0;
            const bool covered = from >= 0 && from < of.cells * of.ratio;
            for (int64_t i = 0; i < of.d && covered; ++i) {
              const double term = hv[static_cast<size_t>((b * of.cells + from / of.ratio) * of.d + i)] *
                                  wv[static_cast<size_t>((i * of.d + o) * of.ratio + from % of.ratio)];
              sum += term, absolute += std::abs(term);
            }
            expected.push_back(covered ? sum + bv[static_cast<size_t>(o)] : 0),
                size.push_back(covered ? absolute + std::abs(bv[static_cast<size_t>(o)]) : 0);
          }
        }
      const Tensor y = join_upsampled(a, z, bias, of.shift);
      CHECK(y.shape() == Shape{of.b, of.c, 2 * of.d});
      CHECK(error_of(y, expected, size) <= 3 * unit(dtype) + static_cast<double>(of.d + 2) * sum_unit(dtype));
    });
}

TEST_CASE("join_upsampled: the gradients of a and z have the bits of the CPU, 16 bytes at a time or not") {
  for (int64_t ratio : {1, 2, 3, 4, 8})
    for (int64_t d : {24, 264, 5})
      on_every_device_and_dtype([&](Device device, Dtype dtype) {
        CAPTURE(ratio);
        CAPTURE(d);
        const auto gradients = [&](Device on) {
          const std::vector<Tensor> in{drawn({2, 11, d}, dtype, on, 1), drawn({2, 3, d * ratio}, dtype, on, 2), drawn({d}, dtype, on, 3)};
          return gradients_of(
              [](const std::vector<Tensor>& x) { return join_upsampled(x[0], x[1], x[2], -1); }, in, drawn({2, 11, 2 * d}, dtype, on, 4));
        };
        const auto got = gradients(device), expected = gradients(Device::cpu);
        CHECK(same_bits(got[0], expected[0]));
        CHECK(same_bits(got[1], expected[1]));
      });
}

TEST_CASE("join_upsampled: messages") {
  const Tensor a({2, 7, 3}), bias({3});
  CHECK(message_of([&] {
    join_upsampled(a, Tensor({2, 2, 8}), bias, 0);
  }) == "join_upsampled: the 8 columns of z_bmx[2 2 8] are no multiple of the 3 of a_bcd[2 7 3]");
  CHECK(message_of([&] {
    join_upsampled(a, Tensor({2, 2, 0}), bias, 0);
  }) == "join_upsampled: the 0 columns of z_bmx[2 2 0] are no multiple of the 3 of a_bcd[2 7 3]");
  CHECK(message_of([&] {
    join_upsampled(a, Tensor({1, 2, 6}), bias, 0);
  }) == "join_upsampled: index b is 2 in a_bcd[2 7 3] but 1 in z_bmx[1 2 6]");
}
