#include "cuda/trace.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/tensor.h"
#include "cuda/device/device.h"

namespace ricci::trace {

namespace {

const bool wanted = [] {
  const char* value = std::getenv("RICCI_TRACE");
  return value && *value && std::strcmp(value, "0") != 0;
}();

struct Counted {
  bool alive = false;
  std::map<std::string, Work> work;
  double flops = 0;
} counted;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Fused multiply-adds on registers: as many independent sums as hide their latency.
struct MultiplyAdd {
  float* result;
  HD void operator()(int64_t begin, int64_t end) const {
    constexpr int kSums = 16, kLanes = 16;
    float sum[kSums][kLanes] = {};
    for (int64_t i = begin; i < end; ++i)
#pragma GCC unroll 16
      for (int s = 0; s < kSums; ++s)
#pragma omp simd
        for (int lane = 0; lane < kLanes; ++lane) sum[s][lane] = sum[s][lane] * result[lane] + result[kLanes + lane];
    for (int s = 0; s < kSums; ++s)
      for (int lane = 0; lane < kLanes; ++lane) result[2 * kLanes + lane] += sum[s][lane];
  }
};

double best_of(int times, const auto& work) {
  double best = 1e30;
  for (int i = 0; i < times; ++i) {
    const auto start = Clock::now();
    work();
    best = std::min(best, seconds_since(start));
  }
  return best;
}

// f32, all threads, FLOP/s.
double measured_peak() {
  constexpr int64_t kRounds = 1 << 18;
  const int64_t threads = thread_count();
  std::vector<float> numbers(static_cast<size_t>(threads) * 64, 0.5f);
  const double seconds = best_of(5, [&] {
    parallel_for(threads, 1, [&](int64_t i, int64_t) { run_vectorized(MultiplyAdd{numbers.data() + i * 64}, 0, kRounds); });
  });
  return 2.0 * 16 * 16 * kRounds * static_cast<double>(threads) / seconds;
}

// y += x, element by element. Every line of memory that is written has been read, so that none is fetched unasked.
struct AddTo {
  const float* x;
  float* y;
  HD void operator()(int64_t begin, int64_t end) const {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) y[i] += x[i];
  }
};

// Bytes read and written per second.
double measured_bandwidth() {
  constexpr int64_t kFloats = 1 << 25, kChunk = 1 << 16;
  const Tensor x({kFloats}), y({kFloats});
  for (const Tensor* t : {&x, &y}) std::memset(t->raw(), 0, static_cast<size_t>(t->bytes()));
  const double seconds = best_of(3, [&] {
    parallel_for(kFloats, kChunk, [&](int64_t begin, int64_t end) { run_vectorized(AddTo{x.data<float>(), y.data<float>()}, begin, end); });
  });
  return 3.0 * static_cast<double>(x.bytes()) / seconds;
}

struct Line {
  int64_t calls = 0;
  double seconds = 0, flops = 0, bytes = 0;
};

struct Recorder {
  std::map<std::string, Line> lines;
  Clock::time_point last = Clock::now();
  double flops = 0;

  ~Recorder() { print(); }

  void print() {
    if (lines.empty()) return;
    std::vector<std::pair<std::string, Line>> sorted(lines.begin(), lines.end());
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
    Line total;
    for (const auto& [op, line] : sorted) total.seconds += line.seconds, total.flops += line.flops;
    const double peak = measured_peak(), bandwidth = measured_bandwidth();
    std::fprintf(stderr, "\nmeasured peak %.0f GFLOP/s f32, memory %.1f GB/s, %d threads, %s\n", peak * 1e-9, bandwidth * 1e-9, thread_count(), name_of(cpu_isa()));
    std::fprintf(stderr, "%-38s %7s %10s %6s %10s %9s %8s %7s\n", "op", "calls", "ms", "share", "ms/call", "GFLOP/s", "of peak", "GB/s");
    sorted.emplace_back("all", total);
    for (const auto& [op, line] : sorted) {
      std::fprintf(stderr, "%-38s %7lld %10.1f %5.1f%% %10.4f", op.c_str(), static_cast<long long>(line.calls), line.seconds * 1e3,
                   100 * line.seconds / total.seconds, line.calls ? line.seconds * 1e3 / static_cast<double>(line.calls) : 0.0);
      if (line.flops > 0)
        std::fprintf(stderr, " %9.1f %7.1f%%", line.flops / line.seconds * 1e-9, 100 * line.flops / line.seconds / peak);
      else
        std::fprintf(stderr, " %9s %8s", "", "");
      if (line.bytes > 0) std::fprintf(stderr, " %7.1f", line.bytes / line.seconds * 1e-9);
      std::fprintf(stderr, "\n");
    }
  }
};

Recorder& recorder() {
  thread_count();  // what the table needs at the end is made before the table
  cpu_isa();
  static Recorder one;
  return one;
}

}  // namespace

bool enabled = wanted;

Counter::Counter() { counted = {}, counted.alive = enabled = true; }
Counter::~Counter() { counted = {}, enabled = wanted; }
const std::map<std::string, Work>& Counter::work() const { return counted.work; }

void end_of(const char* op, const char* part, Device device, int64_t bytes) {
  const std::string name = *part ? std::string(op) + " " + part : op;
  if (counted.alive) {
    Work& work = counted.work[name];
    ++work.calls, work.flops += counted.flops, work.bytes += static_cast<double>(bytes);
    counted.flops = 0;
    return;
  }
  synchronize(device);
  Recorder& r = recorder();
  Line& line = r.lines[name];
  const auto now = Clock::now();
  ++line.calls;
  line.seconds += std::chrono::duration<double>(now - r.last).count();
  line.flops += r.flops, r.flops = 0;
  line.bytes += static_cast<double>(bytes);
  r.last = now;
}

void restart() {
  if (!enabled) return;
  Recorder& r = recorder();
  r.lines.clear();
  r.flops = 0;
  r.last = Clock::now();
}

void count_flops(double flops) { (counted.alive ? counted.flops : recorder().flops) += flops; }

}  // namespace ricci::trace
