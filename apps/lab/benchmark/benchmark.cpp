#include "apps/lab/benchmark/benchmark.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <type_traits>

#include "apps/terminal/numbers.h"
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

// A step of a module. If the module has no weights and its input needs no gradient, the tape is empty.
template <class Module>
MixerStep step_of(const std::shared_ptr<Module>& module, const Tensor& x_bcd, const Tensor& dy_bcd, const StepSize& size) {
  const std::vector<Parameter*> parameters = parameters_of(*module);
  for (Parameter* p : parameters) {
    if (!is_dry_run()) draw(*p, 1);
    p->value = to(convert(p->value, size.dtype), size.device);
  }
  const auto run = [=] {
    {
      Tape tape;
      const Tensor y_bcd = (*module)(size.alone ? Arg(tape.watch(x_bcd)) : Arg(x_bcd), Tensor());
      if (tape.has(y_bcd)) tape.backward(y_bcd, dy_bcd);
    }
    for (Parameter* p : parameters) p->grad = {};
    synchronize(size.device);
  };
  return {run, parameters};
}

}  // namespace

MixerStep make_step(MixerKind mixer, const StepSize& size) {
  const Tensor x_bcd = random(1, size), dy_bcd = random(2, size);
  MixerStep step;
  Mixers::call_for(mixer, [&]<class M>() {
    typename M::Config config;
    if constexpr (requires { config.heads; }) config.heads = size.heads;
    MixerShape shape;  // causal, as in a language model
    shape.d = size.width;
    shape.ctx = size.positions;
    shape.init = {Preset::msa, size.alone ? 1 : size.layers};
    if constexpr (requires { check(config, shape); }) check(config, shape);
    else static_assert(std::is_same_v<typename M::Config, NoKeys>, "a mixer with keys checks them");
    BlockConfig block;
    block.norm = Norm::post;
    block.activation = Activation::relu;
    block.ff = size.feed_forward.value_or(size.width);
    const StackConfig<M> stack{shape, size.layers, PositionKind::none, block, config};
    if (size.alone) step = step_of(std::make_shared<M>(shape, config), x_bcd, dy_bcd, size);
    else step = step_of(std::make_shared<Stack<M>>(stack), x_bcd, dy_bcd, size);
  });
  return step;
}

// ---- Measurements
namespace {

// A mixer at one length, ready to be timed.
struct TimedMixer {
  MixerRow row;
  MixerStep step;
  std::vector<double> seconds = {};
};

int64_t process_bytes_of(MixerKind mixer, const StepSize& size) {
  const DryRun dry(Device::cpu);
  const MixerStep step = make_step(mixer, size);
  for (int i = 0; i < 2; ++i) step.run();  // the second step reuses memory
  return dry.arena_bytes() + program_bytes();
}

TimedMixer timed_mixer(const BenchOptions& options, MixerKind kind, int64_t length) {
  StepSize size = options.size;
  size.positions = length;
  size.sequences = options.sequences.value_or(options.tokens / length);
  const int64_t held_before = memory_use(size.device).current;
  TimedMixer all{{.name = name_of(kind), .positions = length, .sequences = size.sequences}, make_step(kind, size)};
  MixerRow& row = all.row;
  if (size.device == Device::cpu) row.process_bytes = process_bytes_of(kind, size);
  for (const Parameter* p : all.step.parameters) row.parameters += p->value.size();
  all.step.run();  // the first step allocates memory
  reset_peak(size.device);
  const trace::Counter counter;
  all.step.run();
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
  const std::string blocks = o.size.alone ? "one mixer" : counted(o.size.layers, "block");
  const std::string step = o.sequences ? fmt::format("sequences a step: {}", *o.sequences) : fmt::format("{} tokens a step", o.tokens);
  return fmt::format("{} of {}, {}, {}", blocks, o.size.width, step, place);
}

// Returns a note if the measured times of a step vary widely.
std::vector<std::string> busy_note(const std::vector<MixerRow>& rows) {
  const auto unsteady = std::count_if(rows.begin(), rows.end(), [](const MixerRow& row) { return half_spread(row.seconds) > 0.2; });
  double load = 0;
  if (unsteady == 0 || ::getloadavg(&load, 1) != 1) return {};
  return {fmt::format("the spread is above 20% in {} of {} rows (load {:.1f} on {} processors): compare with care", unsteady, rows.size(),
      load, available_processors())};
}

ResultTable table_of(const std::vector<MixerRow>& rows) {
  ResultTable table;
  const auto add = [&](Column column, const auto& value) { table.add(std::move(column), rows, value); };
  const auto milliseconds = [&](const char* heading, const char* key, double Spread::*part) {
    add({.heading = heading, .key = key, .format = "{:.3f}"}, [part](const MixerRow& row) { return row.seconds.*part * 1e3; });
  };
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
  add({.heading = "tensors", .key = "tensor_bytes", .format = "bytes"}, &MixerRow::bytes);
  add({.heading = "process", .key = "process_bytes", .format = "bytes"}, &MixerRow::process_bytes);
  add({.key = "parameters"}, &MixerRow::parameters);
  return table;
}

// A curve for each mixer.
Chart chart_of(std::vector<MixerRow> rows) {
  Chart chart{.x_name = "positions of a sequence", .log_x = true, .log_y = true, .whole_x = true};
  chart.panels = {{"time of a step", "ms, median"}, {"peak memory of tensors", "MiB"}};
  std::stable_sort(rows.begin(), rows.end(), [](const MixerRow& a, const MixerRow& b) { return a.positions < b.positions; });
  std::map<std::string, std::vector<std::vector<Point>>> points;
  for (const MixerRow& row : rows) {
    const auto length = static_cast<double>(row.positions);
    points[row.name].resize(2);
    points[row.name][0].push_back({length, row.seconds.median * 1e3});
    points[row.name][1].push_back({length, static_cast<double>(row.bytes) / kMebibyte});
  }
  for (const MixerRow& row : rows)  // in row order
    if (const auto curves = points.extract(row.name)) add_curves(chart, row.name, curves.mapped());
  return chart;
}

}  // namespace

std::vector<MixerRow> measure(const BenchOptions& options) {
  check(options);
  int64_t done = 0;
  Progress progress({.steps = std::ssize(options.lengths) * std::ssize(options.mixers) * (2 + options.rounds), .out = stderr});
  const auto note = [&](const MixerRow& row) { progress.update(++done, 0, fmt::format("{}, {} tokens", row.name, row.positions)); };
  std::vector<MixerRow> rows;
  for (const int64_t length : options.lengths) {
    std::vector<TimedMixer> timed;
    for (const MixerKind mixer : options.mixers) {
      timed.push_back(timed_mixer(options, mixer, length));
      note(timed.back().row);
    }
    for (int64_t round = -1; round < options.rounds; ++round)  // the first round is not timed: mixers reuse each other's memory
      for (TimedMixer& each : timed) {
        const double started = seconds_now();
        each.step.run();
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
  Report report{.title = described(options), .table = table_of(rows)};
  report.add(chart_of(rows));
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
