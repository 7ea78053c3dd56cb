// The ladders of ops: the time of each rung, from the definition to the fast kernel, at one size, next to the least possible time at the
// device's measured peaks (its floor). The last lines of the ops' headers (ops/attention/attention.h, cuda/gemm/gemm.h, ...) list the rungs
// and their gains.
//   ricci-bench-rungs [ladder ...] [--tokens 2048] [--width 256] [--heads 4] [--rounds 5] [--device cpu] [--threads 1]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "apps/run/options.h"
#include "apps/terminal/table.h"
#include "autograd/recording.h"
#include "core/choice.h"
#include "core/cpu/available.h"
#include "core/cpu/parallel.h"
#include "cuda/device/device.h"
#include "cuda/gemm/backends.h"
#include "cuda/peaks.h"
#include "ops/attention/attention.h"
#include "ops/attention/flash/flash.h"
#include "ops/attention/kernels.h"
#include "ops/elements/arithmetic.h"
#include "ops/first_rungs.h"
#include "ops/rows/layer_norm.h"
#include "ops/shapes/shape_ops.h"
#include "ops/shift_and_sum/shift_and_sum.h"

using namespace ricci;

namespace {

enum class LadderKind : uint8_t { attention, gemm, gemm_row, shift_and_sum, layer_norm };
constexpr auto choices(LadderKind) { return std::array{"attention", "gemm", "gemm_row", "shift_and_sum", "layer_norm"}; }

struct Options {
  std::vector<std::string> ladders;  // all if empty
  int64_t tokens = 2048, width = 256, heads = 4;
  int64_t rounds = 5;  // the shortest time is reported
  std::string place = "cpu";
  Device device = Device::cpu;
};

struct Rung {
  std::string file;
  Dtype dtype;
  std::function<void()> run;  // forward, with random inputs
  double seconds = 0;         // the shortest
};

// The rungs for this machine, in order, ready to run.
struct Ladder {
  LadderKind kind;
  std::string size;           // in words
  double flops = 0, numbers;  // the work of the op: the elements to read and write
  std::vector<Rung> rungs = {};
};

constexpr int64_t kSequences = 16;  // for memory-bound ops: their tensors must exceed the caches
constexpr auto kFirst = "ops/first_rungs.cpp";

// Random numbers on the device of the ladder, or on the CPU in f64, for the definitions.
Tensor random(const Options& o, const Shape& shape, uint64_t seed, Dtype dtype) {
  return randn(shape, seed, dtype, dtype == Dtype::f64 ? Device::cpu : o.device);
}

double real(int64_t number) { return static_cast<double>(number); }

std::string bf16_rung_on_gpu(const Options& o, const std::array<Tensor, 3>& x) {
  using namespace attention_kernels;
  const ColumnSlice q{x[0]}, k{x[1]}, v{x[2]};
  const Checked checked = attention_kernels::check("attention", q, k, v, Visibility::causal(), {.heads = o.heads});
  switch (gpu_path(checked.problem, {q, k, v, q})) {
    case GpuPath::flash:
      return std::string("ops/attention/flash/") + (wgmma_takes(checked.problem, o.device) ? "wgmma/" : "") + "forward.cu";
    case GpuPath::padded: return "ops/attention/flash/padded.cpp";
    case GpuPath::blocks: break;
  }
  return "ops/attention/gpu/forward.cu";
}

Ladder attention_ladder(const Options& o) {
  Ladder ladder{LadderKind::attention, fmt::format("{} queries and keys, causal, width {}, heads: {}", o.tokens, o.width, o.heads),
      2 * real(o.tokens * (o.tokens + 1)) * real(o.width), 4 * real(o.tokens * o.width)};
  const auto inputs = [&](Dtype dtype) {
    std::array<Tensor, 3> x;
    for (uint64_t i = 0; i < 3; ++i) x[i] = random(o, {1, o.tokens, o.width}, i + 1, dtype);
    return x;
  };
  const auto fused = [&](Dtype dtype) {
    return [x = inputs(dtype), heads = o.heads] {
      attention(ColumnSlice{x[0]}, ColumnSlice{x[1]}, ColumnSlice{x[2]}, Visibility::causal(), {.heads = heads});
    };
  };
  ladder.rungs.push_back({"ops/attention/definition.cpp", Dtype::f64, [x = inputs(Dtype::f64), heads = o.heads, tokens = o.tokens] {
                            const int64_t width = x[0].shape()[2] / heads;  // one head after the other, each with the first columns
                            const auto head = [&](const Tensor& t) { return slice(t, 2, 0, width).reshaped({tokens, width}); };
                            for (int64_t n = 0; n < heads; ++n)
                              naive_attention(head(x[0]), head(x[1]), head(x[2]), Visibility::causal(), 1 / std::sqrt(real(width)));
                          }});
  ladder.rungs.push_back({kFirst, Dtype::f32,
      [x = inputs(Dtype::f32), heads = o.heads] { first_rungs::attention(x[0], x[1], x[2], Visibility::causal(), heads); }});
  if (o.device == Device::cpu) {
    ladder.rungs.push_back({"ops/attention/cpu/forward.cpp", Dtype::f32, fused(Dtype::f32)});
    return ladder;
  }
  ladder.rungs.push_back({"ops/attention/gpu/forward.cu", Dtype::f32, fused(Dtype::f32)});
  ladder.rungs.push_back({bf16_rung_on_gpu(o, inputs(Dtype::bf16)), Dtype::bf16, fused(Dtype::bf16)});
  return ladder;
}

// c_mn = a_mk b_kn, all of them in rows.
struct Product {
  Tensor a_mk, b_kn, c_mn;
  Product(const Options& o, int64_t m, Dtype dtype)
      : a_mk(random(o, {m, o.width}, 1, dtype)), b_kn(random(o, {o.width, 4 * o.width}, 2, dtype)), c_mn(like(a_mk, {m, 4 * o.width})) {}
  Gemm gemm() const {
    const int64_t m = a_mk.shape()[0], k = a_mk.shape()[1], n = b_kn.shape()[1];
    return {.device = a_mk.device(),
        .dtype = a_mk.dtype(),
        .batch = 1,
        .m = m,
        .n = n,
        .k = k,
        .a = a_mk.raw(),
        .b = b_kn.raw(),
        .a_at = {k, 1, 0},
        .b_at = m == 1 ? MatrixAt{1, k, 0} : MatrixAt{n, 1, 0},  // one row times weights [n k]
        .c = c_mn.raw(),
        .c_at = {n, 1, 0}};
  }
};

Ladder gemm_ladder(const Options& o, LadderKind kind) {
  const int64_t m = kind == LadderKind::gemm ? o.tokens : 1, n = 4 * o.width, k = o.width;
  Ladder ladder{kind, fmt::format("[{} {}] times [{} {}]", m, k, k, n), 2 * real(m * n) * real(k), real(m * k + k * n + m * n)};
  const auto add = [&](const char* file, Dtype dtype, auto* multiply) {
    const Product product(o, m, dtype);
    if constexpr (std::is_same_v<decltype(multiply(product.gemm())), bool>)
      if (!multiply(product.gemm())) return;
    ladder.rungs.push_back({file, dtype, [product, multiply] { multiply(product.gemm()); }});
  };
  ladder.rungs.push_back({kFirst, Dtype::f64, [p = Product(o, m, Dtype::f64)] { first_rungs::matrix_product(p.a_mk, p.b_kn); }});
  if (o.device != Device::cpu) {
    add("cuda/gemm/tiled.cu", Dtype::f32, gemm_tiled);
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
      if (o.device == Device::cuda) add("cuda/toolkit/cublas.cpp", dtype, gemm);
    return ladder;
  }
  add("cuda/gemm/blocked.h", Dtype::f32, gemm_blocked);
  add("cuda/gemm/few_rows.cpp", Dtype::f32, gemm_few_rows);
  return ladder;
}

Ladder shift_and_sum_ladder(const Options& o) {
  int64_t levels = 0, pairs = 0;  // pairs: of a position and an added one
  for (int64_t shift = 1; shift < o.tokens || levels == 0; shift *= 2) {
    pairs += std::max<int64_t>(o.tokens - shift, 0);
    ++levels;
  }
  const int64_t x = o.heads * levels;
  Ladder ladder{LadderKind::shift_and_sum,
      fmt::format("{} sequences of {}, width {}, heads: {}, levels: {}", kSequences, o.tokens, o.width, o.heads, levels),
      2 * real(kSequences * pairs) * real(o.width), real(kSequences * o.tokens) * real(2 * o.width + x)};
  const auto add = [&](const char* file, Dtype dtype, auto op) {
    const Tensor v_bcd = random(o, {kSequences, o.tokens, o.width}, 1, dtype), coef_bcx = random(o, {kSequences, o.tokens, x}, 2, dtype);
    ladder.rungs.push_back({file, dtype, [v_bcd, coef_bcx, op, heads = o.heads] { op(v_bcd, coef_bcx, heads); }});
  };
  const auto fused = [](auto* op) { return [op](const Tensor& v, const Tensor& coef, int64_t heads) { op(v, coef, {.heads = heads}); }; };
  add("ops/shift_and_sum/definition.cpp", Dtype::f32, fused(naive_shift_and_sum));
  add(kFirst, Dtype::f64, first_rungs::shift_and_sum);
  add(o.device == Device::cpu ? "ops/shift_and_sum/cpu.cpp" : "ops/shift_and_sum/gpu/forward.cu", Dtype::f32, fused(shift_and_sum));
  return ladder;
}

Ladder layer_norm_ladder(const Options& o) {
  const Shape rows{kSequences * o.tokens, o.width};
  Ladder ladder{LadderKind::layer_norm, fmt::format("x + branch and its norm, {} rows of {}", rows[0], rows[1]), 0, 4 * real(rows.size())};
  const auto add = [&](const char* file, Dtype dtype, auto op) {
    const Tensor x = random(o, rows, 1, dtype), branch = random(o, rows, 2, dtype), gain = random(o, {o.width}, 3, dtype);
    ladder.rungs.push_back({file, dtype, [=] { op(x, branch, gain, gain); }});
  };
  const auto fused = [](const Tensor& x, const Tensor& branch, const Tensor& gain, const Tensor& bias) {
    residual_layer_norm(x, branch, gain, bias);
  };
  add(kFirst, Dtype::f32, [](const Tensor& x, const Tensor& branch, const Tensor& gain, const Tensor& bias) {
    first_rungs::layer_norm(x + branch, gain, bias);
  });
  add("ops/rows/layer_norm.cu", Dtype::f32, fused);
  if (o.device != Device::cpu) add("ops/rows/layer_norm_pieces.cu", Dtype::bf16, fused);
  return ladder;
}

Ladder ladder_of(LadderKind kind, const Options& options) {
  switch (kind) {
    case LadderKind::attention: return attention_ladder(options);
    case LadderKind::shift_and_sum: return shift_and_sum_ladder(options);
    case LadderKind::layer_norm: return layer_norm_ladder(options);
    default: return gemm_ladder(options, kind);
  }
}

// ---- Measurements

// The rungs take turns, once per round.
void measure(Ladder& ladder, const Options& options) {
  for (int64_t round = -1; round < options.rounds; ++round)  // the first round is not measured: it allocates memory
    for (Rung& rung : ladder.rungs) {
      const double started = seconds_now();
      rung.run();
      synchronize(options.device);
      const double seconds = seconds_now() - started;
      if (round >= 0) rung.seconds = round == 0 ? seconds : std::min(rung.seconds, seconds);
    }
  for (Rung& rung : ladder.rungs) rung.run = {};  // and the memory of its inputs
}

// The peaks of each dtype. On a CPU, memory has one speed for all dtypes: the best measurement.
std::map<Dtype, Peaks> peaks_of(const std::vector<Ladder>& ladders, Device device) {
  std::map<Dtype, Peaks> all;
  double bandwidth = 0;
  for (const Ladder& ladder : ladders)
    for (const Rung& rung : ladder.rungs) {
      if (!all.contains(rung.dtype)) all[rung.dtype] = measured_peaks(rung.dtype == Dtype::f64 ? Device::cpu : device, rung.dtype);
      bandwidth = std::max(bandwidth, all[rung.dtype].bytes);
    }
  for (auto& [dtype, peaks] : all)
    if (device == Device::cpu) peaks.bytes = bandwidth;
  return all;
}

apps::ResultTable table_of(const Ladder& ladder, const std::map<Dtype, Peaks>& all_peaks) {
  apps::ResultTable table{{{.heading = "rung", .left = true}, {.heading = "dtype", .left = true}, {.heading = "ms", .format = "{:.3f}"},
      {.heading = "gain", .format = "{:.2f}", .missing = ""}, {.heading = "floor ms", .format = "{:.3f}"},
      {.heading = "x floor", .format = "{:.2f}"}}};
  double before = 0;
  for (const Rung& rung : ladder.rungs) {
    const Peaks& peaks = all_peaks.at(rung.dtype);
    const double floor = std::max(ladder.flops / peaks.flops, ladder.numbers * real(size_of(rung.dtype)) / peaks.bytes);
    const Json gain = before > 0 ? Json(before / rung.seconds) : Json();
    table.add_row({rung.file, name_of(rung.dtype), rung.seconds * 1e3, gain, floor * 1e3, rung.seconds / floor});
    before = rung.seconds;
  }
  return table;
}

int run(Options& options) {
  options.device = parse_device(options.place.c_str());
  require(options.device);
  if (options.width % options.heads) fail("--heads: {} does not divide the width {}", {options.heads, options.width});
  const NoTape no_tape;
  std::vector<Ladder> ladders;
  for (const char* const name : choices(LadderKind())) {
    const bool is_asked = std::find(options.ladders.begin(), options.ladders.end(), name) != options.ladders.end();
    if (!options.ladders.empty() && !is_asked) continue;
    ladders.push_back(ladder_of(choice_of<LadderKind>("ladder", name), options));
    measure(ladders.back(), options);
  }
  const std::map<Dtype, Peaks> all_peaks = peaks_of(ladders, options.device);
  for (const Ladder& ladder : ladders)
    apps::print(fmt::format("{}: {}\n{}\n", name_of(ladder.kind), ladder.size, text_of(table_of(ladder, all_peaks))));
  std::string note = fmt::format("threads: {}; measured peaks", thread_count());
  for (const auto& [dtype, peaks] : all_peaks)
    note += fmt::format("; {}: {:.1f} GFLOP/s, {:.1f} GB/s", name_of(dtype), peaks.flops * 1e-9, peaks.bytes * 1e-9);
  std::fputs(apps::wrapped(note, 2).c_str(), stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return apps::run_app(
      argc, argv, {"ricci-bench-rungs", "The times of the rungs of ops, from the definition to the fast kernel."},
      [&](CLI::App& app) {
        app.add_option("ladders", options.ladders, list_of<LadderKind>() + "; all if none is given")->check([](const std::string& name) {
          choice_of<LadderKind>("ladder", name);
          return "";
        });
        app.add_option("--tokens", options.tokens, "Tokens of a sequence")->check(apps::at_least_one);
        app.add_option("--width", options.width, "Width")->check(apps::at_least_one);
        app.add_option("--heads", options.heads, "Heads")->check(apps::at_least_one);
        app.add_option("--rounds", options.rounds, "Times that each rung is measured; the shortest counts")->check(apps::at_least_one);
        app.add_option("--device", options.place, list_of<Device>());
        apps::add_threads_option(app);
      },
      [&] { return run(options); });
}
