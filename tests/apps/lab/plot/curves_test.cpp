// Curves of runs: averages over steps, time of training, runs without a record.
#include "apps/lab/plot/curves.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "apps/lab/plot/records.h"
#include "apps/run/metrics/metrics.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

struct Measured {
  std::vector<Point> points;
  std::vector<double> steps;
};

// f at the steps of which a run keeps records.
template <class F> Measured measure(int first, int last, int every, const F& f) {
  Measured measured;
  for (int step = first; step <= last; step += every) measured.points.push_back({1.0 * step, f(step)}), measured.steps.push_back(step);
  return measured;
}

double at(const std::vector<Point>& points, double x) {
  for (const Point& point : points)
    if (point.x == x) return point.y;
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

TEST_CASE("curves: the moving average is the integral it claims to be") {
  const std::vector<Point> points = {{1, 8}, {3, 4}, {4, -2}, {9, 5}, {10, 1}};
  const std::vector<double> steps = {1, 3, 4, 9, 10};
  for (const double width : {1.0, 2.5, 5.0, 100.0}) {
    CAPTURE(width);
    const std::vector<Point> average = smoothed(points, steps, width);
    CHECK(average.front().y == 8);
    CHECK(average.back().y == 1);
    for (size_t n = 1; n + 1 < points.size(); ++n) {
      // The midpoint rule over 1000 pieces of each gap.
      const double half = std::min({width / 2, steps[n] - 1, 10 - steps[n]});
      double sum = 0, weight = 0;
      for (size_t i = 1; i < points.size(); ++i)
        for (int k = 0; k < 1000; ++k) {
          const double along = (k + 0.5) / 1000, gap = steps[i] - steps[i - 1], t = steps[i - 1] + along * gap;
          const double w = std::abs(t - steps[n]) <= half ? gap : 0;
          sum += w * (points[i - 1].y + along * (points[i].y - points[i - 1].y)), weight += w;
        }
      CHECK(average[n].y == doctest::Approx(sum / weight).epsilon(1e-2));
      CHECK(average[n].x == points[n].x);
    }
  }
}

TEST_CASE("curves: averages do not lag: a straight line stays itself up to its ends, and a parabola rises by h^2 / 3") {
  for (const int every : {1, 3, 10}) {
    CAPTURE(every);
    const auto [line, steps] = measure(1, 301, every, [](int step) { return 5 - 0.01 * step; });
    for (const double width : {2.0, 20.0, 77.0, 1e9}) {
      const std::vector<Point> average = smoothed(line, steps, width);
      for (size_t i = 0; i < line.size(); ++i) CHECK(average[i].y == doctest::Approx(line[i].y).epsilon(1e-12));
    }
  }
  const auto [parabola, steps] = measure(0, 400, 1, [](int step) { return 1.0 * step * step; });
  const std::vector<Point> average = smoothed(parabola, steps, 40);
  // Between two records the straight line is above the parabola, by 1/6 on average.
  for (const size_t i : {20u, 100u, 380u}) CHECK(average[i].y == doctest::Approx(parabola[i].y + 400 / 3.0 + 1 / 6.0).epsilon(1e-9));
  CHECK(average[5].y == doctest::Approx(25 + 25 / 3.0 + 1 / 6.0).epsilon(1e-9));
}

TEST_CASE("curves: the default average of a falling loss is what was measured, from the first record to the last") {
  // As the loss of a small model over 300 steps, with a record every 10.
  const auto [points, steps] = measure(1, 301, 10, [](int step) { return 2.4 + 1.8 * std::exp(-step / 40.0); });
  const std::vector<Point> average = smoothed(points, steps, 20);
  for (size_t i = 0; i < points.size(); ++i) CHECK(std::abs(average[i].y - points[i].y) < 0.025);
}

TEST_CASE("curves: a constant stays itself from the first record on, for any window") {
  const auto [points, steps] = measure(1, 500, 7, [](int) { return 3.25; });
  for (const double width : {1.0, 20.0, 1e4, 1e9})
    for (const Point& point : smoothed(points, steps, width)) CHECK(point.y == doctest::Approx(3.25).epsilon(1e-6));
}

TEST_CASE("curves: two equal runs with other log_every have the same average") {
  const auto line = [](int step) { return 5 - 0.01 * step; };
  const auto loss = [](int step) { return 1.5 + 3 * std::exp(-step / 90.0); };
  for (const double width : {5.0, 20.0, 100.0}) {
    CAPTURE(width);
    const auto average = [&](int every, const auto& f) {
      const auto [points, steps] = measure(1, 1501, every, f);
      return smoothed(points, steps, width);
    };
    for (const int every : {10, 50}) {
      CAPTURE(every);
      const auto each_line = average(1, line), some_line = average(every, line), each_loss = average(1, loss),
                 some_loss = average(every, loss);
      REQUIRE(some_loss.size() == static_cast<size_t>(1500 / every + 1));
      for (const Point& point : some_line) CHECK(point.y == doctest::Approx(at(each_line, point.x)).epsilon(1e-9));
      for (const Point& point : some_loss) CHECK(std::abs(point.y - at(each_loss, point.x)) < (every == 10 ? 0.005 : 0.1));
    }
  }
}

TEST_CASE("curves: noise is averaged, the more the wider the window") {
  std::mt19937 random(1);
  const auto [points, steps] = measure(1, 20'000, 1, [&](int) { return std::normal_distribution<double>()(random); });
  const auto deviation = [&points = points, &steps = steps](double width) {
    double squares = 0;
    const std::vector<Point> average = smoothed(points, steps, width);
    for (size_t i = 1000; i < average.size(); ++i) squares += average[i].y * average[i].y;
    return std::sqrt(squares / static_cast<double>(average.size() - 1000));
  };
  for (const double width : {10.0, 20.0, 50.0}) CHECK(deviation(width) == doctest::Approx(std::sqrt(1 / width)).epsilon(0.15));
}

TEST_CASE("curves: records of one step, and a file without steps, count as one step each") {
  const std::vector<Point> points = {{1, 1}, {1, 2}, {1, 6}};
  const std::vector<Point> same = smoothed(points, {7, 7, 7}, 3), next = smoothed(points, {7, 8, 9}, 3);
  for (size_t i = 0; i < 3; ++i) CHECK(same[i].y == next[i].y);
  const ScratchFolder folder;
  folder.write(
      "a/metrics.jsonl", "{\"tokens\":64,\"train_loss\":1}\n{\"tokens\":128,\"train_loss\":2}\n{\"tokens\":192,\"train_loss\":6}\n");
  const Chart chart = make_chart({read_records(folder / "a")}, {.x = "tokens", .smooth = 3});
  for (size_t i = 0; i < 3; ++i) CHECK(chart.panels[0].curves[0].points[i].y == doctest::Approx(next[i].y));
}

TEST_CASE("curves: a value that is a mark at the border does not enter the average") {
  const ScratchFolder folder;
  // Records every 10 steps, except at step `missing`; the value of step `odd` is far from all others.
  const auto write = [&](const std::string& name, int64_t odd, int64_t missing) {
    std::string text;
    for (int64_t step = 10; step <= 2000; step += 10) {
      const double loss = step == odd ? 512 : 1.6 + 0.2 * std::sin(static_cast<double>(step));
      if (step != missing) text += to_json({.step = step, .tokens = step, .train_loss = loss}) + "\n";
    }
    folder.write(name + "/metrics.jsonl", text);
    return read_records(folder / name);
  };
  const auto curve_of = [](const RunRecords& run, bool full_range) {
    return make_chart({run}, {.smooth = 50, .full_range = full_range}).panels[0].curves[0];
  };
  for (const int64_t odd : {10, 1000, 1990, 2000}) {
    CAPTURE(odd);
    const Curve with = curve_of(write("with", odd, 0), false), without = curve_of(write("without", 0, odd), false);
    REQUIRE(with.raw.size() == 200);
    CHECK(with.points.front().x == without.points.front().x);
    CHECK(with.points.back().x == without.points.back().x);
    for (const Point& point : without.points) CHECK(at(with.points, point.x) == doctest::Approx(point.y).epsilon(1e-12));
    for (size_t i = 0; i < with.points.size(); ++i) CHECK(with.points[i].x == with.raw[with.raw_before + i].x);
    CHECK(at(with.raw, static_cast<double>(odd)) == 512);
    CHECK(at(curve_of(write("with", odd, 0), true).points, static_cast<double>(odd)) > 20);
  }
}

TEST_CASE("curves: averages are bridged over several records, and are of all values where none is shown") {
  const Axis y{0, 10, false};
  const std::vector<double> steps = {1, 2, 4, 4, 9, 10};
  const Curve curve{.name = "a", .points = {{1, 5}, {2, 1}, {4, 99}, {4, -99}, {9, 8}, {10, 77}}, .steps = steps};
  const Curve average = averaged(curve, 3, y);
  // The straight line from 1 to 8 over gaps of 2, 1 (records of one step) and 5.
  const std::vector<Point> expected = smoothed({{1, 5}, {2, 1}, {4, 1 + 7 * 2 / 8.0}, {4, 1 + 7 * 3 / 8.0}, {9, 8}}, {1, 2, 4, 4, 9}, 3);
  REQUIRE(average.points.size() == 5);
  for (size_t i = 0; i < 5; ++i) CHECK(average.points[i].y == doctest::Approx(expected[i].y).epsilon(1e-12));
  CHECK(average.raw.size() == 6);
  CHECK(average.raw_before == 0);
  const Curve above = averaged(curve, 3, Axis{100, 200, false});
  const std::vector<Point> all = smoothed(curve.points, steps, 3);
  REQUIRE(above.points.size() == 6);
  for (size_t i = 0; i < 6; ++i) CHECK(above.points[i].y == all[i].y);
}

TEST_CASE("curves: the time of training has no pause, no evaluation and no late start") {
  const ScratchFolder folder;
  const auto write = [&](const std::string& name, int every, double pause) {
    std::string text;
    double now = 1.7e9;
    for (int64_t step = 1; step <= 40; ++step) {
      now += 2;                       // 2 seconds a step
      if (step % 20 == 0) now += 30;  // an evaluation
      if (step == 21) now += pause;
      if (step % every == 0)
        text += to_json({.step = step, .tokens = step * 64, .train_loss = 3.0, .tokens_per_s = 32.0, .time = now}) + "\n";
    }
    folder.write(name + "/metrics.jsonl", text);
    return read_records(folder / name);
  };
  const RunRecords through = write("through", 5, 0), paused = write("paused", 5, 9 * 3600), each = write("each", 1, 0);
  CHECK(training_seconds(through) == std::vector<double>{10, 20, 30, 40, 50, 60, 70, 80});
  CHECK(training_seconds(paused) == training_seconds(through));
  for (size_t i = 0; i < 8; ++i) CHECK(training_seconds(each)[5 * i + 4] == training_seconds(through)[i]);
  CHECK(make_chart({through, paused}, {.x = "time"}).x_name == "time of training in seconds");
}

TEST_CASE("curves: the time of training where a speed, tokens or all of them were not measured") {
  const auto seconds = [](const std::string& text) {
    const ScratchFolder folder;
    folder.write("a/metrics.jsonl", text);
    return training_seconds(read_records(folder / "a"));
  };
  // An evaluation that a pause put off has a record without a speed: the median is taken.
  CHECK(seconds(
            "{\"tokens\":100,\"tokens_per_s\":10}\n{\"tokens\":200,\"tokens_per_s\":0,\"time\":1e9}\n{\"tokens\":300,\"tokens_per_s\":50}\n"
            "{\"tokens\":400,\"tokens_per_s\":50}\n") == std::vector<double>{10, 12, 14, 16});
  const std::vector<double> gap =
      seconds("{\"tokens\":100,\"tokens_per_s\":10}\n{\"tokens\":null}\n{\"tokens\":300,\"tokens_per_s\":10}\n");
  CHECK(gap[0] == 10);
  CHECK(std::isnan(gap[1]));
  CHECK(gap[2] == 30);
  CHECK(seconds("{\"time\":1000}\n{\"time\":1060}\n") == std::vector<double>{0, 60});
  CHECK(contains(error_of([&] { seconds("{\"tokens\":100}\n"); }), "a/metrics.jsonl: no record has its time"));
}

TEST_CASE("curves: runs without a record are left out and named; an error only where none has one") {
  const ScratchFolder folder;
  folder.write("new/metrics.jsonl", "");
  folder.write("begun/metrics.jsonl", "{\"step\":1,\"tr");
  folder.write("weights/model.safetensors", "");
  for (const char* name : {"x/a", "y/a"}) folder.write(std::string(name) + "/metrics.jsonl", "{\"step\":1,\"train_loss\":2}\n");
  std::vector<std::string> skipped;
  const std::vector<std::string> paths = {folder / "new", folder / "x/a", folder / "begun", folder / "y/a", folder / "weights"};
  const std::vector<RunRecords> runs = read_all_records(paths, &skipped);
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].name == folder / "x/a");  // two runs of one name: the paths
  CHECK(runs[1].name == folder / "y/a");
  CHECK(skipped == std::vector<std::string>{folder / "new/metrics.jsonl" + ": holds no record yet",
                       folder / "begun/metrics.jsonl" + ": holds no record yet",
                       folder / "weights" + ": holds no metrics.jsonl, so no run has begun in it"});
  CHECK(error_of([&] { read_all_records({folder / "new"}); }) == folder / "new/metrics.jsonl" + ": holds no record yet");
  CHECK(error_of([&] { read_all_records({folder / "new", folder / "weights"}); }) == "none of 2 runs has a record yet");
  CHECK(error_of([&] { read_all_records({folder / "x/a", folder / "nowhere"}); }) == folder / "nowhere" + ": no such run");
}
