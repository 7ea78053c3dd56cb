#include "ops/rows/reduce.h"

#include "core/cpu/parallel.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

struct Naive {
  Values sum, size;               // sums of the terms and of their absolute values
  std::vector<size_t> summed_in;  // which sum each element is part of
};

Naive naive_sum(const Values& x, const Shape& shape, int index) {
  int64_t inner = 1, outputs = 1;
  for (int d = index + 1; d < shape.rank(); ++d) inner *= shape[d];
  for (int d = 0; d < shape.rank(); ++d) outputs *= d == index ? 1 : shape[d];
  const int64_t middle = shape[index];
  Naive naive{Values(static_cast<size_t>(outputs)), Values(static_cast<size_t>(outputs)), {}};
  for (int64_t i = 0; i < shape.size(); ++i) {
    const auto at = static_cast<size_t>(i / (inner * middle) * inner + i % inner);
    naive.summed_in.push_back(at);
    naive.sum[at] += x[static_cast<size_t>(i)];
    naive.size[at] += std::abs(x[static_cast<size_t>(i)]);
  }
  return naive;
}

}  // namespace

TEST_CASE("sum and mean over all elements") {
  for (Shape shape : {Shape{}, Shape{1}, Shape{3, 5, 7}, Shape{4096}, Shape{4097}, Shape{3, 5001}}) {
    on_every_device_and_dtype([&](Device device, Dtype dtype) {
      const Tensor x = drawn(shape, dtype, device, 1);
      const double n = static_cast<double>(shape.size());
      double total = 0, size = 0;
      for (double v : values_of(x)) total += v, size += std::abs(v);
      CHECK(sum(x).shape() == Shape({}));
      CHECK(error_of(sum(x), {total}, {size}) <= unit(dtype) + n * 0x1p-53);
      CHECK(error_of(mean(x), {total / n}, {size / n}) <= unit(dtype) + n * 0x1p-53);
      const Tensor dy = tensor_of({-3}, {}, dtype, device);
      const Values once(static_cast<size_t>(shape.size()), -3), averaged(static_cast<size_t>(shape.size()), -3 / n);
      CHECK(error_of(gradients_of([](const std::vector<Tensor>& in) { return sum(in[0]); }, {x}, dy)[0], once) == 0);
      CHECK(error_of(gradients_of([](const std::vector<Tensor>& in) { return mean(in[0]); }, {x}, dy)[0], averaged) <= 2 * unit(dtype));
    });
  }
}

TEST_CASE("sum and mean over one index: outermost, in the middle, innermost, of one element") {
  for (Shape shape : {Shape{1}, Shape{7}, Shape{3, 5, 7}, Shape{37, 2, 9}, Shape{2, 70, 35}, Shape{1, 4, 1}, Shape{11, 3, 70},
           Shape{3, 0, 2}, Shape{0, 3}}) {
    for (int index = 0; index < shape.rank(); ++index) {
      on_every_device_and_dtype([&](Device device, Dtype dtype) {
        const Tensor x = drawn(shape, dtype, device, 2);
        Naive naive = naive_sum(values_of(x), shape, index);
        Shape without;
        for (int d = 0; d < shape.rank(); ++d)
          if (d != index) without.push_back(shape[d]);
        const double n = static_cast<double>(shape[index]), bound = 2 * unit(dtype) + n * sum_unit(dtype);
        const Tensor y = sum(x, index);
        CHECK(y.shape() == without);
        CHECK(same_bits(y, sum(x, index - shape.rank())));
        CHECK(error_of(y, naive.sum, naive.size) <= bound);
        const Tensor dy = drawn(without, dtype, device, 3);
        Values dx, dyv = values_of(dy);
        for (size_t at : naive.summed_in) dx.push_back(dyv[at]);
        CHECK(error_of(gradients_of([&](const std::vector<Tensor>& in) { return sum(in[0], index); }, {x}, dy)[0], dx) == 0);
        if (shape[index] == 0) return;
        for (double& v : naive.sum) v /= n;
        for (double& v : naive.size) v /= n;
        CHECK(error_of(mean(x, index), naive.sum, naive.size) <= bound);
        for (double& v : dx) v /= n;
        CHECK(error_of(gradients_of([&](const std::vector<Tensor>& in) { return mean(in[0], index); }, {x}, dy)[0], dx) <= 2 * unit(dtype));
      });
    }
  }
}

TEST_CASE("the same bits for any number of threads") {
  const int before = thread_count();
  const Tensor x = drawn({17, 300, 41}, Dtype::f32, Device::cpu, 4);
  auto everything = [&] {
    return std::vector<Tensor>{sum(x), mean(x), sum(x, 0), sum(x, 1), sum(x, 2), mean(x.reshaped({300, 17, 41}), 1)};
  };
  set_thread_count(1);
  const std::vector<Tensor> one = everything();
  set_thread_count(3);
  const std::vector<Tensor> three = everything();
  set_thread_count(before);
  for (size_t i = 0; i < one.size(); ++i) CHECK(same_bits(one[i], three[i]));
}

TEST_CASE("messages and nothing to add") {
  CHECK(values_of(sum(Tensor({0, 3})))[0] == 0);
  CHECK(error_of(sum(Tensor({0, 3}), 0), {0, 0, 0}) == 0);
  CHECK(message_of([] { sum(Tensor({2, 3}), 2); }) == "sum: there is no index 2 in [2 3]");
  CHECK(message_of([] { mean(Tensor({2, 3}), -3); }) == "mean: there is no index -3 in [2 3]");
  CHECK(message_of([] { mean(Tensor({0, 3})); }) == "mean: no elements to average in [0 3]");
  CHECK(message_of([] { mean(Tensor({3, 0}), 1); }) == "mean: no elements to average in [3 0]");
}
