#include "cuda/trace.h"

#include <doctest/doctest.h>

#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/device/graph.h"
#include "ops/products/products.h"
#include "tests/ops/values.h"

using namespace ricci;

TEST_CASE("trace: a Timer times ops and counts their work, and forgets it at restart") {
  const Tensor x = drawn({3, 4}, Dtype::f64, Device::cpu, 1), w = drawn({5, 4}, Dtype::f64, Device::cpu, 2);
  const bool before = trace::enabled;
  {
    const trace::Timer timer;
    linear(x, w, Tensor());
    trace::restart();
    CHECK(timer.work().empty());
    for (int i = 0; i < 2; ++i) linear(x, w, Tensor());
    REQUIRE(timer.work().size() == 1);
    const trace::Work& work = timer.work().at("linear");
    CHECK(work.calls == 2);
    CHECK(work.flops == 2 * 2 * 3 * 4 * 5);
    CHECK(work.bytes == 2 * 8 * (3 * 4 + 5 * 4 + 3 * 5));
    CHECK(work.seconds > 0);
    CHECK(message_of([] { const trace::Timer second; }) == "trace: a Timer is alive");
  }
  CHECK(trace::enabled == before);
}

TEST_CASE("trace: a Counter counts the work of ops, and neither it nor a Timer begins beside another") {
  const Tensor x = drawn({3, 4}, Dtype::f64, Device::cpu, 1), w = drawn({5, 4}, Dtype::f64, Device::cpu, 2);
  const bool before = trace::enabled;
  {
    const trace::Counter counter;
    linear(x, w, Tensor());
    REQUIRE(counter.work().size() == 1);
    const trace::Work& work = counter.work().at("linear");
    CHECK(work.calls == 1);
    CHECK(work.flops == 2 * 3 * 4 * 5);
    CHECK(work.bytes == 8 * (3 * 4 + 5 * 4 + 3 * 5));
    CHECK(message_of([] { const trace::Counter second; }) == "trace: a Counter is alive");
    CHECK(message_of([] { const trace::Timer second; }) == "trace: a Counter is alive");
    CHECK(counter.work().size() == 1);
  }
  {
    const trace::Timer timer;
    CHECK(message_of([] { const trace::Counter second; }) == "trace: a Timer is alive");
  }
  CHECK(trace::enabled == before);
}

TEST_CASE("trace: what a graph records is not waited for, and its launch is a line of its own") {
  const Device device = Device::cuda_emulated;
  const Tensor x = drawn({3, 4}, Dtype::f32, device, 1), w = drawn({5, 4}, Dtype::f32, device, 2);
  Tensor y;
  const auto work = [&] {
    y = {};
    y = linear(x, w, Tensor());
  };
  const trace::Timer timer;
  Graph graph(device);
  work();
  graph.measure(work);
  graph.record(work);
  graph.launch();
  graph.launch();
  REQUIRE(timer.work().contains("graph"));
  CHECK(timer.work().at("graph").calls == 2);
}
