// bf16 heads of the widths that flash attention has no kernel for: who computes them, and how exactly.
#include "ops/attention/wide/wide.h"

#include <vector>

#include "cuda/trace.h"
#include "tests/ops/attention/low_precision.h"
#include "tests/sanitized.h"

using namespace ricci;
using attention_kernels::GpuPath;

namespace {

GpuPath path_of(const Case& of, const std::vector<Tensor>& inputs, const Tensor& dy) {
  const auto [q, k, v] = of.views(inputs);
  const AttentionOptions options = of.options(dy.device());  // which the problem has a pointer into
  return attention_kernels::gpu_path(
      attention_kernels::check("attention", q, k, v, of.sees, options).problem, std::vector<Rows>{q, k, v, {dy}});
}

void check(const Case& of, GpuPath path, Device device) {
  CAPTURE(of.text());
  const std::vector<Tensor> inputs = as(of.inputs(), Dtype::bf16, device);
  const Tensor dy = to(convert(of.dy(), Dtype::bf16), device);
  CHECK(path_of(of, inputs, dy) == path);
  check_errors<bf16>(of, inputs, dy, run(attention, of, inputs, dy));
}

// What attention does, in blocks.
ForwardAndBackward in_blocks(const Case& of, const std::vector<Tensor>& inputs, const Tensor& dy) {
  using namespace attention_kernels;
  set_random_state({5, 1});  // as in run of cases.h
  const auto [q, k, v] = of.views(inputs);
  const AttentionOptions options = of.options(dy.device());
  Checked checked = attention_kernels::check("attention", q, k, v, of.sees, options);
  checked.problem.dropout = draw_dropout(of.dropout, of.b * of.heads);
  const Outputs out{like(dy), like(dy, {of.b, of.heads, of.c}, Dtype::f32)};
  blocks_forward(checked.problem, checked.views(), out);
  const std::vector<Tensor> gradients = checked.layout.gradients(inputs);
  blocks_backward(checked.problem, dy, checked.views(), out, checked.layout.views(gradients));
  return {out.y_bcd, gradients};
}

}  // namespace

TEST_CASE("attention in bf16: heads of any width up to 128 are padded for flash attention") {
  on_gpus([](Device device) {
    for (int64_t width : {1, 8, 24, 40, 72, 100, 127}) check({2, 65, 2, width}, GpuPath::padded, device);
    check({1, 70, 1, 64, tokens(true), 0, {}, Place::odd_columns}, GpuPath::padded, device);
    for (Place place : all_places()) check({2, 40, 2, 24, tokens(true), 0.2, {}, place}, GpuPath::padded, device);
    check({2, 130, 2, 48, tokens(false), 0.1, {70, 3}, Place::three_tensors, 70}, GpuPath::padded, device);
    check({1, 64, 1, 64}, GpuPath::flash, device);
  });
}

TEST_CASE("attention in bf16: wider heads are matrix products and a softmax of whole rows") {
  on_gpus([](Device device) {
    if (!test::kThreadSanitizer) check({3, 65, 1, 512}, GpuPath::products, device);  // several groups of sequences
    check({1, 40, 2, 136, tokens(false)}, GpuPath::products, device);
    check({2, 33, 2, 160, tokens(true, 9), 0.2}, GpuPath::products, device);
    for (Place place : all_places()) check({2, 24, 1, 144, tokens(true), 0, {}, place}, GpuPath::products, device);
    check({2, 50, 2, 130, Visibility::cells(4, 1, 60, CellRule::end), 0.1, {12, 5}, Place::three_tensors, 12}, GpuPath::products, device);
    check({2, 30, 1, 200, tokens(true), 0, {20, 1}, Place::wider_tensors, 20}, GpuPath::products, device);
  });
}

TEST_CASE("attention in bf16: padding reaches nothing, and queries that see nothing give zero, whatever the width") {
  on_gpus([](Device device) {
    for (int64_t width : {24, 136}) {
      const auto causal = [](int64_t t, int64_t j) { return j <= t; };
      check_zeros({2, 20, 1, width, Visibility::causal(), 0, {13, 0}}, Dtype::bf16, device, causal);
      const auto cells = [](int64_t t, int64_t j) { return t - 4 * j >= 3 + 2; };
      check_zeros({2, 30, 2, width, Visibility::cells(4, 2), 0, {7, 4}, Place::three_tensors, 7}, Dtype::bf16, device, cells);
    }
  });
}

TEST_CASE("attention: f32 and f64 go in blocks, and so do bf16 heads whose scores do not fit into memory") {
  const Device device = Device::cuda_emulated;
  const Case of{1, 8, 1, 32}, far{1, 8, 1, 24, Visibility::cells(Visibility::kMaxTokens), 0, {}, Place::three_tensors, 300};
  for (Dtype dtype : {Dtype::f32, Dtype::f64}) CHECK(path_of(of, as(of.inputs(), dtype, device), of.dy()) == GpuPath::blocks);
  CHECK(path_of(far, as(far.inputs(), Dtype::bf16, device), far.dy()) == GpuPath::products);  // positions beyond 32 bits
  const Case wide{1, 8, 1, 136};
  const std::vector<Tensor> inputs = as(wide.inputs(), Dtype::bf16, device);
  const auto [q, k, v] = wide.views(inputs);
  auto problem = attention_kernels::check("attention", q, k, v, wide.sees, wide.options()).problem;
  problem.queries = problem.keys = int64_t{1} << 14;
  CHECK(attention_kernels::gpu_path(problem, {q, k, v}) == GpuPath::products);
  ++problem.keys;
  CHECK(attention_kernels::gpu_path(problem, {q, k, v}) == GpuPath::blocks);
}

TEST_CASE("attention in bf16 in blocks is as exact") {
  on_gpus([](Device device) {
    const std::vector<Case> cases = {{1, 70, 2, 24, tokens(true), 0.2, {}, Place::keys_are_values},
        {2, 66, 1, 40, tokens(true), 0, {}, Place::all_the_same}, {1, 33, 1, 136},
        {2, 90, 2, 33, Visibility::cells(4, 1, 60, CellRule::end), 0.1, {22, 10}, Place::three_tensors, 22}};
    for (const Case& of : cases) {
      CAPTURE(of.text());
      const std::vector<Tensor> inputs = as(of.inputs(), Dtype::bf16, device);
      const Tensor dy = to(convert(of.dy(), Dtype::bf16), device);
      check_errors<bf16>(of, inputs, dy, in_blocks(of, inputs, dy));
    }
  });
}

TEST_CASE("attention by products counts the FLOPs of attention, and those of its products not as well") {
  on_gpus([](Device device) {
    const Case of{1, 20, 1, 200};
    const std::vector<Tensor> inputs = as(of.inputs(), Dtype::bf16, device);
    const Tensor dy = to(convert(of.dy(), Dtype::bf16), device);
    REQUIRE(path_of(of, inputs, dy) == GpuPath::products);
    const trace::Counter counter;
    run(attention, of, inputs, dy);
    const double pairs = 20 * 21 / 2;
    CHECK(counter.work().at("attention").flops == 2 * 2 * pairs * 200);
    CHECK(counter.work().at("attention backward").flops == 5 * 2 * pairs * 200);
  });
}
