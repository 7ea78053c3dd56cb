// metrics.jsonl by its bytes and as parsed JSON.
#include "apps/shared/metrics.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/data/files.h"

using namespace ricci::apps;
using namespace test_data;
using nlohmann::json;

TEST_CASE("metrics: all keys, in order, null where nothing was measured") {
  CHECK(
      to_json({.step = 3, .tokens = 2304}) ==
      R"({"step":3,"tokens":2304,"train_loss":null,"val_loss":null,"lr":null,"grad_norm":null,"tokens_per_s":null,"peak_bytes":null})");
  CHECK(
      to_json({3, 2304, 1.5, 2.0, 1e-3, 0.25, 15000.0, int64_t{1} << 40}) ==
      R"({"step":3,"tokens":2304,"train_loss":1.5,"val_loss":2,"lr":0.001,"grad_norm":0.25,"tokens_per_s":15000,"peak_bytes":1099511627776})");
}

TEST_CASE("metrics: numbers read back to the same bits, and those that JSON cannot hold are null") {
  for (const double value : {0.1, 1.0 / 3, 1e-300, 5e-324, 1.7976931348623157e308, -0.0, 123456789.123456789, 1e22}) {
    const json record = json::parse(to_json({.step = 1, .train_loss = value}));
    CHECK(record["train_loss"].get<double>() == value);
  }
  const double inf = std::numeric_limits<double>::infinity();
  for (const double value : {std::nan(""), inf, -inf}) {
    const json record = json::parse(to_json({.step = 1, .train_loss = value, .val_loss = 2.5, .grad_norm = value}));
    CHECK(record["train_loss"].is_null());
    CHECK(record["grad_norm"].is_null());
    CHECK(record["val_loss"] == 2.5);
  }
}

TEST_CASE("metrics: records are there as soon as they are appended, and a second run adds to the first") {
  const ScratchFolder folder;
  const std::string path = folder / "metrics.jsonl";
  {
    MetricsFile file(path);
    CHECK(read_file(path).empty());
    file.append({.step = 1});
    CHECK(read_file(path) == to_json({.step = 1}) + "\n");
    file.append({.step = 2, .lr = 0.5});
  }
  MetricsFile again(path);
  again.append({.step = 3});
  CHECK(read_file(path) ==
        to_json({.step = 1}) + "\n" + to_json({.step = 2, .lr = 0.5}) + "\n" + to_json({.step = 3}) + "\n");
}

TEST_CASE("metrics: a line that a crash cut off is removed") {
  const ScratchFolder folder;
  const std::string whole = to_json({.step = 1}) + "\n";
  for (const std::string& before : {std::string(), whole, whole + whole}) {
    const std::string path = folder.write("metrics.jsonl", before + R"({"step":2,"tok)");
    MetricsFile(path).append({.step = 2});
    CHECK(read_file(path) == before + to_json({.step = 2}) + "\n");
  }
}

TEST_CASE("metrics: errors name the file and the reason") {
  const ScratchFolder folder;
  CHECK(error_of([&] { MetricsFile file(folder / "none/m.jsonl"); }) ==
        "cannot write " + folder / "none/m.jsonl" + ": No such file or directory");
  CHECK(error_of([&] { MetricsFile file(folder.path()); }) == "cannot write " + folder.path() + ": Is a directory");
  MetricsFile full("/dev/full");
  CHECK(error_of([&] { full.append({.step = 1}); }) == "cannot write /dev/full: No space left on device");
}

TEST_CASE("metrics: records of later steps are dropped, and everything from a broken line on") {
  const ScratchFolder folder;
  const std::string path = folder / "metrics.jsonl";
  drop_records_after(path, 3);
  CHECK_FALSE(std::filesystem::exists(path));
  const auto record = [](int64_t step) { return to_json({.step = step}) + "\n"; };
  const std::string four = record(1) + record(2) + record(5) + record(9);
  for (const auto& [step, kept] : {std::pair<int64_t, std::string>{0, ""}, {1, record(1)}, {4, record(1) + record(2)}, {9, four}, {99, four}}) {
    folder.write("metrics.jsonl", four);
    drop_records_after(path, step);
    CHECK(read_file(path) == kept);
  }
  for (const char* broken : {"{\"step\":2", "[1]\n", "{\"step\":\"2\"}\n", "\n", "{}\n"}) {
    folder.write("metrics.jsonl", record(1) + broken + record(2));
    drop_records_after(path, 3);
    CHECK(read_file(path) == record(1));
  }
}
