// Reasons that a GPU cannot be used, sampled and given tensors, and the trace of ops.
#include "cuda/device/device.h"

#include "cuda/device/gpu_errors.h"
#include "cuda/device/graph.h"
#include "cuda/trace.h"
#include "ops/elements/activations.h"
#include "ops/products/products.h"
#include "tests/cuda/emulator/emulator_fixture.h"
#include "tests/ops/values.h"
#include "tests/skip.h"

using namespace ricci;

namespace {

// An H200, and a binary for it.
GpuFound h200() {
  return {
      .driver = 13000, .runtime = 13000, .devices = 1, .name = "NVIDIA H200", .major = 9, .architectures = "80-real 90-real 90-virtual"};
}

}  // namespace

TEST_CASE("gpu errors: a GPU that can be used") { CHECK(why_no_gpu(h200()).empty()); }

TEST_CASE("gpu errors: no driver, one too old, no GPU") {
  GpuFound f = h200();
  f.error = 35, f.error_text = "CUDA driver version is insufficient for CUDA runtime version", f.devices = 0, f.driver = 0;
  CHECK(why_no_gpu(f) == "no NVIDIA driver found");
  f.driver = 12020;
  CHECK(why_no_gpu(f) == "the NVIDIA driver is too old: it supports CUDA 12.2, this binary needs 13.0");
  f.driver = 13000, f.error = 100, f.error_text = "no CUDA-capable device is detected";
  CHECK(why_no_gpu(f) == "no GPU found");
  f.visible = "7";
  CHECK(why_no_gpu(f) == "no GPU found, with CUDA_VISIBLE_DEVICES='7'");
  f.visible = "", f.error = 0;
  CHECK(why_no_gpu(f) == "no GPU found, with CUDA_VISIBLE_DEVICES=''");
  f.error = 802, f.error_text = "system not yet initialized";
  CHECK(why_no_gpu(f) == "system not yet initialized (CUDA error 802)");
}

TEST_CASE("gpu errors: a binary without code for the GPU, a GPU without memory pools") {
  GpuFound f = h200();
  f.name = "Tesla T4", f.major = 7, f.minor = 5;
  CHECK(why_no_gpu(f) == "Tesla T4 has compute capability 7.5, this binary has code for sm_80, sm_90, compute_90; build it with "
                         "-DCMAKE_CUDA_ARCHITECTURES=75");
  f = h200();
  f.memory_pools = false;
  CHECK(why_no_gpu(f) == "NVIDIA H200 or its driver has no memory pools (cudaMallocAsync)");
}

TEST_CASE("gpu errors: the architectures whose code runs on a GPU") {
  struct Row {
    const char* architectures;
    int major, minor;
    bool runs;
  };
  // clang-format off
  for (const Row& r : {Row{"80-real", 8, 0, true}, {"80-real", 8, 9, true}, {"86-real", 8, 0, false}, {"80-real", 9, 0, false},
                       {"80-virtual", 9, 0, true}, {"80", 12, 0, true}, {"90", 8, 0, false}, {"90a", 9, 0, true},
                       {"90a-virtual", 10, 0, false}, {"100f", 10, 3, true}, {"100f", 12, 0, false}, {"90a 120", 12, 0, true},
                       {"native", 7, 5, true}, {"", 7, 5, true}}) {
    CAPTURE(r.architectures);
    CHECK(has_code_for(r.architectures, r.major, r.minor) == r.runs);
  }
  for (const Row& r : {Row{"80-real 90a-real 90-virtual", 9, 0, true}, {"90a", 9, 0, true}, {"90a", 10, 0, false},
                       {"80-real 90a-real", 8, 0, false}, {"80-real 90-real 90-virtual", 9, 0, false},
                       {"90 90a", 9, 0, false}}) {  // the driver can use the code for 90
    CAPTURE(r.architectures);
    CHECK(can_use_wgmma(r.architectures, r.major, r.minor) == r.runs);
  }
  // clang-format on
}

TEST_CASE("gpu errors: the message of a failed call, and how to find the kernel that caused it") {
  CHECK(gpu_failure("gelu", 9, "invalid configuration argument", false) == "gelu: invalid configuration argument");
  CHECK(gpu_failure("copy from the GPU", 700, "an illegal memory access was encountered", false) ==
        "copy from the GPU: an illegal memory access was encountered, in this or an earlier kernel; RICCI_SYNC=1 names it");
  CHECK(gpu_failure("gelu", 700, "an illegal memory access was encountered", true) == "gelu: an illegal memory access was encountered");
  CHECK(gpu_failure("gelu", 209, "no kernel image is available for execution on the device", true) ==
        "gelu: no kernel image is available for execution on the device: this binary has no code for this GPU");
}

TEST_CASE("gpu errors: without a GPU, here a hidden one, the device says why, and nothing else is affected" *
          doctest::test_suite("GPU hidden") * doctest::skip()) {
  REQUIRE_FALSE(available(Device::cuda));  // ctest runs this with CUDA_VISIBLE_DEVICES empty
  const std::string why = why_not(Device::cuda);
  CHECK(why.find('\n') == why.npos);
#ifdef RICCI_HAS_CUDA
  CHECK((why.starts_with("no NVIDIA driver") || why.starts_with("the NVIDIA driver is too old") || why.starts_with("no GPU found") ||
         why.find("CUDA error") != why.npos || why.find("compute capability") != why.npos));
#else
  CHECK(why == "this binary was built without the CUDA toolkit");
#endif
  CHECK(available(Device::cpu));
  CHECK(available(Device::cuda_emulated));
}

TEST_CASE("cuda: the GPU is there, and its kernels compute" * doctest::test_suite("needs GPU")) {
  if (!available(Device::cuda)) return test::skip(std::string("needs a GPU: ") + why_not(Device::cuda));
  const Tensor x = drawn({1000}, Dtype::f64, Device::cpu, 1);
  CHECK(error_of(gelu(to(x, Device::cuda)), values_of(gelu(x))) <= 100 * unit(Dtype::f64));
}

TEST_CASE("randn: standard normal numbers that depend only on the shape and the seed") {
  const Values values = values_of(randn({100, 100}, 1));
  double sum = 0, squares = 0;
  for (const double value : values) sum += value, squares += value * value;
  CHECK(std::abs(sum / 1e4) < 0.04);  // four standard deviations
  CHECK(std::abs(squares / 1e4 - 1) < 0.06);
  CHECK(values_of(randn({100, 100}, 1)) == values);
  CHECK(values_of(randn({100, 100}, 1, Dtype::f32, Device::cuda_emulated)) == values);
  CHECK(values_of(randn({100, 100}, 2)) != values);
  const Tensor wide = randn({100, 100}, 1, Dtype::f64);
  CHECK(values_of(convert(wide, Dtype::f32)) == values);
  CHECK(values_of(randn({100, 100}, 1, Dtype::bf16)) == values_of(convert(wide, Dtype::bf16)));
}

TEST_CASE("tensors of values: the values row by row, with the dtype of their type; messages") {
  const Tensor x = tensor_of(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3}, Device::cuda_emulated);
  CHECK(x.dtype() == Dtype::f32);
  CHECK(item(x, 5) == 6);
  CHECK(message_of([&] { item(x); }) == "item: [2 3] has 6 elements, expected 1; item(t, i) reads element i");
  CHECK(item(tensor_of(std::vector<double>{7}, {1, 1})) == 7);
  CHECK(item(tensor_of(std::vector<int64_t>{1, -1}, {2}), 1) == -1);
  CHECK(message_of([] { tensor_of(std::vector<float>{1, 2, 3}, {2, 2}); }) == "tensor_of: 3 values do not match shape [2 2]");
  CHECK(message_of([] { randn({2}, 1, Dtype::i64); }) == "randn: dtype is i64, expected f32, f64 or bf16");
}

TEST_CASE("trace: a Counter counts the work of ops, a timed one also times them, and no other starts meanwhile") {
  const Tensor x = drawn({3, 4}, Dtype::f64, Device::cpu, 1), w = drawn({5, 4}, Dtype::f64, Device::cpu, 2);
  const bool before = trace::enabled;
  for (const bool timed : {true, false}) {
    const trace::Counter one(timed);
    linear(x, w, Tensor());
    trace::restart();
    CHECK(one.work().empty());
    for (int i = 0; i < 2; ++i) linear(x, w, Tensor());
    REQUIRE(one.work().size() == 1);
    const trace::Work& work = one.work().at("linear");
    CHECK(work.calls == 2);
    CHECK(work.flops == 2 * 2 * 3 * 4 * 5);
    CHECK(work.bytes == 2 * 8 * (3 * 4 + 5 * 4 + 3 * 5));
    CHECK((!timed || work.seconds > 0));
    CHECK(message_of([] { const trace::Counter second; }) == "trace: a Counter already exists");
  }
  CHECK(trace::enabled == before);
}

TEST_CASE("trace: recording a graph does not wait, and its launches have their own line") {
  const Device device = Device::cuda_emulated;
  const Tensor x = drawn({3, 4}, Dtype::f32, device, 1), w = drawn({5, 4}, Dtype::f32, device, 2);
  Tensor y;
  const auto work = [&] {
    y = {};
    y = linear(x, w, Tensor());
  };
  const trace::Counter timer(true);
  Graph graph(device);
  work();
  graph.measure(work);
  graph.record(work);
  graph.launch();
  graph.launch();
  REQUIRE(timer.work().contains("graph"));
  CHECK(timer.work().at("graph").calls == 2);
}

TEST_CASE("lazy work: launches, copies, zeros and frees in order, errors where they are waited for") {
  const Device device = Device::cuda_emulated;
  WithOptions options;
  options->lazy = true;
  const Tensor x = tensor_of(std::vector<float>{1, 2, 3}, {3}, device), copied = like(x);
  Tensor y = x;
  for (int i = 0; i < 5; ++i) y = gelu(y);  // freed tensors are freed in order
  copy(copied, y);
  y = zeros({3}, Dtype::f32, device);
  const Values got = values_of(copied);
  CHECK(values_of(y) == Values(3, 0));
  options->lazy = false;
  y = x;
  for (int i = 0; i < 5; ++i) y = gelu(y);
  CHECK(got == values_of(y));
}
