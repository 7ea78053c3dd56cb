// cuda/toolkit on the stub of the runtime: a refused call, a forgotten wait or a wrong order is an error that names it.
#include <cmath>
#include <thread>

#include "core/memory/memory.h"
#include "cuda/device/device.h"
#include "cuda/device/device_memory.h"
#include "cuda/device/graph.h"
#include "cuda/launch.h"
#include "cuda/ranks/ranks.h"
#include "models/config.h"
#include "models/training/train_step.h"
#include "tests/cuda/stub/stub.h"
#include "tests/models/training/forward_backward.h"
#include "tests/ops/values.h"

using namespace ricci;
using stub::written_by;

namespace {

constexpr int kFailed = 999;

Tensor on_gpu(std::initializer_list<double> values) {
  return to(tensor_of(std::vector<double>(values), {static_cast<int64_t>(values.size())}), Device::cuda);
}

// 256 bytes of the kernel in addition to those of the launch.
struct OwnAndGiven {
  static constexpr int kThreads = 1;
  double* x;
  __device__ void operator()() const {
    SHARED(double, own, [32]);
    double* const given = dynamic_shared<double>();
    own[0] = given[0] = 3;
    *x = own[0] + given[0];
  }
};

struct WritesOutside {
  static constexpr int kThreads = 1;
  double* x;
  __device__ void operator()() const { x[-1] = 0; }
};

void records_a_copy() {
  const Tensor x = on_gpu({1, 2}), y = like(x);
  Graph graph(Device::cuda);
  graph.measure([&] { copy(y, x); });
  graph.record([&] { copy(y, x); });
  graph.launch();
}

}  // namespace

TEST_CASE("the GPU that was asked for is used by every thread") {
  CHECK(gpu_in_use() == "0000:01:00.0");
  const Tensor x = on_gpu({1, 2});
  std::string room;
  double read = 0;
  std::jthread([&] { room = device_memory(Device::cuda).room(); }).join();
  std::jthread([&] { synchronize(Device::cuda); }).join();
  std::jthread([&] { read = item(x, 1); }).join();
  CHECK(room == "40.0 GiB of 80.0 GiB free on the GPU");
  CHECK(read == 2);
}

TEST_CASE("shared memory: a launch gets what it asks for next to the own memory of the kernel, up to 227 KiB") {
  const Tensor x = on_gpu({0});
  for (const int dynamic : {8, 48 << 10, 100 << 10}) {
    launch("own and given", Device::cuda, {1, 1, dynamic}, OwnAndGiven{x.data<double>()});
    CHECK(item(x) == 6);
  }
  CHECK(message_of([&] { launch("too much", Device::cuda, {1, 1, 228 << 10}, OwnAndGiven{x.data<double>()}); }).starts_with("too much: "));
  CHECK(message_of([&] {
    launch("no threads", Device::cuda, {1, 0}, OwnAndGiven{x.data<double>()});
  }) == "no threads: a grid of 1 blocks of 0 threads cannot be launched");
}

TEST_CASE("a mistake of a kernel shows at the wait, and stays") {
  const Tensor x = on_gpu({0});
  launch("outside", Device::cuda, {1, 1}, WritesOutside{x.data<double>()});
  CHECK(message_of([&] { item(x); }).starts_with("wait for the GPU: "));
  CHECK(message_of([&] { item(x); }).find("RICCI_SYNC=1 names it") != std::string::npos);
  stub::forgive();
  CHECK(item(x) == 0);
}

TEST_CASE("a failing release is reported, and no other call is blamed") {
  Tensor x = on_gpu({0});
  const Tensor y = on_gpu({1});
  stub::fail_call("cudaFreeAsync", 1, kFailed);
  CHECK(written_by([&] { x = {}; }) == "release of GPU memory: stub error 999\n");
  launch("next", Device::cuda, {1, 1, 8}, OwnAndGiven{y.data<double>()});
  CHECK(item(y) == 6);
}

TEST_CASE("out of memory: freed memory that waits for its stream is returned, and the message names the free memory") {
  Tensor first({1 << 20}, Dtype::f64, Device::cuda);
  device_memory(Device::cuda).trim();
  const auto held = static_cast<size_t>(device_memory(Device::cuda).reserved_bytes());
  CHECK(held >= size_t{8} << 20);
  stub::limit_pool(held + 1000);
  first = {};
  const Tensor second({(1 << 20) + 8}, Dtype::f64, Device::cuda);  // the block of the first is too small
  CHECK(message_of([] { Tensor({1 << 20}, Dtype::f64, Device::cuda); }).find("40.0 GiB of 80.0 GiB free on the GPU") != std::string::npos);
  stub::limit_pool(size_t{1} << 40);
}

TEST_CASE("the block of a graph replaces the pieces that the pool held") {
  const auto work = [] {
    std::vector<Tensor> all;
    for (int i = 0; i < 8; ++i) all.push_back(zeros({1 << 17}, Dtype::f64, Device::cuda));
  };
  DeviceMemory& memory = device_memory(Device::cuda);
  memory.trim();
  const int64_t before = Tensor({}, Dtype::f64, Device::cuda) ? memory.reserved_bytes() : 0;
  Graph graph(Device::cuda);
  work();
  graph.measure(work);
  graph.record(work);
  graph.launch();
  synchronize(Device::cuda);
  const Tensor nothing({}, Dtype::f64, Device::cuda);
  CHECK(memory.reserved_bytes() - before < 9 << 20);
}

TEST_CASE("after an error in the work a recording has ended, and the GPU takes copies again") {
  const Tensor x = on_gpu({1, 2}), y = like(x);
  Graph graph(Device::cuda);
  graph.measure([&] { copy(y, x); });
  CHECK(message_of([&] {
    graph.record([&] {
      copy(y, x);
      fail("stopped", {});
    });
  }) == "stopped");
  CHECK(values_of(on_gpu({3})) == Values{3});
}

TEST_CASE("a copy to the GPU waits for nothing, and its values are those at the time of the call") {
  constexpr int64_t kMany = (3 << 20) / 8 + 1;  // three parts of the pinned memory, and some more
  const Tensor wrong = on_gpu({0});
  launch("outside", Device::cuda, {1, 1}, WritesOutside{wrong.data<double>()});
  CHECK(message_of([] { on_gpu({1}); }) == "no error");
  CHECK(message_of([&] { item(wrong); }).starts_with("wait for the GPU: "));
  stub::forgive();
  std::vector<Tensor> copies;
  Tensor host({kMany}, Dtype::f64);
  for (int i = 0; i < 5; ++i) {
    for (const int64_t at : {int64_t{0}, kMany / 2, kMany - 1}) host.data<double>()[at] = i;
    copies.push_back(to(host, Device::cuda));
  }
  for (int i = 0; i < 5; ++i)
    for (const int64_t at : {int64_t{0}, kMany / 2, kMany - 1}) CHECK(item(copies[static_cast<size_t>(i)], at) == i);
}

TEST_CASE("every call of the runtime that fails is named") {
  const Tensor x = on_gpu({1, 2}), y = like(x);
  const std::vector<std::pair<const char*, std::function<void()>>> calls = {{"cudaMemcpyAsync", [&] { item(x, 0); }},
      {"cudaMemcpyAsync", [&] { copy(y, x); }}, {"cudaMemcpyAsync", [] { on_gpu({1}); }}, {"cudaEventSynchronize", [] { on_gpu({1}); }},
      {"cudaEventRecord", [] { on_gpu({1}); }}, {"cudaMemsetAsync", [] { zeros({2}, Dtype::f64, Device::cuda); }},
      {"cudaMallocFromPoolAsync", [] { on_gpu({1}); }}, {"cudaMemPoolGetAttribute", [] { on_gpu({1}); }},
      {"cudaDeviceSynchronize", [] { synchronize(Device::cuda); }}, {"cudaStreamSynchronize", [&] { item(x, 0); }},
      {"cudaStreamBeginCapture", records_a_copy}, {"cudaStreamEndCapture", records_a_copy},
      {"cudaGraphInstantiateWithFlags", records_a_copy}, {"cudaGraphLaunch", records_a_copy}, {"cudaMemPoolTrimTo", records_a_copy},
      {"cudaDeviceGetPCIBusId", [] { gpu_in_use(); }}};
  for (const auto& [name, work] : calls) {
    const std::string call(name);
    CAPTURE(call);
    stub::fail_call(name, 1, kFailed);
    CHECK(message_of(work).find(": stub error 999") != std::string::npos);
    stub::forgive();
    CHECK(message_of(work) == "no error");
  }
}

TEST_CASE("a failing destructor is reported, and a GPU that does not answer counts as missing") {
  for (const char* name : {"cudaGraphDestroy", "cudaGraphExecDestroy"}) {
    stub::fail_call(name, 1, kFailed);
    CHECK(written_by(records_a_copy).find(": stub error 999") != std::string::npos);
  }
  for (const char* name : {"cudaGetDeviceCount", "cudaGetDeviceProperties", "cudaDeviceGetAttribute"}) {
    const char* why = "";
    stub::fail_call(name, 1, kFailed);
    CHECK(find_cuda(1, &why) == nullptr);
    CHECK(std::string(why).find("stub error 999") != std::string::npos);
  }
}

#if __has_include(<nccl.h>)
namespace {

// Rank 0 of three. It counts how often it meets the others.
class FirstOfThree final : public Ranks {
 public:
  FirstOfThree() {
    count_ = 3;
    machines_.assign(3, "node");
  }
  int meetings = 0;

 private:
  void meet(double) override { ++meetings; }
};

}  // namespace

TEST_CASE("NCCL: its errors are told with the call") {
  FirstOfThree ranks;
  const Tensor x = on_gpu({1, 2, 3});
  for (const char* const call : {"ncclGetUniqueId", "ncclCommInitRank", "ncclGroupStart", "ncclAllReduce", "ncclGroupEnd"}) {
    stub::fail_call(call, 1, kFailed);
    CHECK(message_of([&] { ranks.sum({x}); }) == std::string("NCCL: stub error of NCCL in ") + call + "; NCCL_DEBUG=INFO prints details");
    stub::forgive();
  }
  CHECK(values_of(x) == Values{1, 2, 3});
  ranks.sum({x});
  CHECK(values_of(x) == Values{3, 6, 9});
  stub::fail_call("old NCCL", 1, 1);
  CHECK(message_of([&] { ranks.carrier(Device::cuda); }) == "NCCL is older than 2.10, the first version that sums bf16");
  stub::forgive();
  CHECK(ranks.carrier(Device::cuda).starts_with("NCCL 2."));
}

TEST_CASE("NCCL: the files that were tried are named" * doctest::test_suite("broken NCCL")) {
  const std::string message = message_of([] { FirstOfThree().sum({on_gpu({1})}); });
  CHECK(message.starts_with("NCCL cannot be loaded from "));
  CHECK(message.find("libnccl.so.2: file too short, ") != std::string::npos);
  CHECK(message.find("/nowhere/libnccl.so.2: ") != std::string::npos);
  CHECK(message.ends_with("; set LD_LIBRARY_PATH to its folder"));
}

TEST_CASE("NCCL: the sum of every dtype, in place, in the order of the stream, after the ranks have met") {
  FirstOfThree ranks;
  for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::bf16}) {
    const Tensor x = to(convert(tensor_of(std::vector<double>{1, -2, 30, 4, 5}, {5}), dtype), Device::cuda), part = x.rows(1, 3);
    const auto before = x.storage()->version;
    const int meetings = ranks.meetings;
    ranks.sum({part});
    CHECK(ranks.meetings == meetings + 1);
    CHECK(x.storage()->version != before);
    CHECK(values_of(x) == Values{1, -6, 90, 12, 5});
  }
  const Tensor one = on_gpu({1}), two = on_gpu({2, 4});
  const int meetings = ranks.meetings;
  ranks.sum({one, two});
  CHECK(ranks.meetings == meetings + 1);
  CHECK(values_of(one) == Values{3});
  CHECK(values_of(two) == Values{6, 12});
  const Tensor x = on_gpu({1, 2, 3});
  for (const char* wait : {"cudaStreamSynchronize", "cudaDeviceSynchronize"}) stub::fail_call(wait, 1, kFailed);
  ranks.sum({x});  // the host does not wait
  stub::forgive();
  CHECK(values_of(x) == Values{3, 6, 9});
}
#endif

// ---- A step of training: it notes errors in the memory of the GPU and continues

namespace {

Batch batch_of(const std::vector<int64_t>& ids) {
  const Shape shape{2, static_cast<int64_t>(ids.size()) / 2};
  return to(make_batch(tensor_of(ids, shape), tensor_of(std::vector<int64_t>(ids.size(), 1), shape)), Device::cuda);
}

Model model_on_gpu() {
  ModelConfig config;
  config.vocab = 11, config.ctx = 4, config.d = 12, config.settings<Sdp>().heads = 3, config.layers = 1;
  apply_preset(config);
  Model model(config, 1);
  model.place_for_training(Dtype::f32, Device::cuda);
  return model;
}

}  // namespace

TEST_CASE("a step waits for the GPU only at its end") {
  Model model = model_on_gpu();
  Optimizer optimizer(model.trained_parameters(), {});
  TrainStep train_step(model, optimizer, Device::cuda, {.seed = 1});
  const std::vector<Batch> batch = {batch_of({1, 2, 3, 4, 5, 6, 7, 8})};
  train_step.run(batch, 0, 1e-3);
  stub::fail_call("cudaStreamSynchronize", 1, kFailed);
  const std::string message = message_of([&] { train_step.run(batch, 1, 1e-3); });
  CHECK(message.find("wait for the GPU: stub error 999") != std::string::npos);
  CHECK(optimizer.steps() == 2);  // the update was launched before
  stub::forgive();
}

TEST_CASE("a token id outside the vocabulary is named, and not an op that its NaN reached") {
  Model model = model_on_gpu();
  Optimizer optimizer(model.parameters(), {});
  const TrainStep train_step(model, optimizer, Device::cuda, {.seed = 1});
  CHECK(std::isfinite(forward_backward(model, {batch_of({1, 2, 3, 4, 5, 6, 7, 8})})));
  for (Parameter* p : model.parameters()) p->grad = {};
  const std::vector<Batch> spoilt = {batch_of({1, 2, 3, 4, 5, 6, 70, 8})};
  const double loss = forward_backward(model, spoilt, 1);
  CHECK(std::isnan(loss));
  CHECK(message_of([&] { train_step.explain_nonfinite(spoilt, 1, loss); }) ==
        "step 2: the loss is nan: embedding: id 70 at [1 2] is outside the vocabulary of 11");
}
