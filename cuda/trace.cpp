// The recorder of RICCI_TRACE. Its peaks are measured by running ops, so the table is printed after the last op but before libraries and
// the emulator end.
#include "cuda/trace.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/cpu/available.h"
#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/error.h"
#include "core/memory/dry_run.h"
#include "cuda/device/device.h"
#include "cuda/device/graph.h"
#include "cuda/peaks.h"

namespace ricci::trace {

namespace {

const bool wanted = is_switched_on("RICCI_TRACE");

struct Recorder {
  bool timed = true;
  std::map<std::string, Work> lines = {};
  double last = seconds_now(), flops = 0;
  Device device = Device::cpu;  // the GPU that ops ran on, if any did
  Dtype dtype = Dtype::f32;     // the dtype of the last product

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
    const auto [peak, bandwidth] = measured_peaks(device, dtype);
    const std::string where =
        device == Device::cpu ? format_message("{} threads, {}", {thread_count(), name_of(cpu_isa())}) : name_of(device);
    std::fprintf(
        stderr, "\nmeasured peak %.0f GFLOP/s %s, memory %.1f GB/s, %s\n", peak * 1e-9, name_of(dtype), bandwidth * 1e-9, where.c_str());
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

Recorder* active = nullptr;  // not null while a Counter exists

Recorder& of_program() {
  static Recorder& one = *new Recorder;  // outlives the table at the end
  return one;
}

// Prints the table once, when a thread or the libraries end.
void print_at_end() {
  static bool printed = false;
  if (std::exchange(printed, true)) return;
  try {
    of_program().print();
  } catch (const Error& error) {
    std::fprintf(stderr, "trace: %s\n", error.what());
  }
}

// The library loaded last ends first, so the table is printed before the libraries that were loaded for ops end, including a GPU's.
void print_before_end_of_libraries() { std::atexit(print_at_end); }

// A thread's first object ends last, but before any library, so the table is printed while this thread's emulator blocks still exist. These
// blocks run the ops that measure the peaks.
void print_before_end_of_device() {
  static thread_local const struct AtEnd {
    ~AtEnd() { print_at_end(); }
  } at_end;
  static_cast<void>(at_end);
}

Recorder& recorder() {
  if (active) return *active;
  thread_count();  // made before the table, so these objects are destroyed after it
  cpu_isa();
  static const bool first = (print_before_end_of_libraries(), true);
  static_cast<void>(first);
  return of_program();
}

}  // namespace

bool enabled = wanted;

Counter::Counter(bool timed) {
  if (active) fail("trace: a Counter already exists");
  active = new Recorder{.timed = timed};
  enabled = true;
}
Counter::~Counter() {
  delete active;
  active = nullptr;
  enabled = wanted;
}
const std::map<std::string, Work>& Counter::work() const { return active->lines; }

void end_of(const char* op, const char* part, Device device, int64_t bytes) {
  Recorder& r = recorder();
  if (is_dry_run() && !active) {  // planning a program is not part of its work
    r.flops = 0;
    return;
  }
  if (r.timed && !recording_graph()) synchronize(device);
  if (device != Device::cpu && std::exchange(r.device, device) != device && !active) print_before_end_of_device();
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
  if (!active) print_before_end_of_libraries();
}

void count_flops(double flops) { recorder().flops += flops; }

void count_flops(double flops, Dtype dtype) {
  count_flops(flops);
  recorder().dtype = dtype;
}

}  // namespace ricci::trace
