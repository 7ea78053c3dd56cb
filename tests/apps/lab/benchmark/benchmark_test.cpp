// The report of ricci-bench: quartiles, floors, tables and charts of known numbers, and the work of a step counted by hand.
#include <doctest/doctest.h>

#include "apps/lab/benchmark/measure.h"
#include "apps/lab/benchmark/rungs.h"
#include "apps/lab/drawing/svg.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

Benchmark measured(BenchOptions options) {
  std::FILE* const nowhere = std::fopen("/dev/null", "w");
  Benchmark bench;
  {
    Progress progress({.steps = steps_of(options), .out = nowhere, .terminal = false});
    bench = measure(options, progress);
  }
  std::fclose(nowhere);
  return bench;
}

BenchOptions small() {
  BenchOptions options;
  options.lengths = {4}, options.sequences = 1, options.rounds = 2;
  options.size.width = 8, options.size.heads = 2, options.size.layers = 1, options.size.alone = true;
  for (size_t i = 0; i < choices(MixerKind()).size(); ++i) options.mixers.push_back(static_cast<MixerKind>(i));
  return options;
}

const MixerRow& row_of(const Benchmark& bench, const std::string& mixer) {
  for (const MixerRow& row : bench.rows)
    if (row.mixer == mixer) return row;
  FAIL("no row of " << mixer);
  return bench.rows[0];
}

}  // namespace

TEST_CASE("bench: quartiles lie between neighbours in proportion") {
  const Spread s = spread_of({5, 1, 2, 4});
  CHECK(s.min == 1);
  CHECK(s.lower_quartile == 1.75);
  CHECK(s.median == 3);
  CHECK(s.upper_quartile == 4.25);
  CHECK(s.max == 5);
  CHECK(spread_of({7}).upper_quartile == 7);
  CHECK(error_of([] { spread_of({}); }) == "bench: no step was timed");
}

// 4 positions of width 8, 2 heads: a map of 8 to n takes 2 * 4 * 8 n FLOPs forward and twice as many backward; attention sees
// 1 + 2 + 3 + 4 = 10 pairs, 2 products of 2 * 10 * 8 forward and 5 backward; of the shift-and-sum 3 + 2 rows add up, 2 * 5 * 8, and three
// times as many backward; a metric is multiplied with p in 2 * 4 * 8 * 4, and twice backward.
TEST_CASE("bench: FLOPs and parameters of mixers, counted by hand") {
  const Benchmark bench = measured(small());
  const double attention = 7 * 2 * 10 * 8, of_one = 3 * 2 * 4 * 8;  // of_one: a map to one number
  CHECK(row_of(bench, "sdp").flops == of_one * (24 + 8) + attention);
  CHECK(row_of(bench, "p_only").flops == of_one * 16 + attention);
  CHECK(row_of(bench, "metric").flops == of_one * 16 + attention + 3 * 2 * 4 * 8 * 4);
  CHECK(row_of(bench, "dispatcher").flops == of_one * (8 + 2 * 2 + 8) + 4 * 2 * 5 * 8);
  CHECK(row_of(bench, "avgpool").flops == 0);
  CHECK(row_of(bench, "identity").flops == 0);
  CHECK(row_of(bench, "sdp").parameters == 4 * 64 + 4 * 8);
  CHECK(row_of(bench, "dispatcher").parameters == 2 * 64 + 4 * 8);
  for (const MixerRow& row : bench.rows) {
    CHECK(row.seconds.median > 0);
    CHECK(row.tensor_bytes >= 2 * 4 * 8 * 4);  // the input and the gradient of the output
    CHECK(row.process_bytes.value() > row.tensor_bytes);
  }
  // Attention grows with the square of the positions, the maps do not.
  BenchOptions options = small();
  options.lengths = {4, 8}, options.sequences.reset(), options.tokens = 8;
  const Benchmark both = measured(options);
  CHECK(both.rows.size() == 2 * options.mixers.size());
  CHECK(both.rows.front().sequences == 2);
  CHECK(both.rows.back().sequences == 1);
  CHECK(both.rows[9].flops - both.rows[0].flops == 7 * 2 * (36 - 20) * 8);
}

TEST_CASE("bench: the roofline has the ops of a step and their floors, on the emulated GPU too") {
  for (Device device : {Device::cpu, Device::cuda_emulated}) {
    BenchOptions options = small();
    options.mixers = {kind_of<Metric>, kind_of<Dispatcher>};
    options.roofline = true;
    options.size.alone = false;
    options.size.device = device;
    const Benchmark bench = measured(options);
    REQUIRE(bench.peaks);
    CHECK(bench.peaks->flops > 0);
    CHECK(bench.peaks->bytes > 0);
    double flops = 0;
    bool shifts = false;
    for (const OpRow& op : bench.ops) {
      CHECK(op.seconds > 0);
      flops += op.mixer == std::string("metric") ? op.flops : 0;
      shifts |= op.mixer == std::string("dispatcher") && op.op == "shift_and_sum backward";
    }
    CHECK(flops == static_cast<double>(options.rounds) * bench.rows[0].flops);
    CHECK(shifts);
    CHECK(bench.rows[0].process_bytes.has_value() == (device == Device::cpu));
    CHECK(text_of(roofline_of(bench)).find("\nmetric      attention backward") != std::string::npos);
  }
}

TEST_CASE("bench: tables, JSON and charts of known numbers") {
  Benchmark bench;
  bench.options = small();
  bench.options.mixers = {kind_of<Sdp>, kind_of<Metric>};
  bench.rows = {{"sdp", 4, 2, 10, {1e-3, 1.5e-3, 2e-3, 3.5e-3, 4e-3}, 6e9, 5'000'000, 7'000'000},
      {"metric", 4, 2, 20, {1e-3, 1e-3, 1e-3, 1e-3, 1e-3}, 0, 1'000'000, {}}};
  const std::string text = text_of(report_of(bench));
  const size_t note = text.find("\nthe spread is above 20% in 1 of 2 rows (load ");
  REQUIRE(note != text.npos);
  CHECK(text.ends_with("compare with\n  care"));
  CHECK(text.substr(0, note) == "one mixer of 8, sequences a step: 1, f32 on cpu\n"
                                "mixer   positions  ms/step  spread  GFLOP  GFLOP/s  tensors MB  process MB\n"
                                "sdp             4    2.000   50.0%  6.000   3000.0         5.0         7.0\n"
                                "metric          4    1.000    0.0%  0.000      0.0         1.0           -");
  Json json = Json::parse(json_of(report_of(bench)));
  CHECK(json["steps"][0]["ms"]["median"] == 2);
  CHECK(!json["steps"][1].contains("process_bytes"));
  CHECK(!json.contains("ops"));

  // At 100 FLOP/s and 10 byte/s the first op is bound by FLOPs: 2 s of the 4 it took; the second by bytes.
  bench.peaks = Peaks{100, 10};
  bench.options.rounds = 1;
  bench.ops = {{"sdp", "linear", 2, 4, 200, 10}, {"sdp", "relu", 1, 4, 0, 10}};
  CHECK(floor_of(bench.ops[0], *bench.peaks) == 2);
  CHECK(floor_of(bench.ops[1], *bench.peaks) == 1);
  CHECK(text_of(roofline_of(bench)) == "measured peaks: 0.0 GFLOP/s f32, memory 0.0 GB/s\n"
                                       "mixer  op            ms  share  GFLOP/s  GB/s  roof\n"
                                       "sdp    linear  4000.000  50.0%      0.0   0.0   50%\n"
                                       "sdp    relu    4000.000  50.0%            0.0   25%");
  const Chart roofs = *roofline_of(bench).chart;
  REQUIRE(roofs.panels[0].curves.size() == 2);  // an op without FLOPs has no place
  CHECK(roofs.panels[0].curves[0].points[0].x == 20);
  CHECK(roofs.panels[0].curves[1].points[1].x == 10);
  CHECK(roofs.panels[0].curves[1].points[1].y == doctest::Approx(1e-7));
  const Chart chart = *report_of(bench).chart;
  CHECK(chart.panels.size() == 3);
  CHECK(chart.panels[0].curves[0].points[0].y == 2);
  CHECK(chart.panels[1].curves.size() == 1);  // no work cannot be drawn on a logarithmic axis
  CHECK(count_of(to_svg(chart, Theme::light), "<path") == 5);
}

TEST_CASE("bench: a ladder of known times") {
  // 200 FLOPs and 10 numbers at 100 FLOP/s and 10 byte/s: 2 s for the FLOPs; the bytes take 8 s in f64 and 2 s in bf16.
  LadderTimes times;
  times.peaks = {{Dtype::f64, {100, 10}}, {Dtype::bf16, {50, 10}}};
  times.ladders = {{LadderKind::gemm_row, "small", 200, 10, {{"slow.cpp", Dtype::f64, {}, 32}, {"fast.cpp", Dtype::bf16, {}, 8}}}};
  const Ladder& ladder = times.ladders[0];
  CHECK(floor_of(ladder, ladder.rungs[0], times.peaks[Dtype::f64]) == 8);
  CHECK(floor_of(ladder, ladder.rungs[1], times.peaks[Dtype::bf16]) == 4);
  const std::string text = text_of(reports_of(times).at(0));
  CHECK(text.substr(0, text.find("\nthreads: ")) == "gemm_row: small\n"
                                                    "rung      dtype         ms  gain  floor ms  x floor\n"
                                                    "slow.cpp  f64    32000.000        8000.000     4.00\n"
                                                    "fast.cpp  bf16    8000.000  4.00  4000.000     2.00");
  CHECK(text.find("; measured peaks; f64: 0.0 GFLOP/s, 0.0 GB/s; bf16:") != text.npos);
  const Json json = json_of(times);
  CHECK(json["ladders"][0]["rungs"][1]["times_the_floor"] == 2);
  CHECK(!json["ladders"][0]["rungs"][0].contains("gain"));
  CHECK(json["peaks"]["bf16"]["flops_per_second"] == 50);
}

TEST_CASE("bench: what cannot be measured") {
  const auto refused = [](auto change) {
    BenchOptions options = small();
    options.sequences.reset(), options.tokens = 8;
    change(options);
    return error_of([&] { check(options); });
  };
  CHECK(refused([](BenchOptions& o) { o.size.heads = 3; }) == "--heads: 3 does not divide the width 8");
  CHECK(refused([](BenchOptions& o) { o.lengths = {4, 3}; }) == "--lengths: 3 does not divide the 8 tokens of a step (--tokens)");
  CHECK(refused([](BenchOptions& o) { o.lengths = {16}; }) == "--lengths: 16 does not divide the 8 tokens of a step (--tokens)");
  CHECK(refused([](BenchOptions& o) { o.size.width = 1 << 20; }) == "--width: 1048576, expected 524288 or less");
  CHECK(refused([](BenchOptions& o) { o.size.layers = 5000; }) == "--layers: 5000, expected 1024 or less");
}
