// The report of ricci bench: quartiles, tables and charts of known numbers, and the work of a step by hand.
#include "apps/lab/benchmark/benchmark.h"

#include <doctest/doctest.h>

#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

BenchOptions small() {
  BenchOptions options;
  for (const char* const name : choices(MixerKind())) options.mixers.push_back(choice_of<MixerKind>("mixer", name));
  options.lengths = {4}, options.sequences = 1, options.rounds = 2;
  options.size.width = 8, options.size.heads = 2, options.size.layers = 1, options.size.alone = true;
  return options;
}

const MixerRow& row_of(const std::vector<MixerRow>& rows, const std::string& name) {
  for (const MixerRow& row : rows)
    if (row.name == name) return row;
  FAIL("no row of " << name);
  return rows[0];
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

// 4 positions of width 8, 2 heads. A map of 8 to n needs 2 * 4 * 8 n FLOPs forward and twice that backward. Attention has
// 1 + 2 + 3 + 4 = 10 pairs: 2 products of 2 * 10 * 8 forward and 5 backward. Shift-and-sum adds 3 + 2 rows: 2 * 5 * 8 forward, three times
// that backward. A metric is multiplied with p in 2 * 4 * 8 * 4, and twice that backward.
TEST_CASE("bench: FLOPs and parameters of mixers, counted by hand") {
  const std::vector<MixerRow> rows = measure(small());
  const double attention = 7 * 2 * 10 * 8, of_one = 3 * 2 * 4 * 8;  // of_one: a map to one number
  CHECK(row_of(rows, "sdp").flops == of_one * (24 + 8) + attention);
  CHECK(row_of(rows, "p_only").flops == of_one * 16 + attention);
  CHECK(row_of(rows, "metric").flops == of_one * 16 + attention + 3 * 2 * 4 * 8 * 4);
  CHECK(row_of(rows, "dispatcher").flops == of_one * (8 + 2 * 2 + 8) + 4 * 2 * 5 * 8);
  CHECK(row_of(rows, "avgpool").flops == 0);
  CHECK(row_of(rows, "identity").flops == 0);
  CHECK(row_of(rows, "sdp").parameters == 4 * 64 + 4 * 8);
  CHECK(row_of(rows, "dispatcher").parameters == 2 * 64 + 4 * 8);
  for (const MixerRow& row : rows) {
    CHECK(row.seconds.median > 0);
    CHECK(row.bytes >= 2 * 4 * 8 * 4);  // the input and the gradient of the output
    CHECK(row.process_bytes.value() > row.bytes);
  }
  // Attention grows with the square of the positions, the maps do not.
  BenchOptions options = small();
  options.lengths = {4, 8}, options.sequences.reset(), options.tokens = 8;
  const std::vector<MixerRow> both = measure(options);
  CHECK(both.size() == 2 * options.mixers.size());
  CHECK(both.front().sequences == 2);
  CHECK(both.back().sequences == 1);
  CHECK(both[9].flops - both[0].flops == 7 * 2 * (36 - 20) * 8);
}

TEST_CASE("bench: a GPU row has no memory of a process") {
  BenchOptions options = small();
  options.mixers = {kind_of<Sdp>};
  options.size.device = Device::cuda_emulated;
  CHECK(!measure(options).at(0).process_bytes);
}

TEST_CASE("bench: tables, JSON and charts of known numbers") {
  const BenchOptions options = small();
  const std::vector<MixerRow> rows = {{"sdp", 4, 2, 10, {1e-3, 1.5e-3, 2e-3, 3.5e-3, 4e-3}, 6e9, 5'000'000, 7'000'000},
      {"metric", 4, 2, 20, {1e-3, 1e-3, 1e-3, 1e-3, 1e-3}, 0, 1'000'000, {}}};
  const Report report = report_of(options, rows);
  const std::string text = text_of(report);
  const size_t note = text.find("\nthe spread is above 20% in 1 of 2 rows (load ");
  REQUIRE(note != text.npos);
  CHECK(text.ends_with("compare with\n  care"));
  CHECK(text.substr(0, note) == "one mixer of 8, sequences a step: 1, f32 on cpu\n"
                                "mixer   positions  ms/step  spread  GFLOP  GFLOP/s    tensors  process\n"
                                "sdp             4    2.000   50.0%  6.000   3000.0    4.8 MiB  6.7 MiB\n"
                                "metric          4    1.000    0.0%  0.000      0.0  976.6 KiB        -");
  const Json json = Json::parse(json_of(report));
  CHECK(json["settings"]["width"] == 8);
  CHECK(json["steps"][0]["ms"]["median"] == 2);
  CHECK(json["steps"][0]["parameters"] == 10);
  CHECK(!json["steps"][1].contains("process_bytes"));
  // Time and memory, each with a dot for each mixer, and its values under the pointer.
  REQUIRE(report.pictures.size() == 2);
  CHECK(contains(report.pictures[0].elements, "<title>sdp: 4, 2</title>"));
  CHECK(contains(report.pictures[1].elements, "<title>metric: 4, 0.95367</title>"));
  for (const Picture& picture : report.pictures) CHECK(contains(picture.elements, "logarithmic"));
}

TEST_CASE("bench: sizes that cannot be measured") {
  const auto refused = [](auto change) {
    BenchOptions options = small();
    options.sequences.reset(), options.tokens = 8;
    change(options);
    return error_of([&] { measure(options); });
  };
  CHECK(refused([](BenchOptions& o) { o.size.heads = 3; }) == "--heads: 3 does not divide the width 8");
  CHECK(refused([](BenchOptions& o) { o.lengths = {4, 3}; }) == "--lengths: 3 does not divide the 8 tokens of a step (--tokens)");
  CHECK(refused([](BenchOptions& o) { o.lengths = {16}; }) == "--lengths: 16 does not divide the 8 tokens of a step (--tokens)");
}
