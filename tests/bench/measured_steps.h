// Shared by benchmarks of steps: their options, the loop around a step, and the lines "measure NAME VALUE UNIT" that they print.
#pragma once
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "apps/terminal/cli.h"
#include "core/choice.h"
#include "core/cpu/available.h"
#include "core/error.h"
#include "core/memory/memory.h"
#include "core/random.h"
#include "cuda/device/device.h"
#include "cuda/trace.h"
#include "cuda/verbs/arithmetic.h"

namespace bench {

struct Options {
  int steps = 0;  // measured steps, or 0 for about `seconds` of them
  double seconds = 5;
  std::string dtype = "f32", device = "cpu";
  bool lists = false;
  std::vector<std::string> names;
  ricci::Device on() const { return ricci::parse_device(device.c_str()); }
  ricci::Dtype as() const { return ricci::parse_dtype(dtype.c_str()); }
};

inline void add_options(CLI::App& app, Options& options) {
  app.add_option("names", options.names, "what is measured; those of --list if not given");
  app.add_flag("--list", options.lists, "print the names of what is measured if none are given");
  app.add_option(
      "--steps", options.steps, "that are measured; 0: about " + std::to_string(static_cast<int>(options.seconds)) + " seconds of them");
  app.add_option("--dtype", options.dtype, "f32 or bf16");
  app.add_option("--device", options.device, "cpu, cuda or cuda_emulated");
}

// Calls measure(i) for each requested name, or lists the default names. Error: a name is unknown.
inline int measure_named(const Options& options, const std::vector<std::string>& names, const std::function<bool(size_t)>& by_default,
    const std::function<void(size_t)>& measure) {
  for (const std::string& name : options.names)
    if (std::find(names.begin(), names.end(), name) == names.end()) ricci::fail("{}: there is no such name; --list prints them", {name});
  for (size_t i = 0; i < names.size(); ++i) {
    const bool asked =
        options.names.empty() ? by_default(i) : std::find(options.names.begin(), options.names.end(), names[i]) != options.names.end();
    if (asked && options.lists) std::puts(names[i].c_str());
    if (asked && !options.lists) measure(i);
  }
  return 0;
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Standard normal numbers.
inline ricci::Tensor random(const ricci::Shape& shape, uint64_t stream, ricci::Dtype dtype, ricci::Device device) {
  const ricci::Tensor t(shape);
  ricci::fill_normal(t.data<float>(), t.size(), 0.0f, 1.0f, ricci::Philox{1, stream});
  return ricci::to(ricci::convert(t, dtype), device);
}

inline std::vector<int64_t> random_ids(int64_t count, int64_t vocab, uint64_t seed) {
  std::vector<int64_t> ids(static_cast<size_t>(count));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(ricci::Philox{seed, 0}.bits(i) % static_cast<uint64_t>(vocab));
  return ids;
}

inline rusage usage_now() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage;
}

// The seconds of all threads, without the system's share.
inline double processor_seconds() {
  const timeval time = usage_now().ru_utime;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// On the CPU the process's peak, including earlier measurements; on a GPU the peak of its tensors.
inline double memory_mb(ricci::Device device) {
  if (device != ricci::Device::cpu) return static_cast<double>(ricci::memory_use(device).peak) * 1e-6;
  return static_cast<double>(usage_now().ru_maxrss) * 1.024e-3;
}

struct Steps {
  std::vector<double> seconds;  // one for each step, the fastest first
  double processor = 0;         // seconds of a step
  double median() const { return seconds[seconds.size() / 2]; }
};

// Calls step(0), step(1), ...: three to warm up (not in the table of RICCI_TRACE), then the measured ones. The step returns when its work
// is done.
inline Steps measured_steps(const Options& options, const std::function<void(int)>& step) {
  constexpr int kWarmUp = 3, kMin = 5, kMax = 1000;
  for (int i = 0; i < kWarmUp; ++i) step(i);
  ricci::trace::restart();
  Steps steps;
  const double processor = processor_seconds();
  double total = 0;
  for (int i = 0; options.steps ? i < options.steps : i < kMin || (total < options.seconds && i < kMax); ++i) {
    const double started = ricci::seconds_now();
    step(kWarmUp + i);
    steps.seconds.push_back(ricci::seconds_now() - started);
    total += steps.seconds.back();
  }
  steps.processor = (processor_seconds() - processor) / static_cast<double>(steps.seconds.size());
  std::sort(steps.seconds.begin(), steps.seconds.end());
  return steps;
}

// The median and the fastest step, the processor time of a step, and memory_mb.
inline void report(const std::string& name, const Steps& steps, ricci::Device device) {
  const char* const n = name.c_str();
  std::printf("measure %s_median %.3f ms\nmeasure %s_min %.3f ms\n", n, steps.median() * 1e3, n, steps.seconds[0] * 1e3);
  std::printf("measure %s_processor %.3f ms\nmeasure %s_memory %.1f MB\n", n, steps.processor * 1e3, n, memory_mb(device));
  std::fflush(stdout);
}

// The least possible time of a step's work, in seconds. Error: a step took less, so the floor is wrong.
inline void report_floor(const std::string& name, const Steps& steps, double floor) {
  if (floor > steps.seconds[0])
    ricci::fail("{}: the floor of {:.3f} ms is above the fastest step of {:.3f} ms: peaks measured while other programs run are too low; "
                "run it again",
        {name, floor * 1e3, steps.seconds[0] * 1e3});
  std::printf("measure %s_floor %.3f ms\n", name.c_str(), floor * 1e3);
  std::fflush(stdout);
}

}  // namespace bench
