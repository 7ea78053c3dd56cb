#include "apps/lab/benchmark/measure.h"

#include <algorithm>
#include <cmath>

#include "core/cpu/clock.h"
#include "core/error.h"
#include "core/memory/dry_run.h"
#include "core/memory/memory.h"
#include "models/planning/plan.h"

namespace ricci::apps {
namespace {

constexpr int kWarmUps = 2;  // steps before those that are measured: memory is touched for the first time, work is counted

StepSize size_at(const BenchOptions& options, int64_t length) {
  StepSize size = options.size;
  size.positions = length;
  size.sequences = options.sequences ? options.sequences : options.tokens / length;
  return size;
}

int64_t process_bytes_of(MixerKind mixer, const StepSize& size) {
  const DryRun dry(Device::cpu);
  MixerStep step(mixer, size);
  for (int i = 0; i < kWarmUps; ++i) step();
  return dry.arena_bytes() + program_bytes();
}

// A mixer at one length, ready to be timed.
struct Contestant {
  MixerKind mixer;
  MixerRow row;
  MixerStep step;
  std::vector<double> seconds = {};

  Contestant(MixerKind kind, const StepSize& size) : Contestant(kind, size, memory_use(size.device).current) {}

 private:
  Contestant(MixerKind kind, const StepSize& size, int64_t held_before)
      : mixer(kind), row{name_of(kind), size.positions, size.sequences, 0, {}, 0, 0, {}}, step(kind, size) {
    if (size.device == Device::cpu) row.process_bytes = process_bytes_of(kind, size);
    for (const Parameter* p : step.parameters()) row.parameters += p->value.size();
    step();
    reset_peak(size.device);
    const trace::Counter counter;
    step();
    for (const auto& [op, work] : counter.work()) row.flops += work.flops;
    row.tensor_bytes = memory_use(size.device).peak - held_before;
  }
};

std::vector<OpRow> time_ops(Contestant& contestant, int64_t rounds) {
  const trace::Timer timer;
  contestant.step();
  trace::restart();
  for (int64_t i = 0; i < rounds; ++i) contestant.step();
  std::vector<OpRow> rows;
  for (const auto& [op, work] : timer.work())
    if (op != "before the tape") rows.push_back({contestant.row.mixer, op, work.calls, work.seconds, work.flops, work.bytes});
  std::stable_sort(rows.begin(), rows.end(), [](const OpRow& a, const OpRow& b) { return a.seconds > b.seconds; });
  return rows;
}

}  // namespace

Spread spread_of(std::vector<double> seconds) {
  if (seconds.empty()) fail("bench: no step was timed");
  std::sort(seconds.begin(), seconds.end());
  // Between two neighbours in proportion, as NumPy's quantile.
  const auto quantile = [&](double q) {
    const double rank = q * static_cast<double>(seconds.size() - 1);
    const size_t first = static_cast<size_t>(rank), second = std::min(first + 1, seconds.size() - 1);
    return seconds[first] + (rank - static_cast<double>(first)) * (seconds[second] - seconds[first]);
  };
  return {seconds.front(), quantile(0.25), quantile(0.5), quantile(0.75), seconds.back()};
}

double floor_of(const OpRow& op, const Peaks& peaks) { return std::max(op.flops / peaks.flops, op.bytes / peaks.bytes); }

double seconds_of(const Benchmark& bench, const std::string& mixer) {
  double seconds = 0;
  for (const OpRow& op : bench.ops) seconds += op.mixer == mixer ? op.seconds : 0;
  return seconds;
}

void check(const BenchOptions& options) {
  const auto check_bound = [](const char* option, int64_t value, int64_t max) {
    if (value > max) fail("{}: {}, expected {} or less", {option, value, max});
  };
  constexpr int64_t kMax = 1 << 19, kMaxLayers = 1024, kMaxRounds = 1 << 20;
  check_bound("--width", options.size.width, kMax);
  check_bound("--ff", options.size.feed_forward, kMax);
  check_bound("--layers", options.size.layers, kMaxLayers);
  check_bound("--tokens", options.tokens, kMax);
  check_bound("--sequences", options.sequences, kMax);
  check_bound("--rounds", options.rounds, kMaxRounds);
  for (const int64_t length : options.lengths) check_bound("--lengths", length, kMax);
  if (options.size.width % options.size.heads) fail("--heads: {} does not divide the width {}", {options.size.heads, options.size.width});
  for (const int64_t length : options.lengths)
    if (!options.sequences && options.tokens % length)
      fail("--lengths: {} does not divide the {} tokens of a step (--tokens)", {length, options.tokens});
}

int64_t steps_of(const BenchOptions& options) {
  return static_cast<int64_t>(options.lengths.size() * options.mixers.size()) * (2 + options.rounds) +
         (options.roofline ? static_cast<int64_t>(options.mixers.size()) : 0);
}

Benchmark measure(const BenchOptions& options, Progress& progress) {
  check(options);
  Benchmark all{options, {}, {}, {}};
  int64_t done = 0;
  const auto note = [&](const Contestant& c) {
    progress.update(++done, 0, format_message("{}, {} positions", {c.row.mixer, c.row.positions}));
  };
  for (const int64_t length : options.lengths) {
    std::vector<Contestant> contestants;
    contestants.reserve(options.mixers.size());
    for (const MixerKind mixer : options.mixers) note(contestants.emplace_back(mixer, size_at(options, length)));
    for (int64_t round = -1; round < options.rounds; ++round)  // the first one is not counted: mixers take memory over from each other
      for (Contestant& each : contestants) {
        const double started = seconds_now();
        each.step();
        if (round >= 0) each.seconds.push_back(seconds_now() - started);
        note(each);
      }
    for (Contestant& each : contestants) {
      each.row.seconds = spread_of(each.seconds);
      all.rows.push_back(each.row);
    }
    if (!options.roofline || length != *std::max_element(options.lengths.begin(), options.lengths.end())) continue;
    all.peaks = measured_peaks(options.size.device, options.size.dtype);
    for (Contestant& each : contestants) {
      for (OpRow& op : time_ops(each, options.rounds)) all.ops.push_back(std::move(op));
      note(each);
    }
  }
  return all;
}

}  // namespace ricci::apps
