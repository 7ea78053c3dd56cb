// Attention in f32 and bf16 is compared with the definition carried out in the same precision: both with the exact values.
#include <vector>

#include "tests/ops/attention/attention_low_precision.h"

using namespace ricci;

namespace {

template <class S> void check_low_precision(const Case& of, Device device) {
  const std::string dtype = name_of(dtype_of<S>);
  CAPTURE(dtype);
  CAPTURE(of.c);
  CAPTURE(of.width);
  const Tensor qkv = convert(of.qkv(), dtype_of<S>), dy = convert(of.dy(), dtype_of<S>);
  const ForwardAndBackward exact = run(naive_attention, convert(qkv, Dtype::f64), convert(dy, Dtype::f64), of.options());
  const ForwardAndBackward naive = LowPrecision<S>::run(of, convert(qkv, Dtype::f32), convert(dy, Dtype::f32));
  const ForwardAndBackward got = run(attention, to(qkv, device), to(dy, device), of.options());
  CHECK(got.y.dtype() == dtype_of<S>);
  CHECK(distance(got.y, exact.y) <= 2 * distance(naive.y, exact.y));
  CHECK(distance(got.dqkv, exact.dqkv) <= 2 * distance(naive.dqkv, exact.dqkv));
}

}  // namespace

TEST_CASE("low precision costs no more than in the definition") {
  on_every_device([](Device device) {
    const std::vector<Case> cases = {{1, 65, 2, 32, true, 0}, {1, 100, 1, 64, true, 0}, {1, 33, 1, 128, true, 0}};
    for (const Case& of : cases) {
      check_low_precision<float>(of, device);
      check_low_precision<bf16>(of, device);
    }
  });
}
