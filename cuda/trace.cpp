#include "cuda/trace.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "core/cpu/clock.h"
#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/peaks.h"

namespace ricci::trace {

namespace {

const bool wanted = [] {
  const char* value = std::getenv("RICCI_TRACE");
  return value && *value && std::strcmp(value, "0") != 0;
}();

struct Recorder {
  bool timed = true;
  std::map<std::string, Work> lines = {};
  double last = seconds_now(), flops = 0;

  void restart() {
    lines.clear();
    flops = 0;
    last = seconds_now();
  }
  void print() const {
    if (lines.empty()) return;
    std::vector<std::pair<std::string, Work>> sorted(lines.begin(), lines.end());
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
    Work total;
    for (const auto& [op, line] : sorted) {
      total.seconds += line.seconds;
      total.flops += line.flops;
    }
    const auto [peak, bandwidth] = measured_peaks(Device::cpu, Dtype::f32);
    std::fprintf(stderr, "\nmeasured peak %.0f GFLOP/s f32, memory %.1f GB/s, %d threads, %s\n", peak * 1e-9, bandwidth * 1e-9,
        thread_count(), name_of(cpu_isa()));
    std::fprintf(stderr, "%-38s %7s %10s %6s %10s %9s %8s %7s\n", "op", "calls", "ms", "share", "ms/call", "GFLOP/s", "of peak", "GB/s");
    sorted.emplace_back("all", total);
    for (const auto& [op, line] : sorted) {
      std::fprintf(stderr, "%-38s %7lld %10.1f %5.1f%% %10.4f", op.c_str(), static_cast<long long>(line.calls), line.seconds * 1e3,
          100 * line.seconds / total.seconds, line.calls ? line.seconds * 1e3 / static_cast<double>(line.calls) : 0.0);
      if (line.flops > 0) std::fprintf(stderr, " %9.1f %7.1f%%", line.flops / line.seconds * 1e-9, 100 * line.flops / line.seconds / peak);
      else std::fprintf(stderr, " %9s %8s", "", "");
      if (line.bytes > 0) std::fprintf(stderr, " %7.1f", line.bytes / line.seconds * 1e-9);
      std::fprintf(stderr, "\n");
    }
  }
};

struct PrintedAtTheEnd : Recorder {
  ~PrintedAtTheEnd() { print(); }
};

Recorder* kept = nullptr;  // while a Counter or Timer lives

Recorder& recorder() {
  if (kept) return *kept;
  thread_count();  // what the table needs at the end is made before the table
  cpu_isa();
  static PrintedAtTheEnd one;
  return one;
}

}  // namespace

bool enabled = wanted;

Counter::Counter(bool timed) {
  if (kept) fail("trace: a {} is alive", {kept->timed ? "Timer" : "Counter"});
  kept = new Recorder{.timed = timed};
  enabled = true;
}
Counter::~Counter() {
  delete kept;
  kept = nullptr;
  enabled = wanted;
}
const std::map<std::string, Work>& Counter::work() const { return kept->lines; }

void end_of(const char* op, const char* part, Device device, int64_t bytes) {
  Recorder& r = recorder();
  if (r.timed) synchronize(device);
  Work& line = r.lines[*part ? std::string(op) + " " + part : op];
  const double now = seconds_now();
  ++line.calls;
  line.seconds += now - r.last;
  line.flops += r.flops;
  r.flops = 0;
  line.bytes += static_cast<double>(bytes);
  r.last = now;
}

void restart() {
  if (!enabled) return;
  recorder().restart();
}

void count_flops(double flops) { recorder().flops += flops; }

}  // namespace ricci::trace
