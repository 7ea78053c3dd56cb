// metrics.jsonl by its bytes and as parsed JSON; event files by their bytes, and through the tensorboard package.
#include "apps/run/metrics.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <vector>

#include "core/json.h"
#include "tests/data/files.h"
#include "tests/skip.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;

namespace {

// A record of that step, with a fixed time.
Metrics record(int64_t step, std::optional<double> lr = {}) {
  return {.step = step, .lr = lr, .time = 1700000000 + static_cast<double>(step)};
}
std::string line(int64_t step, std::optional<double> lr = {}) { return to_json(record(step, lr)) + "\n"; }

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += "0123456789abcdef"[byte >> 4 & 15], text += "0123456789abcdef"[byte & 15];
  return text;
}

std::vector<std::string> event_files(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (const std::string name = entry.path().filename(); name.starts_with("events")) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

struct Result {
  int code;
  std::string text;  // stdout and stderr
};
Result shell(const std::string& command) {
  FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe);
  std::string text;
  for (char block[256]; std::fgets(block, sizeof block, pipe);) text += block;
  return {::pclose(pipe), text};
}

// $RICCI_PYTHON or python3, quoted, if it has the tensorboard package, else empty.
std::string python_with_tensorboard() {
  const char* const given = std::getenv("RICCI_PYTHON");
  for (const std::string& python : {std::string(given ? given : ""), std::string("python3")})
    if (!python.empty() && shell("'" + python + "' -c 'import tensorboard'").code == 0) return "'" + python + "'";
  return "";
}

}  // namespace

TEST_CASE("metrics: all keys, in order, null where nothing was measured") {
  CHECK(
      to_json({.step = 3, .tokens = 2304}) ==
      R"({"step":3,"tokens":2304,"train_loss":null,"val_loss":null,"val_accuracy":null,"lr":null,"grad_norm":null,"tokens_per_s":null,"peak_bytes":null,"reserved_bytes":null,"ranks":null,"time":null})");
  CHECK(
      to_json({3, 2304, 1.5, 2.0, 0.75, 1e-3, 0.25, 15000.0, int64_t{1} << 40, int64_t{2} << 40, 4, 1700000000.125}) ==
      R"({"step":3,"tokens":2304,"train_loss":1.5,"val_loss":2,"val_accuracy":0.75,"lr":0.001,"grad_norm":0.25,"tokens_per_s":15000,"peak_bytes":1099511627776,"reserved_bytes":2199023255552,"ranks":4,"time":1700000000.125})");
}

TEST_CASE("metrics: norms of groups follow the other keys, and are read with their record") {
  const ScratchFolder folder;
  const Metrics metrics{.step = 3, .grad_norm = 2, .norms = {{"grad_norm.tok", 0.5}, {"weight_norm.blocks.0", 1.0 / 3}}};
  CHECK(to_json(metrics).ends_with(R"("ranks":null,"time":null,"grad_norm.tok":0.5,"weight_norm.blocks.0":0.3333333333333333})"));
  CHECK(to_json({.norms = {{"weight_norm.tok", std::numeric_limits<double>::infinity()}}}).ends_with(R"("weight_norm.tok":null})"));
  folder.write("metrics.jsonl", line(2) + to_json(metrics) + "\n" + line(4));
  CHECK(to_json(read_record(folder.path(), 3)) == to_json(metrics));
  CHECK(read_record(folder.path(), 4).norms.empty());
  CHECK(contains(record_event(metrics), "weight_norm.blocks.0"));
}

TEST_CASE("metrics: numbers read back to the same bits, and those that JSON cannot hold are null") {
  for (const double value : {0.1, 1.0 / 3, 1e-300, 5e-324, 1.7976931348623157e308, -0.0, 123456789.123456789, 1e22}) {
    const Json record = Json::parse(to_json({.step = 1, .train_loss = value}));
    CHECK(record["train_loss"].get<double>() == value);
  }
  const double inf = std::numeric_limits<double>::infinity();
  for (const double value : {std::nan(""), inf, -inf}) {
    const Json record = Json::parse(to_json({.step = 1, .train_loss = value, .val_loss = 2.5, .grad_norm = value}));
    CHECK(record["train_loss"].is_null());
    CHECK(record["grad_norm"].is_null());
    CHECK(record["val_loss"] == 2.5);
  }
}

TEST_CASE("metrics: records are there as soon as they are appended, and a run that goes on adds to them") {
  const ScratchFolder folder;
  const std::string path = folder / "metrics.jsonl";
  {
    MetricsFile file(folder.path(), 0);
    CHECK(read_file(path).empty());
    file.append(record(1));
    CHECK(read_file(path) == line(1));
    file.append(record(2, 0.5));
  }
  MetricsFile again(folder.path(), 2);
  again.append(record(3));
  CHECK(read_file(path) == line(1) + line(2, 0.5) + line(3));
}

TEST_CASE("metrics: records beyond the step at which a run continues are dropped") {
  const ScratchFolder folder;
  for (const int64_t step : {4, 3, 2, 1, 0}) {
    folder.write("metrics.jsonl", line(1) + line(2) + line(3));
    MetricsFile(folder.path(), step).append(record(9));
    std::string kept;
    for (int64_t i = 1; i <= std::min<int64_t>(step, 3); ++i) kept += line(i);
    CHECK(read_file(folder / "metrics.jsonl") == kept + line(9));
  }
}

TEST_CASE("metrics: lines that a crash cut off or filled with zeros, and records that no training wrote, are removed") {
  const ScratchFolder folder;
  for (const std::string& broken : {std::string(R"({"step":2,"tok)"), std::string(R"({"step":2})"), std::string(20, '\0'),
           std::string(20, '\0') + "\n", std::string("7\n"), std::string("{}\n"), std::string("[1]\n"), std::string("{\"step\":\"2\"}\n"),
           std::string("\n"), std::string("{\"step\":18446744073709551615}\n"), std::string("{\"step\":1,\"a\":[[[]]]}\n"),
           std::string(200'000, '[') + "\n", "{\"step\":" + std::string(100'000, '{') + "\n"}) {
    for (const std::string& before : {std::string(), line(1), line(1) + line(2)}) {
      folder.write("metrics.jsonl", before + broken);
      MetricsFile(folder.path(), 5).append(record(6));
      CHECK(read_file(folder / "metrics.jsonl") == before + line(6));
    }
  }
  folder.write("metrics.jsonl", line(1) + "{\"step\":\n" + line(2));
  MetricsFile(folder.path(), 5);
  CHECK(read_file(folder / "metrics.jsonl") == line(1) + line(2));
}

TEST_CASE("metrics: errors name the file and the reason") {
  const ScratchFolder folder;
  std::filesystem::create_directories(folder / "taken/metrics.jsonl");
  CHECK(error_of([&] { MetricsFile(folder / "taken", 0); }) == "cannot read " + folder / "taken/metrics.jsonl" + ": Is a directory");
  std::filesystem::create_directories(folder / "full");
  MetricsFile full(folder / "full", 0);
  full.append(record(1));
  const SizeLimit limit(10);
  CHECK(error_of([&] { full.append(record(2)); }) == "cannot write " + folder / "full/metrics.jsonl" + ": File too large");
}

TEST_CASE("tensorboard: CRC-32C of RFC 3720, appendix B.4") {
  CHECK(crc32c("") == 0);
  CHECK(crc32c("123456789") == 0xe3069283u);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aau);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43u);
}

TEST_CASE("tensorboard: events have the bytes that the tensorboard package 2.21 writes") {
  const double time = 1700000000.25;
  CHECK(hex(start_events(time, 301)) == "1800000000000000a37f4b220900001040fc54d9411a0d627261696e2e4576656e743a32338d2fe9"
                                        "100000000000000095fbfe180900001040fc54d94110ad023a020801cb79b93b");
  CHECK(hex(record_event({.step = 300, .tokens = 64, .train_loss = 1.5, .lr = 1e-3, .time = time})) ==
        "3b000000000000001a23ac5c0900001040fc54d94110ac022a2d0a0d0a06746f6b656e7315000080420a110a0a747261696e5f6c6f7373150000c03f0a090a02"
        "6c72156f12833ad203ff0b");
}

TEST_CASE("tensorboard: a file per start, each after those before it, and what was not measured is absent") {
  const ScratchFolder folder;
  folder.write("events.out.tfevents.4000000000.elsewhere", "");  // by a wrong clock
  for (int start = 0; start < 3; ++start) {
    MetricsFile file(folder.path(), start);
    file.append({.step = start + 1, .tokens = 64, .lr = 1e-3, .grad_norm = std::nan(""), .time = 1700000000.25});
  }
  const std::vector<std::string> names = event_files(folder.path());
  REQUIRE(names.size() == 4);
  for (size_t i = 0; i < names.size(); ++i) CHECK(names[i].starts_with("events.out.tfevents." + std::to_string(4000000000 + i) + "."));
  CHECK(read_file(folder / names[2]).ends_with(record_event({.step = 2, .tokens = 64, .lr = 1e-3, .time = 1700000000.25})));
}

TEST_CASE("tensorboard: a number that is not a time changes no name, and a record without a time gets the present one") {
  const ScratchFolder folder;
  const auto is_now = [](double time) {
    return std::abs(time - std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count()) < 60;
  };
  folder.write("events.out.tfevents.9223372036854775807.elsewhere", "");
  MetricsFile(folder.path(), 0).append({.step = 1});
  CHECK(is_now(std::stod(event_files(folder.path())[0].substr(std::string("events.out.tfevents.").size(), 10))));
  CHECK(is_now(Json::parse(read_file(folder / "metrics.jsonl"))["time"]));
}

TEST_CASE("tensorboard: the tensorboard package reads what metrics.jsonl holds, after two resumes and a torn record" *
          doctest::test_suite("needs tensorboard")) {
  const std::string python = python_with_tensorboard();
  if (python.empty()) return test::skip("needs python3 or $RICCI_PYTHON with the tensorboard package");
  const ScratchFolder folder;
  std::filesystem::create_directories(folder / "some");
  const auto train = [&](int64_t first, int64_t last, double shift) {
    MetricsFile file(folder / "some", first - 1);
    for (int64_t step = first; step <= last; ++step)
      file.append({step, step * 64, shift + 1.0 / static_cast<double>(step), step % 4 ? std::optional<double>() : 2.0 + shift, 1e-3, 0.5,
          1e5, 1 << 20, {}, {}, {}, {}, step % 5 ? NamedNumbers() : NamedNumbers{{"grad_norm.tok", shift}, {"weight_norm.blocks.0", 1.5}}});
  };
  train(1, 10, 0);
  AppendFile(folder / "some/" + event_files(folder / "some")[0]).append(std::string("\x2c\0\0\0\0", 5));
  train(7, 12, 10);
  train(9, 10, 20);
  const Result result = shell(python + " '" RICCI_TESTS_FOLDER "/apps/read_events.py' '" + folder / "some" + "'");
  CAPTURE(result.text);
  CHECK(result.code == 0);
  // 10 records: 6 values each, val_loss at steps 4 and 8, and two norms at steps 5 and 10.
  CHECK(result.text.ends_with("66 points, the same in both\n"));
}
