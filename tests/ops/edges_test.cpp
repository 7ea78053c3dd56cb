// Ops at the edges of their numbers against PyTorch: tests/golden/make_edges.py makes the file and lists its values.
#include <cstdlib>
#include <functional>
#include <set>

#include "autograd/tape.h"
#include "core/files/safetensors.h"
#include "cuda/math.h"
#include "ops/attention/attention.h"
#include "ops/elements/activations.h"
#include "ops/elements/arithmetic.h"
#include "ops/embedding/embedding.h"
#include "ops/rows/cross_entropy.h"
#include "ops/rows/layer_norm.h"
#include "ops/rows/reduce.h"
#include "ops/rows/rms_norm.h"
#include "ops/rows/softmax.h"
#include "ops/scales/cells.h"
#include "tests/ops/values.h"

using namespace ricci;
using namespace std::string_literals;

namespace {

using Inputs = std::vector<Tensor>;

// A function of numbers, not an op.
template <float (*function)(float)> Tensor each(const Inputs& x) {
  const Tensor y = to(x[0], Device::cpu);
  for (int64_t i = 0; i < y.size(); ++i) y.data<float>()[i] = function(y.data<float>()[i]);
  return y;
}
template <Tensor (*op)(const Arg&)> Tensor of_one(const Inputs& x) { return op(x[0]); }
Tensor causal_attention(const Inputs& x) { return attention({x[0]}, {x[1]}, {x[2]}, Visibility::causal(), {.heads = 1, .scale = 1}); }

// The error of an element is at most `of_element` of its roundings, plus `of_largest` roundings of the largest number of its tensor, plus
// 128 times the smallest normal number: exp and sigmoid are 0 below it, and x sigmoid(x) is 0 for x = -88.7.
struct Op {
  const char* name;
  std::function<Tensor(const Inputs&)> run;
  double of_element, of_largest;
  Dtype dtype = Dtype::f32;
};
const Op kOps[] = {
    {"cross_entropy", [](const Inputs& x) { return cross_entropy(x[0], x[1]); }, 8, 0},
    {"bag_cross_entropy", [](const Inputs& x) { return bag_cross_entropy(x[0], x[1], 2); }, 8, 2},
    {"softmax", of_one<softmax>, 8, 4},
    {"layer_norm", [](const Inputs& x) { return layer_norm(x[0], x[1], x[2]); }, 8, 8},
    {"rms_norm", [](const Inputs& x) { return rms_norm(x[0], x[1]); }, 8, 8},
    {"sum_inner", [](const Inputs& x) { return sum(x[0], -1); }, 8, 0},
    {"sum_middle", [](const Inputs& x) { return sum(x[0], 1); }, 40, 0},
    {"sum_outer", [](const Inputs& x) { return sum(x[0], 0); }, 8, 0},
    {"mean_middle", [](const Inputs& x) { return mean(x[0], 1); }, 40, 0},
    {"attention", causal_attention, 0, 8},
    {"attention_bf16", causal_attention, 0, 4, Dtype::bf16},
    {"relu", of_one<relu>, 0, 0},
    {"relu2", of_one<relu2>, 2, 0},
    {"sigmoid", of_one<sigmoid>, 8, 2},
    {"silu", of_one<silu>, 8, 2},
    {"gelu", of_one<gelu>, 8, 4},
    {"gelu_tanh", of_one<gelu_tanh>, 8, 4},
    {"exp", each<math::exp>, 3, 0},
    {"log", each<math::log>, 3, 0},
    {"sqrt", each<math::sqrt>, 1, 0},
    {"tanh", each<math::tanh>, 4, 0},
    {"erf", each<math::erf>, 4, 0},
    {"divide", [](const Inputs& x) { return divide(x[0], x[1]); }, 4, 0},
    {"embedding", [](const Inputs& x) { return embedding(x[0], x[1], Tensor()); }, 0, 2},
    {"cell_max", [](const Inputs& x) { return cell_max(x[0], 2); }, 0, 0},
    {"cell_mean", [](const Inputs& x) { return cell_mean(x[0], 2); }, 1, 0},
};

// Deliberate differences from PyTorch: the elements first .. end - 1 of a tensor are `ours`.
struct Difference {
  const char* tensor;
  size_t first, end;
  double ours;
  const char* reason;
};
const Difference kDifferences[] = {
    {"cross_entropy/uncounted/dx0", 3, 12, 0, "PyTorch: NaN, but a row that does not count passes no gradient"},
    {"gelu/huge/y", 6, 7, HUGE_VAL, "PyTorch: NaN, but gelu(inf) is inf"},
    {"rms_norm/one_1e30/y", 0, 4, NAN, "PyTorch: 0 without an error: the mean square overflows"},
    {"rms_norm/one_1e30/dx0", 0, 4, NAN, "the same"},
    {"rms_norm/one_1e30/dx1", 0, 4, NAN, "the same"},
};

std::string golden_path() {
  const char* elsewhere = std::getenv("RICCI_TESTS_FOLDER");  // set if the program was built on another machine
  return std::string(elsewhere ? elsewhere : RICCI_TESTS_FOLDER) + "/golden/edges.safetensors";
}

// As long_input of make_edges.py.
Tensor long_input(const Values& extents) {
  Shape shape;
  for (double extent : extents) shape.push_back(static_cast<int64_t>(extent));
  Values values(static_cast<size_t>(shape.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t k = 2654435761u * static_cast<uint32_t>(i);
    k = 2246822519u * (k ^ (k >> 15));
    values[i] = (k ^ (k >> 13)) * 0x1p-32;
  }
  return tensor_of(values, shape, Dtype::f32, Device::cpu);
}

Inputs inputs_of(const SafetensorsFile& file, const std::string& name, Dtype dtype, Device device) {
  Inputs inputs;
  if (file.contains(name + "/long")) inputs.push_back(to(long_input(values_of(file.load(name + "/long"))), device));
  for (int i = 0; file.contains(name + "/x" + std::to_string(i)); ++i) {
    const Tensor x = file.load(name + "/x" + std::to_string(i));
    inputs.push_back(to(x.dtype() == Dtype::i64 ? x : convert(x, dtype), device));
  }
  return inputs;
}

void check_close(const Op& op, const SafetensorsFile& file, const std::string& name, const Tensor& got) {
  CAPTURE(name);
  Values expected = values_of(file.load(name));
  const Values values = values_of(got);
  REQUIRE(values.size() == expected.size());
  double largest = 0;
  for (const Difference& difference : kDifferences)
    if (name == difference.tensor) std::fill(&expected[difference.first], &expected[difference.end], difference.ours);
  for (double e : expected) largest = std::isfinite(e) ? std::max(largest, std::abs(e)) : largest;
  for (size_t i = 0; i < values.size(); ++i) {
    const double y = values[i], e = expected[i];
    CAPTURE(i);
    CAPTURE(y);
    CAPTURE(e);
    if (std::isfinite(e)) CHECK(std::abs(y - e) <= unit(op.dtype) * (op.of_element * std::abs(e) + op.of_largest * largest) + 0x1p-119);
    else CHECK((std::isnan(e) ? std::isnan(y) : y == e));
  }
}

void check_case(const Op& op, const SafetensorsFile& file, const std::string& name, Device device) {
  Inputs inputs = inputs_of(file, name, op.dtype, device);
  Tape tape;
  for (Tensor& x : inputs)
    if (x.dtype() != Dtype::i64) x = tape.watch(x);
  const Tensor y = op.run(inputs);
  check_close(op, file, name + "/y", y);
  if (!file.contains(name + "/dy")) return;
  tape.backward({y}, {to(convert(file.load(name + "/dy"), y.dtype()), device)});
  int number = 0;
  for (const Tensor& x : inputs)
    if (x.dtype() != Dtype::i64) check_close(op, file, name + "/dx" + std::to_string(number++), tape.gradient_of(x));
}

}  // namespace

TEST_CASE("ops at the edges of their numbers: PyTorch's values and gradients") {
  const SafetensorsFile file(golden_path());
  std::set<std::string> tested;
  for (const std::string& name : file.names()) {
    if (!name.ends_with("/y")) continue;
    const Op* const op = std::find_if(std::begin(kOps), std::end(kOps), [&](const Op& op) { return name.starts_with(op.name + "/"s); });
    REQUIRE_MESSAGE(op != std::end(kOps), name);
    on_every_device([&](Device device) { check_case(*op, file, name.substr(0, name.size() - 2), device); });
    tested.insert(op->name);
  }
  CHECK(tested.size() == std::size(kOps));
  for (const Difference& difference : kDifferences) CHECK_MESSAGE(file.contains(difference.tensor), difference.tensor);
}
