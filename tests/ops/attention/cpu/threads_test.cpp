// Attention on the CPU: the bits do not depend on the threads, and no memory grows with the square of the context.
#include <vector>

#include "core/cpu/parallel.h"
#include "core/memory/memory.h"
#include "tests/ops/attention/cases.h"

using namespace ricci;

namespace {

struct Threads {
  explicit Threads(int n) : before(thread_count()) { set_thread_count(n); }
  ~Threads() { set_thread_count(before); }
  int before;
};

ForwardAndBackward run_on(int threads, const Case& of, Dtype dtype) {
  const Threads several(threads);
  return run(attention, of, dtype, Device::cpu);
}

}  // namespace

TEST_CASE("the result does not depend on the number of threads") {
  for (const Case& of : std::vector<Case>{{1, 300, 1, 24}, {1, 200, 3, 32, tokens(false)}, {3, 130, 1, 64, tokens(true, 77)},
           {4, 65, 2, 16, tokens(true), 0.2}, {1, 300, 1, 24, tokens(true), 0, {100}},
           {1, 300, 1, 24, tokens(true), 0, {}, Place::all_the_same}, {1, 300, 1, 24, tokens(true), 0, {}, Place::queries_are_values},
           {1, 300, 1, 24, Visibility::cells(4, 0, 130), 0.2, {}, Place::keys_are_values, 75},
           {1, 300, 1, 24, Visibility::cells(4, 70, 500), 0, {}, Place::three_tensors, 75},
           {2, 40, 1, 24, tokens(false), 0, {}, Place::three_tensors, 300}})
    for (Dtype dtype : {Dtype::f32, Dtype::bf16}) {
      CAPTURE(of.text());
      const ForwardAndBackward one = run_on(1, of, dtype);
      for (int n : {2, 3, 5}) CHECK(same_bits(one, run_on(n, of, dtype)));
    }
}

TEST_CASE("several threads equal the definition") {
  const Threads threads(4);
  for (const Case& of : std::vector<Case>{{1, 200, 1, 9, tokens(true, 90)},
           {1, 200, 1, 9, Visibility::cells(2, 70, 150), 0.2, {}, Place::keys_are_values, 100},
           {1, 200, 1, 9, Visibility::cells(64, 0, 64), 0, {}, Place::three_tensors, 130},
           {1, 200, 1, 9, tokens(true), 0, {}, Place::all_the_same}}) {
    CAPTURE(of.text());
    const ForwardAndBackward expected = run(naive_attention, of, Dtype::f64, Device::cpu),
                             got = run(attention, of, Dtype::f64, Device::cpu);
    CHECK(distance(got.y, expected.y) < 1e-12);
    for (size_t i = 0; i < got.gradients.size(); ++i) CHECK(distance(got.gradients[i], expected.gradients[i]) < 1e-12);
  }
}

TEST_CASE("nothing as large as c x c is held, and each tensor is kept once") {
  const int64_t c = 1500, d = 16;
  const Parameter x{convert(draw({1, c, 3 * d}, 1), Dtype::f32), {}, "qkv"};
  const Tensor dy = convert(draw({1, c, d}, 2), Dtype::f32);
  const int64_t before = memory_use(Device::cpu).current;
  reset_peak(Device::cpu);
  Tape tape;
  const auto [q, k, v] = thirds(x);
  const Tensor y = attention(q, k, v, Visibility::causal(), {.heads = 1});
  CHECK(tape.kept_bytes() == x.value.bytes() + y.bytes() + c * 4);
  tape.backward(y, dy);
  CHECK(memory_use(Device::cpu).peak - before < c * c * 4 / 4);
}
