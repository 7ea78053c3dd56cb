#include "cuda/device/graph.h"

#include <random>
#include <set>

#include "core/memory/memory.h"
#include "cuda/device/device_memory.h"
#include "ops/elements/activations.h"
#include "ops/elements/arithmetic.h"
#include "tests/ops/values.h"

using namespace ricci;

namespace {

// Runs the work, measures it, records it.
void prepare(Graph& graph, const std::function<void()>& work) {
  work();
  graph.measure(work);
  graph.record(work);
}

}  // namespace

TEST_CASE("offset heap: places never overlap, holes are joined and used again") {
  OffsetHeap heap;
  CHECK(heap.allocate(1) == 0);
  CHECK(heap.allocate(513) == 512);
  CHECK(heap.allocate(0) == 1536);
  CHECK(heap.extent() == 2048);
  heap.release(0);
  heap.release(512);
  CHECK(heap.allocate(1536) == 0);  // both holes together
  heap.release(1536);
  CHECK(heap.allocate(2000) == 1536);
  CHECK(heap.extent() == 3584);
  heap.release(0), heap.release(1536);
  CHECK(heap.empty());
  CHECK(heap.allocate(3000) == 0);
  CHECK(heap.extent() == 3584);
  CHECK(message_of([&] { heap.release(512); }) == "offset heap: nothing was allocated at offset 512");
}

TEST_CASE("offset heap: drawn sizes and lifetimes") {
  std::mt19937 random(1);
  OffsetHeap heap;
  std::map<int64_t, int64_t> live;
  int64_t most = 0, used = 0;
  for (int i = 0; i < 5000; ++i) {
    if (live.size() > 40 || (!live.empty() && random() % 3 == 0)) {
      const auto victim = std::next(live.begin(), static_cast<int64_t>(random() % live.size()));
      used -= victim->second;
      heap.release(victim->first);
      live.erase(victim);
      continue;
    }
    const int64_t bytes = static_cast<int64_t>(random() % 20000 + 1), offset = heap.allocate(bytes);
    REQUIRE(offset % OffsetHeap::kAlign == 0);
    const auto after = live.lower_bound(offset);
    if (after != live.end()) REQUIRE(offset + bytes <= after->first);
    if (after != live.begin()) REQUIRE(std::prev(after)->first + std::prev(after)->second <= offset);
    live[offset] = bytes;
    used += bytes, most = std::max(most, used);
  }
  CHECK(heap.extent() >= most);
  CHECK(heap.extent() < 2 * most);
}

TEST_CASE("graph: a launch reads the current values of its inputs, and writes the same memory again") {
  on_gpus([](Device device) {
    const Tensor x = drawn({3000}, Dtype::f32, device, 1);
    Tensor y;
    Graph graph(device);
    prepare(graph, [&] {
      Tensor h = x;
      for (int i = 0; i < 6; ++i) h = gelu(h) + x;  // tensors that come and go
      y = h;
    });
    CHECK(graph.bytes() >= 2 * x.bytes());
    CHECK(graph.bytes() <= 4 * (x.bytes() + OffsetHeap::kAlign));
    const void* const place = y.raw();
    for (uint64_t stream : {2, 3, 4}) {
      const Tensor next = drawn({3000}, Dtype::f32, device, stream);
      copy(x, next);
      graph.launch();
      const Tensor elsewhere = drawn({50000}, Dtype::f32, device, 9);  // gets none of the graph's memory
      Tensor expected = next;
      for (int i = 0; i < 6; ++i) expected = gelu(expected) + next;
      CHECK(values_of(y) == values_of(expected));
      CHECK(y.raw() == place);
    }
  });
}

TEST_CASE("graph: recording runs nothing, numbers are those of the recording") {
  on_gpus([](Device device) {
    const Tensor x = tensor_of({1, 2}, {2}, Dtype::f64, device);
    double number = 5;
    const auto work = [&] { fill(x, number); };
    Graph graph(device);
    graph.measure(work);
    fill(x, 1);
    number = 6;
    graph.record(work);
    CHECK(values_of(x) == Values{1, 1});
    number = 7;
    graph.launch();
    CHECK(values_of(x) == Values{6, 6});
  });
}

TEST_CASE("graph: its memory lives as long as tensors in it, and is given back") {
  const Device device = Device::cuda_emulated;
  const Tensor x = drawn({300}, Dtype::f32, device, 1);
  Tensor y;
  {
    Graph graph(device);
    prepare(graph, [&] { y = gelu(x); });
    graph.launch();
  }
  CHECK(values_of(y) == values_of(gelu(x)));
  y = {};
  Tensor old = gelu(x);  // older memory that is freed while recording
  Graph graph(device);
  const int64_t before = memory_use(device).current;
  const auto work = [&] { old = {}; };
  graph.measure([] {});
  graph.record(work);
  CHECK(memory_use(device).current == before - x.bytes());
  graph.launch();
}

TEST_CASE("graph: messages") {
  const Device device = Device::cuda_emulated;
  CHECK(message_of([] { Graph{Device::cpu}; }) == "graph: graphs are not available on the cpu");
  if (!available(Device::cuda)) CHECK(message_of([] { Graph{Device::cuda}; }) == std::string("device cuda: ") + why_not(Device::cuda));
  const Tensor x = drawn({10}, Dtype::f32, device, 1);
  Graph graph(device);
  CHECK(message_of([&] { graph.launch(); }) == "graph: nothing is recorded; call record() before launch()");
  CHECK(message_of([&] { graph.record([] {}); }) == "graph: call measure() before record()");
  graph.measure([&] { gelu(x); });
  CHECK(message_of([&] { graph.record([&] { item(x, 0); }); }) == "graph: a copy to the CPU cannot be recorded");
  CHECK(message_of([&] { graph.record([&] { to(Tensor({1}), device); }); }) == "graph: a copy from the CPU cannot be recorded");
  CHECK(message_of([&] { graph.record([&] { synchronize(device); }); }) == "graph: waiting for the device cannot be recorded");
  CHECK(message_of([&] { graph.record([&] { Tensor({129}, Dtype::f32, device); }); }) ==
        "graph: the work needs more memory than the 512 bytes that were measured");
  CHECK(message_of([&] { graph.launch(); }) == "graph: nothing is recorded; call record() before launch()");
  CHECK(values_of(gelu(x)) == values_of(gelu(x)));  // nothing is being recorded
  graph.record([&] { gelu(x); });
  CHECK(message_of([&] { graph.record([] {}); }) == "graph: the graph is already recorded");
}
