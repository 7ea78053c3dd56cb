#include "apps/lab/benchmark/measure.h"

#include <algorithm>

#include "core/cpu/available.h"
#include "core/error.h"
#include "core/memory/dry_run.h"
#include "core/memory/memory.h"
#include "models/planning/plan.h"

namespace ricci::apps {
namespace {

constexpr int kWarmUps = 2;  // steps before the measured ones: memory is touched for the first time, work is counted

StepSize size_at(const BenchOptions& options, int64_t length, int64_t scale) {
  StepSize size = options.size;
  size.positions = length / scale;
  size.sequences = options.sequences.value_or(options.tokens / length);
  if (!options.is_layer()) return size;
  size.layers = 1;
  size.preset = Preset::gpt;
  size.feed_forward = 4 * size.width;
  return size;
}

int64_t process_bytes_of(MixerKind mixer, const StepSize& size) {
  const DryRun dry(Device::cpu);
  MixerStep step(mixer, size);
  for (int i = 0; i < kWarmUps; ++i) step();
  return dry.arena_bytes() + program_bytes();
}

// A mixer at one length and scale, ready to be timed.
struct TimedMixer {
  MixerRow row;
  MixerStep step;
  std::vector<double> seconds = {};
};

TimedMixer timed_mixer(const BenchOptions& options, MixerKind kind, int64_t length, int64_t scale) {
  const StepSize size = size_at(options, length, scale);
  const int64_t held_before = memory_use(size.device).current;
  TimedMixer all{{.mixer = name_of(kind), .positions = size.positions, .sequences = size.sequences, .scale = scale, .length = length},
      MixerStep(kind, size)};
  MixerRow& row = all.row;
  if (options.is_layer()) {
    row.kept = all.step.kept_bytes();
    return all;
  }
  if (size.device == Device::cpu) row.process_bytes = process_bytes_of(kind, size);
  for (const Parameter* p : all.step.parameters()) row.parameters += p->value.size();
  all.step();
  reset_peak(size.device);
  const trace::Counter counter;
  all.step();
  for (const auto& [op, work] : counter.work()) row.flops += work.flops;
  row.tensor_bytes = memory_use(size.device).peak - held_before;
  return all;
}

// Scales whose cells fit into the length; 1 where no layer is measured.
std::vector<int64_t> scales_at(const BenchOptions& options, int64_t length) {
  std::vector<int64_t> scales = options.is_layer() ? options.scales : std::vector<int64_t>{1};
  std::erase_if(scales, [&](int64_t scale) { return scale > length; });
  return scales;
}

std::vector<TimedMixer> timed_mixers_at(const BenchOptions& options, int64_t length, const std::function<void(const TimedMixer&)>& note) {
  std::vector<TimedMixer> all;
  for (const MixerKind mixer : options.mixers)
    for (const int64_t scale : scales_at(options, length)) {
      all.push_back(timed_mixer(options, mixer, length, scale));
      note(all.back());
    }
  return all;
}

std::vector<OpRow> time_ops(TimedMixer& timed, int64_t rounds) {
  const trace::Timer timer;
  timed.step();
  trace::restart();
  for (int64_t i = 0; i < rounds; ++i) timed.step();
  std::vector<OpRow> rows;
  for (const auto& [op, work] : timer.work())
    if (op != "before the tape") rows.push_back({timed.row.mixer, op, work.calls, work.seconds, work.flops, work.bytes});
  std::stable_sort(rows.begin(), rows.end(), [](const OpRow& a, const OpRow& b) { return a.seconds > b.seconds; });
  return rows;
}

}  // namespace

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
  check_bound("--ff", options.size.feed_forward.value_or(0), kMax);
  check_bound("--layers", options.size.layers, kMaxLayers);
  check_bound("--tokens", options.tokens, kMax);
  check_bound("--sequences", options.sequences.value_or(0), kMax);
  check_bound("--rounds", options.rounds, kMaxRounds);
  for (const int64_t length : options.lengths) check_bound("--lengths", length, kMax);
  if (options.size.width % options.size.heads) fail("--heads: {} does not divide the width {}", {options.size.heads, options.size.width});
  for (const int64_t length : options.lengths)
    if (!options.sequences && options.tokens % length)
      fail("--lengths: {} does not divide the {} tokens of a step (--tokens)", {length, options.tokens});
}

int64_t steps_of(const BenchOptions& options) {
  const int64_t mixers = std::ssize(options.mixers);
  int64_t timed = 0;
  for (const int64_t length : options.lengths) timed += mixers * std::ssize(scales_at(options, length));
  return timed * (2 + options.rounds) + (options.roofline ? mixers : 0);
}

Benchmark measure(const BenchOptions& options, Progress& progress) {
  check(options);
  Benchmark all{options, {}, {}, {}};
  int64_t done = 0;
  const auto note = [&](const TimedMixer& c) {
    progress.update(++done, 0,
        options.is_layer() ? format_message("{}x, {} tokens", {c.row.scale, c.row.length})
                           : format_message("{}, {} positions", {c.row.mixer, c.row.positions}));
  };
  for (const int64_t length : options.lengths) {
    std::vector<TimedMixer> timed = timed_mixers_at(options, length, note);
    for (int64_t round = -1; round < options.rounds; ++round)  // the first one is not counted: mixers take memory over from each other
      for (TimedMixer& each : timed) {
        const double started = seconds_now();
        if (options.is_layer()) each.step.forward();
        else each.step();
        if (round >= 0) each.seconds.push_back(seconds_now() - started);
        note(each);
      }
    for (TimedMixer& each : timed) {
      each.row.seconds = spread_of(each.seconds);
      all.rows.push_back(each.row);
    }
    if (!options.roofline || length != *std::max_element(options.lengths.begin(), options.lengths.end())) continue;
    all.peaks = measured_peaks(options.size.device, options.size.dtype);
    for (TimedMixer& each : timed) {
      for (OpRow& op : time_ops(each, options.rounds)) all.ops.push_back(std::move(op));
      note(each);
    }
  }
  return all;
}

}  // namespace ricci::apps
