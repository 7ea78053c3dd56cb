// metrics.jsonl by its bytes and as parsed JSON.
#include "apps/run/metrics/metrics.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/data/files.h"

using namespace ricci;
using namespace ricci::apps;
using namespace test_data;
using nlohmann::json;

TEST_CASE("metrics: all keys, in order, null where nothing was measured") {
  CHECK(
      to_json({.step = 3, .tokens = 2304}) ==
      R"({"step":3,"tokens":2304,"train_loss":null,"val_loss":null,"val_accuracy":null,"lr":null,"grad_norm":null,"tokens_per_s":null,"peak_bytes":null,"reserved_bytes":null,"ranks":null,"exchange_ms":null,"time":null})");
  CHECK(
      to_json({3, 2304, 1.5, 2.0, 0.75, 1e-3, 0.25, 15000.0, int64_t{1} << 40, int64_t{2} << 40, 4, 12.5, 1700000000.125}) ==
      R"({"step":3,"tokens":2304,"train_loss":1.5,"val_loss":2,"val_accuracy":0.75,"lr":0.001,"grad_norm":0.25,"tokens_per_s":15000,"peak_bytes":1099511627776,"reserved_bytes":2199023255552,"ranks":4,"exchange_ms":12.5,"time":1700000000.125})");
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

namespace {

// A record of that step, with a fixed time.
Metrics record(int64_t step, std::optional<double> lr = {}) {
  return {.step = step, .lr = lr, .time = 1700000000 + static_cast<double>(step)};
}
std::string line(int64_t step, std::optional<double> lr = {}) { return to_json(record(step, lr)) + "\n"; }

}  // namespace

TEST_CASE("metrics: records are there as soon as they are appended, and a run that goes on adds to them") {
  const ScratchFolder folder;
  const std::string path = folder / "metrics.jsonl";
  {
    MetricsFile file(Folder(folder.path()), 0);
    CHECK(read_file(path).empty());
    file.append(record(1));
    CHECK(read_file(path) == line(1));
    file.append(record(2, 0.5));
  }
  MetricsFile again(Folder(folder.path()), 2);
  again.append(record(3));
  CHECK(read_file(path) == line(1) + line(2, 0.5) + line(3));
}

TEST_CASE("metrics: the time of a record is that of its appending") {
  const ScratchFolder folder;
  const auto now = [] { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); };
  MetricsFile file(Folder(folder.path()), 0);
  const double before = now();
  file.append({.step = 1});
  const double time = json::parse(read_file(folder / "metrics.jsonl"))["time"];
  CHECK(time >= before - 0.001);
  CHECK(time <= now());
}

TEST_CASE("metrics: records beyond the step that a run goes on from are dropped") {
  const ScratchFolder folder;
  for (const int64_t step : {4, 3, 2, 1, 0}) {
    folder.write("metrics.jsonl", line(1) + line(2) + line(3));
    MetricsFile(Folder(folder.path()), step).append(record(9));
    std::string kept;
    for (int64_t i = 1; i <= std::min<int64_t>(step, 3); ++i) kept += line(i);
    CHECK(read_file(folder / "metrics.jsonl") == kept + line(9));
  }
}

TEST_CASE("metrics: lines that a crash cut off or filled with zeros are removed") {
  const ScratchFolder folder;
  for (const std::string& broken :
      {std::string(R"({"step":2,"tok)"), std::string(R"({"step":2})"), std::string(20, '\0'), std::string(20, '\0') + "\n",
          std::string("7\n"), std::string("{}\n"), std::string("[1]\n"), std::string("{\"step\":\"2\"}\n"), std::string("\n")}) {
    for (const std::string& before : {std::string(), line(1), line(1) + line(2)}) {
      folder.write("metrics.jsonl", before + broken);
      MetricsFile(Folder(folder.path()), 5).append(record(6));
      CHECK(read_file(folder / "metrics.jsonl") == before + line(6));
    }
  }
  folder.write("metrics.jsonl", line(1) + "{\"step\":\n" + line(2));
  MetricsFile(Folder(folder.path()), 5);
  CHECK(read_file(folder / "metrics.jsonl") == line(1) + line(2));
}

TEST_CASE("metrics: errors name the file and the reason") {
  const ScratchFolder folder;
  std::filesystem::create_directories(folder / "taken/metrics.jsonl");
  CHECK(
      error_of([&] { MetricsFile(Folder(folder / "taken"), 0); }) == "cannot read " + folder / "taken/metrics.jsonl" + ": Is a directory");
  std::filesystem::create_directories(folder / "linked");
  const std::string foreign = folder.write("foreign", line(1) + line(2));
  std::filesystem::create_symlink(foreign, folder / "linked/metrics.jsonl");
  CHECK(contains(error_of([&] { MetricsFile(Folder(folder / "linked"), 1); }),
      "linked/metrics.jsonl: it is a symbolic link, which is not followed here"));
  CHECK(read_file(foreign) == line(1) + line(2));
  std::filesystem::create_directories(folder / "full");
  MetricsFile full(Folder(folder / "full"), 0);
  full.append(record(1));
  const SizeLimit limit(10);
  CHECK(error_of([&] { full.append(record(2)); }) == "cannot write " + folder / "full/metrics.jsonl" + ": File too large");
}

TEST_CASE("append file: only regular files grow, and a link in a folder that is held open is not followed") {
  const ScratchFolder folder;
  const std::string foreign = folder.write("foreign", "text");
  std::filesystem::create_symlink(foreign, folder / "link");
  CHECK(error_of([&] { AppendFile(FilePlace(Folder(folder.path()), "link")); }) ==
        "cannot write " + folder / "link" + ": it is a symbolic link, which is not followed here");
  CHECK(error_of([&] { AppendFile("/dev/null"); }) == "cannot write /dev/null: it exists and is not a regular file");
  CHECK(error_of([&] { AppendFile(folder.path()); }) == "cannot write " + folder.path() + ": Is a directory");
  AppendFile(folder / "link").append(", more");
  CHECK(read_file(foreign) == "text, more");
}

TEST_CASE("metrics: records that no training wrote are not kept, however they are made") {
  const ScratchFolder folder;
  for (const std::string& odd : {std::string("{\"step\":18446744073709551615}\n"), std::string("{\"step\":1,\"a\":[[[]]]}\n"),
           std::string(200'000, '[') + "\n", "{\"step\":" + std::string(100'000, '{') + "\n"}) {
    folder.write("metrics.jsonl", line(1) + odd);
    MetricsFile(Folder(folder.path()), 5);
    CHECK(read_file(folder / "metrics.jsonl") == line(1));
  }
}
