#include "ops/shapes/shape_ops.h"

#include <numeric>

#include "tests/ops/values.h"

using namespace ricci;

namespace {

// 0, 1, 2, ... in every dtype.
Tensor counted(const Shape& shape, Dtype dtype, Device device) {
  if (dtype == Dtype::i64) {
    std::vector<int64_t> ids(static_cast<size_t>(shape.size()));
    std::iota(ids.begin(), ids.end(), 0);
    return ids_of(ids, shape, device);
  }
  Values values(static_cast<size_t>(shape.size()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = dtype == Dtype::bf16 ? static_cast<double>(i % 251) : static_cast<double>(i);
  return tensor_of(values, shape, dtype, device);
}

void on_every_device_and_any_dtype(const std::function<void(Device, Dtype)>& f) {
  on_every_device([&](Device device) {
    for (Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::bf16, Dtype::i64}) f(device, dtype);
  });
}

// y[i0, i1, ..] = x[at(i0, i1, ..)]
Values gather(const Tensor& x, const Shape& shape, const std::function<int64_t(const std::vector<int64_t>&)>& at) {
  const Values from = values_of(x);
  Values to;
  for (int64_t i = 0; i < shape.size(); ++i) {
    std::vector<int64_t> index(static_cast<size_t>(shape.rank()));
    int64_t rest = i;
    for (int d = shape.rank() - 1; d >= 0; --d) index[static_cast<size_t>(d)] = rest % shape[d], rest /= shape[d];
    to.push_back(from[static_cast<size_t>(at(index))]);
  }
  return to;
}

int64_t place(const Shape& shape, const std::vector<int64_t>& index) {
  int64_t at = 0;
  for (int d = 0; d < shape.rank(); ++d) at = at * shape[d] + index[static_cast<size_t>(d)];
  return at;
}

void check_slices(const Shape& shape, Dtype dtype, Device device) {
  const Tensor x = counted(shape, dtype, device);
  for (int index = 0; index < 3; ++index) {
    for (const auto& range : {std::pair<int64_t, int64_t>{1, 2}, {0, shape[index]}, {2, 1}, {1, 0}}) {
      const int64_t first = range.first, count = range.second;
      Shape part = shape;
      part.set(index, count);
      const Tensor y = slice(x, index, first, count);
      const Values expected = gather(x, part, [&](std::vector<int64_t> at) {
        at[static_cast<size_t>(index)] += first;
        return place(shape, at);
      });
      CHECK(y.shape() == part);
      CHECK(values_of(y) == expected);
      CHECK(same_bits(y, slice(x, index - 3, first, count)));
      CHECK((y.storage() == x.storage()) == (index == 0));
      if (dtype == Dtype::i64) continue;
      const Tensor dy = drawn(part, dtype, device, 3);
      const Tensor dx = gradients_of([&](const std::vector<Tensor>& in) { return slice(in[0], index, first, count); }, {x}, dy)[0];
      CHECK(same_bits(slice(dx, index, first, count), dy));
      double inside = 0, all = 0;
      for (double v : values_of(dy)) inside += std::abs(v);
      for (double v : values_of(dx)) all += std::abs(v);
      CHECK(std::abs(all - inside) <= static_cast<double>(x.size()) * 0x1p-53 * all);  // elsewhere nothing
    }
  }
}

}  // namespace

TEST_CASE("reshape is a view") {
  on_every_device([](Device device) {
    const Tensor x = drawn({3, 4}, Dtype::f32, device, 1), dy = drawn({2, 6}, Dtype::f32, device, 2);
    const Tensor y = reshape(x, {2, 6});
    CHECK(y.raw() == x.raw());
    const Tensor dx = gradients_of([](const std::vector<Tensor>& in) { return reshape(in[0], {2, 6}); }, {x}, dy)[0];
    CHECK(same_bits(dx, dy.reshaped({3, 4})));
  });
  CHECK(message_of([] { reshape(Tensor({3, 4}), {5}); }) == "reshape: [3 4] cannot become [5]");
  const int64_t large = int64_t{1} << 32;  // the product of two is 0
  CHECK(message_of([&] { reshape(Tensor({0}), {large, large}); }) == "tensor: [4294967296 4294967296] f32 is larger than any memory");
}

TEST_CASE("slice along every index") {
  on_every_device_and_any_dtype([](Device device, Dtype dtype) {
    for (const Shape& shape : {Shape{3, 5, 7}, Shape{3, 5, 8}, Shape{3, 4, 12}})
      check_slices(shape, dtype, device);  // bf16: in words of 2, 16, 8 bytes
  });
  CHECK(slice(Tensor({1, 5, 2}), 1, 2, 2).shape() == Shape({1, 2, 2}));
  CHECK(message_of([] { slice(Tensor({2, 3}), 1, 2, 2); }) == "slice: 2 elements from element 2 on do not all exist in index 1 of [2 3]");
  CHECK(message_of([] { slice(Tensor({2, 3}), 0, -1, 1); }) == "slice: 1 elements from element -1 on do not all exist in index 0 of [2 3]");
  CHECK(message_of([] {
    slice(Tensor({2, 3}), 1, 1, INT64_MAX);
  }) == "slice: 9223372036854775807 elements from element 1 on do not all exist in index 1 of [2 3]");
  CHECK(message_of([] { slice(Tensor({2, 3}), 2, 0, 1); }) == "slice: index 2 does not exist in [2 3]");
}

TEST_CASE("concatenate: extents with a sum of 2^63") {
  CHECK(message_of([] {
    concatenate(std::vector<Arg>(8, Tensor({0, int64_t{1} << 60})), 1);
  }) == "concatenate: the parts are larger than any memory");
}

TEST_CASE("concatenate along every index, and its gradients") {
  on_every_device_and_any_dtype([](Device device, Dtype dtype) {
    for (int k = 0; k < 6; ++k) {
      const int index = k % 3;
      const Shape like_all = k < 3 ? Shape{2, 3, 5} : Shape{2, 3, 16};
      std::vector<Tensor> parts;
      std::vector<Arg> args;
      Shape together = like_all;
      int64_t first = 0;
      for (int64_t extent : {4, 1, 0, 2}) {
        Shape shape = like_all;
        shape.set(index, extent);
        parts.push_back(counted(shape, dtype, device));
        args.emplace_back(parts.back());
      }
      together.set(index, 7);
      const Tensor y = concatenate(args, index);
      CHECK(y.shape() == together);
      CHECK(same_bits(y, concatenate(args, index - 3)));
      for (const Tensor& part : parts) {
        CHECK(same_bits(slice(y, index, first, part.shape()[index]), part));
        first += part.shape()[index];
      }
      if (dtype == Dtype::i64) continue;
      const Tensor dy = drawn(together, dtype, device, 4);
      const auto grads = gradients_of([&](const std::vector<Tensor>& in) { return concatenate({in.begin(), in.end()}, index); }, parts, dy);
      CHECK(same_bits(concatenate({grads.begin(), grads.end()}, index), dy));
    }
  });
  const auto error = [](const std::vector<Arg>& parts) { return message_of([&] { concatenate(parts, 0); }); };
  CHECK(error({}) == "concatenate: the list of parts is empty");
  CHECK(error({Tensor({2, 3}), Tensor({2, 4})}) ==
        "concatenate: part 1 is f32 [2 4] on cpu, expected to match part 0 (f32 [2 3] on cpu) except along index 0");
  CHECK(error({Tensor({2, 3}), Tensor({2})}) ==
        "concatenate: part 1 is f32 [2] on cpu, expected to match part 0 (f32 [2 3] on cpu) except along index 0");
  CHECK(error({Tensor({2}), Tensor({2}, Dtype::f64)}) ==
        "concatenate: part 1 is f64 [2] on cpu, expected to match part 0 (f32 [2] on cpu) except along index 0");
}

TEST_CASE("permute: every order of three indices, and transposes of more than one tile") {
  on_every_device_and_any_dtype([](Device device, Dtype dtype) {
    for (Shape shape : {Shape{3, 5, 7}, Shape{1, 6, 4}, Shape{2, 33, 67}, Shape{40, 1, 35}, Shape{2, 0, 3}}) {
      const Tensor x = counted(shape, dtype, device);
      std::vector<int> order{0, 1, 2};
      do {
        Shape permuted;
        for (int d : order) permuted.push_back(shape[d]);
        const Tensor y = permute(x, order);
        CHECK(y.shape() == permuted);
        CHECK(values_of(y) == gather(x, permuted, [&](const std::vector<int64_t>& to) {
          std::vector<int64_t> from(3);
          for (size_t d = 0; d < 3; ++d) from[static_cast<size_t>(order[d])] = to[d];
          return place(shape, from);
        }));
        if (dtype == Dtype::i64) continue;
        const Tensor dy = drawn(permuted, dtype, device, 5);
        const Tensor dx = gradients_of([&](const std::vector<Tensor>& in) { return permute(in[0], order); }, {x}, dy)[0];
        CHECK(same_bits(permute(dx, order), dy));
      } while (std::next_permutation(order.begin(), order.end()));
    }
  });
}

TEST_CASE("permute of six indices, of heads, and transpose") {
  on_every_device([](Device device) {
    const Tensor x = counted({2, 3, 2, 1, 3, 4}, Dtype::f32, device);
    CHECK(same_bits(permute(permute(x, {5, 2, 0, 4, 3, 1}), {2, 5, 1, 4, 3, 0}), x));
    const Tensor q_bcnk = counted({2, 5, 3, 4}, Dtype::f32, device), q_bnck = transpose(q_bcnk, 1, 2);
    CHECK(q_bnck.shape() == Shape({2, 3, 5, 4}));
    CHECK(same_bits(q_bnck, permute(q_bcnk, {0, 2, 1, 3})));
    CHECK(same_bits(transpose(q_bcnk, -1, 0), permute(q_bcnk, {3, 1, 2, 0})));
    CHECK(same_bits(permute(tensor_of({5}, {}, Dtype::f32, device), {}), tensor_of({5}, {}, Dtype::f32, device)));
  });
  CHECK(message_of([] { permute(Tensor({2, 3}), {0, 0}); }) == "permute: the order is 0 0, expected each index of [2 3] once");
  CHECK(message_of([] { permute(Tensor({2, 3}), {1}); }) == "permute: the order is 1, expected each index of [2 3] once");
  CHECK(message_of([] { transpose(Tensor({2, 3}), 0, 2); }) == "transpose: index 2 does not exist in [2 3]");
}

TEST_CASE("copies of more than a chunk do not depend on the number of threads") {
  const Tensor x = drawn({3, 301, 211}, Dtype::f32, Device::cpu, 6);
  const auto copies = [&] {
    return std::vector<Tensor>{transpose(transpose(x, 1, 2), 1, 2), concatenate({slice(x, 2, 0, 100), slice(x, 2, 100, 111)}, 2)};
  };
  check_threads(copies);
  for (const Tensor& copied : copies()) CHECK(same_bits(copied, x));
}

TEST_CASE("cast rounds, and its gradient comes back in the dtype of the input") {
  on_every_device([](Device device) {
    const Tensor x = drawn({3, 7}, Dtype::f64, device, 7), dy = drawn({3, 7}, Dtype::bf16, device, 8);
    const Tensor y = cast(x, Dtype::bf16);
    CHECK(y.dtype() == Dtype::bf16);
    CHECK(error_of(y, values_of(x)) <= unit(Dtype::bf16));
    const Tensor dx = gradients_of([](const std::vector<Tensor>& in) { return cast(in[0], Dtype::bf16); }, {x}, dy)[0];
    CHECK(dx.dtype() == Dtype::f64);
    CHECK(values_of(dx) == values_of(dy));
    CHECK(same_bits(cast(x, Dtype::f64), x));
  });
}
