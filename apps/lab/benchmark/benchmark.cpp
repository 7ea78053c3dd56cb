#include "apps/lab/benchmark/benchmark.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <type_traits>

#include "apps/terminal/progress.h"
#include "autograd/tape.h"
#include "core/cpu/available.h"
#include "core/error.h"
#include "core/memory/dry_run.h"
#include "core/memory/memory.h"
#include "core/random.h"
#include "cuda/device/device.h"
#include "cuda/trace.h"
#include "cuda/verbs/arithmetic.h"
#include "models/layers/stack.h"
#include "models/layers/visit.h"
#include "models/planning/plan.h"

namespace ricci::apps {
namespace {

Tensor random(uint64_t stream, const StepSize& size) {
  const Tensor t({size.sequences, size.positions, size.width});
  if (!is_dry_run()) fill_normal(t.data<float>(), t.size(), 0.0f, 1.0f, Philox{1, stream});
  return to(convert(t, size.dtype), size.device);
}

}  // namespace

// ---- The step

MixerStep::MixerStep(MixerKind mixer, const StepSize& size) : size_(size), x_bcd_(random(1, size)), dy_bcd_(random(2, size)) {
  const auto use = [&](const auto& module) {
    parameters_ = parameters_of(*module);
    for (Parameter* p : parameters_) {
      if (!is_dry_run()) draw(*p, 1);
      p->value = to(convert(p->value, size.dtype), size.device);
    }
    forward_ = [module](const Arg& x) { return (*module)(x, Tensor()); };
  };
  Mixers::call_for(mixer, [&]<class M>() {
    typename M::Config config;
    if constexpr (requires { config.heads; }) config.heads = size.heads;
    MixerShape shape;  // causal, as in a language model
    shape.d = size.width;
    shape.ctx = size.positions;
    shape.init = {size.preset, size.alone ? 1 : size.layers};
    if constexpr (requires { check(config, shape); }) check(config, shape);
    else static_assert(std::is_same_v<typename M::Config, NoKeys>, "a mixer with keys has a check of them");
    const bool post = size.preset == Preset::msa;
    BlockConfig block;
    block.norm = post ? Norm::post : Norm::pre;
    block.activation = post ? Activation::relu : Activation::gelu;
    block.ff = size.feed_forward.value_or(size.width);
    const StackConfig<M> stack{shape, size.layers, PositionKind::none, block, config};
    if (size.alone) use(std::make_shared<M>(shape, config));
    else use(std::make_shared<Stack<M>>(stack));
  });
}

void MixerStep::operator()() {
  {
    Tape tape;
    const Tensor y_bcd = forward_(size_.alone ? Arg(tape.watch(x_bcd_)) : Arg(x_bcd_));
    // A mixer without weights has no gradient to compute, because the stack's input is given.
    if (tape.has(y_bcd)) tape.backward(y_bcd, dy_bcd_);
  }
  for (Parameter* p : parameters_) p->grad = {};
  synchronize(size_.device);
}

void MixerStep::forward() {
  const NoTape no_tape;
  forward_(x_bcd_);
  synchronize(size_.device);
}

int64_t MixerStep::kept_bytes() {
  const int64_t before = memory_use(size_.device).current;
  const Tape tape;
  { const Tensor y_bcd = forward_(Arg(x_bcd_)); }  // the output is the next layer's
  return memory_use(size_.device).current - before;
}

// ---- Measurements

namespace {

StepSize size_at(const BenchOptions& options, int64_t length, int64_t scale) {
  StepSize size = options.size;
  size.positions = length / scale;
  size.sequences = options.sequences.value_or(options.tokens / length);
  if (!options.is_layer()) return size;
  size.layers = 1;
  size.preset = Preset::gpt;
  size.feed_forward = size.feed_forward.value_or(4 * size.width);
  return size;
}

// A mixer at one length and scale, ready to be timed.
struct TimedMixer {
  MixerRow row;
  MixerStep step;
  std::vector<double> seconds = {};
};

int64_t process_bytes_of(MixerKind mixer, const StepSize& size) {
  const DryRun dry(Device::cpu);
  MixerStep step(mixer, size);
  for (int i = 0; i < 2; ++i) step();  // the second has the memory of the first to reuse
  return dry.arena_bytes() + program_bytes();
}

TimedMixer timed_mixer(const BenchOptions& options, MixerKind kind, int64_t length, int64_t scale) {
  const StepSize size = size_at(options, length, scale);
  const int64_t held_before = memory_use(size.device).current;
  const std::string name = options.is_layer() ? fmt::format("{}x", scale) : name_of(kind);
  TimedMixer all{{.name = name, .scale = scale, .length = length, .sequences = size.sequences}, MixerStep(kind, size)};
  MixerRow& row = all.row;
  if (options.is_layer()) {
    row.bytes = all.step.kept_bytes();
    return all;
  }
  if (size.device == Device::cpu) row.process_bytes = process_bytes_of(kind, size);
  for (const Parameter* p : all.step.parameters()) row.parameters += p->value.size();
  all.step();  // touches memory for the first time
  reset_peak(size.device);
  const trace::Counter counter;
  all.step();
  for (const auto& [op, work] : counter.work()) row.flops += work.flops;
  row.bytes = memory_use(size.device).peak - held_before;
  return all;
}

void check(const BenchOptions& options) {
  if (options.size.width % options.size.heads) fail("--heads: {} does not divide the width {}", {options.size.heads, options.size.width});
  for (const int64_t length : options.lengths)
    if (!options.sequences && options.tokens % length)
      fail("--lengths: {} does not divide the {} tokens of a step (--tokens)", {length, options.tokens});
}

// ---- The report

double half_spread(const Spread& s) { return s.median > 0 ? (s.upper_quartile - s.lower_quartile) / 2 / s.median : 0; }

// "2 blocks of 256, 2048 tokens a step, f32 on cpu"
std::string described(const BenchOptions& o) {
  const std::string place = fmt::format("{} on {}", name_of(o.size.dtype), name_of(o.size.device));
  if (o.is_layer()) return fmt::format("one layer of {}, heads: {}, sequences: {}, {}", o.size.width, o.size.heads, *o.sequences, place);
  const std::string blocks = o.size.alone ? "one mixer" : counted(o.size.layers, "block");
  const std::string step = o.sequences ? fmt::format("sequences a step: {}", *o.sequences) : fmt::format("{} tokens a step", o.tokens);
  return fmt::format("{} of {}, {}, {}", blocks, o.size.width, step, place);
}

// A line if measurements of the same step spread far.
std::vector<std::string> busy_note(const std::vector<MixerRow>& rows) {
  const auto unsteady = std::count_if(rows.begin(), rows.end(), [](const MixerRow& row) { return half_spread(row.seconds) > 0.2; });
  double load = 0;
  if (unsteady == 0 || ::getloadavg(&load, 1) != 1) return {};
  return {fmt::format("the spread is above 20% in {} of {} rows (load {:.1f} on {} processors): compare with care", unsteady, rows.size(),
      load, available_processors())};
}

ResultTable table_of(const BenchOptions& options, const std::vector<MixerRow>& rows) {
  ResultTable table;
  const auto add = [&](Column column, const auto& value) { table.add(std::move(column), rows, value); };
  const auto milliseconds = [&](const char* heading, const char* key, double Spread::*part) {
    add({.heading = heading, .key = key, .format = "{:.3f}"}, [part](const MixerRow& row) { return row.seconds.*part * 1e3; });
  };
  if (options.is_layer()) {
    add({.heading = "scale", .key = "scale", .format = "{}x", .left = true}, &MixerRow::scale);
    add({.heading = "tokens", .key = "tokens"}, &MixerRow::length);
    add({.heading = "positions", .key = "positions"}, &MixerRow::positions);
    milliseconds("forward ms", "forward_ms", &Spread::median);
    milliseconds("least ms", "least_ms", &Spread::min);
    milliseconds("", "most_ms", &Spread::max);
    add({.heading = "kept MB", .key = "kept_bytes", .format = "{:.3f}", .factor = 1e-6}, &MixerRow::bytes);
    return table;
  }
  add({.heading = "mixer", .key = "mixer", .left = true}, &MixerRow::name);
  add({.heading = "positions", .key = "positions"}, &MixerRow::positions);
  add({.key = "sequences"}, &MixerRow::sequences);
  milliseconds("ms/step", "ms.median", &Spread::median);
  milliseconds("", "ms.least", &Spread::min);
  milliseconds("", "ms.lower_quartile", &Spread::lower_quartile);
  milliseconds("", "ms.upper_quartile", &Spread::upper_quartile);
  milliseconds("", "ms.most", &Spread::max);
  add({.heading = "spread", .format = "{:.1f}%"}, [](const MixerRow& row) { return 100 * half_spread(row.seconds); });
  add({.heading = "GFLOP", .key = "flops", .format = "{:.3f}", .factor = 1e-9}, &MixerRow::flops);
  add({.heading = "GFLOP/s", .format = "{:.1f}", .factor = 1e-9}, [](const MixerRow& row) { return row.flops / row.seconds.median; });
  add({.heading = "tensors MB", .key = "tensor_bytes", .format = "{:.1f}", .factor = 1e-6}, &MixerRow::bytes);
  add({.heading = "process MB", .key = "process_bytes", .format = "{:.1f}", .factor = 1e-6}, &MixerRow::process_bytes);
  add({.key = "parameters"}, &MixerRow::parameters);
  return table;
}

// A curve for each mixer, or scale.
Chart chart_of(const BenchOptions& options, std::vector<MixerRow> rows) {
  Chart chart{.log_x = true, .log_y = true, .whole_x = true};
  chart.x_name = options.is_layer() ? "tokens of a sequence" : "positions of a sequence";
  chart.panels = {{options.is_layer() ? "time of a forward" : "time of a step", "ms, median"},
      {options.is_layer() ? "memory kept for the backward" : "peak memory of tensors", "MB"}};
  std::stable_sort(rows.begin(), rows.end(), [](const MixerRow& a, const MixerRow& b) { return a.length < b.length; });
  std::map<std::string, std::vector<std::vector<Point>>> points;
  for (const MixerRow& row : rows) {
    const auto length = static_cast<double>(row.length);
    points[row.name].resize(2);
    points[row.name][0].push_back({length, row.seconds.median * 1e3});
    points[row.name][1].push_back({length, static_cast<double>(row.bytes) * 1e-6});
  }
  for (const MixerRow& row : rows)  // in their order
    if (const auto curves = points.extract(row.name)) add_curves(chart, row.name, curves.mapped());
  return chart;
}

}  // namespace

std::vector<MixerRow> measure(const BenchOptions& options) {
  check(options);
  const std::vector<int64_t> scales = options.is_layer() ? options.scales : std::vector<int64_t>{1};
  int64_t done = 0;
  Progress progress(
      {.steps = std::ssize(options.lengths) * std::ssize(options.mixers) * std::ssize(scales) * (2 + options.rounds), .out = stderr});
  const auto note = [&](const MixerRow& row) { progress.update(++done, 0, fmt::format("{}, {} tokens", row.name, row.length)); };
  std::vector<MixerRow> rows;
  for (const int64_t length : options.lengths) {
    std::vector<TimedMixer> timed;
    for (const MixerKind mixer : options.mixers)
      for (const int64_t scale : scales) {
        if (scale > length) continue;
        timed.push_back(timed_mixer(options, mixer, length, scale));
        note(timed.back().row);
      }
    for (int64_t round = -1; round < options.rounds; ++round)  // the first one is not counted: mixers take memory over from each other
      for (TimedMixer& each : timed) {
        const double started = seconds_now();
        if (options.is_layer()) each.step.forward();
        else each.step();
        if (round >= 0) each.seconds.push_back(seconds_now() - started);
        note(each.row);
      }
    for (TimedMixer& each : timed) {
      each.row.seconds = spread_of(each.seconds);
      rows.push_back(each.row);
    }
  }
  return rows;
}

Report report_of(const BenchOptions& options, const std::vector<MixerRow>& rows) {
  Report report{.title = described(options), .table = table_of(options, rows)};
  report.add(chart_of(options, rows));
  if (options.is_layer()) {
    report.json = {{"layer", report.title}, {"rounds", options.rounds}, {"rows", json_of(report.table)}};
    return report;
  }
  const StepSize& size = options.size;
  report.notes = busy_note(rows);
  report.json = {
      {"settings", {{"device", name_of(size.device)}, {"dtype", name_of(size.dtype)}, {"width", size.width},
                       {"layers", size.alone ? 1 : size.layers}, {"heads", size.heads},
                       {"feed_forward", size.feed_forward.value_or(size.width)}, {"alone", size.alone}, {"rounds", options.rounds}}},
      {"steps", json_of(report.table)}};
  return report;
}

}  // namespace ricci::apps
