#include "apps/run/metrics.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "core/json.h"

namespace ricci::apps {
namespace {

// Calls f(key, value) for every key after step and tokens, in order.
template <class Record, class F> void each_value(Record& m, const F& f) {
  int key = 2;
  const auto visit = [&](auto&... values) { (f(kMetricsKeys[key++], values), ...); };
  visit(m.train_loss, m.val_loss, m.val_accuracy, m.lr, m.grad_norm, m.tokens_per_s, m.peak_bytes, m.reserved_bytes, m.ranks, m.time);
  for (const auto& [name, norm] : m.norms) {
    std::optional<double> value = norm;
    f(name.c_str(), value);
  }
}

template <class Number> bool is_measured(const std::optional<Number>& value) { return value && std::isfinite(static_cast<double>(*value)); }

double unix_time() {
  const auto now = std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  return static_cast<double>(now.time_since_epoch().count()) / 1000;
}

// Calls f(record, step, line) for every record in the text. Skips an incomplete line.
template <class F> void each_record(std::string_view text, const F& f) {
  each_line(text, [&](std::string_view line) {
    try {
      const Json record = parse_json(line, "record", {.depth = 1});
      if (const auto step = as<int64_t>(member(record, "step")); step && *step >= 0) f(record, *step, line);
    } catch (const Error&) {
    }
  });
}

// Removes the records after the step, and returns the path of the file.
std::string rewind(const std::string& folder, int64_t step) {
  const std::string path = folder + "/metrics.jsonl";
  const std::optional<std::string> text = find_text(path);
  if (!text && step > 0)
    std::fprintf(stderr, "warning: %s is missing: the records of %lld steps are lost\n", path.c_str(), (long long)step);
  std::string kept;
  each_record(text.value_or(""), [&](const Json&, int64_t record_step, std::string_view line) {
    if (record_step <= step) kept += line;
  });
  if (text && kept != *text) write_atomically(path, kept);
  return path;
}

// ---- Event files
template <class T> std::string little_endian(T value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

// Returns the length, its checksum, the data and its checksum. The checksums are rotated and shifted ("masked").
std::string tfrecord(std::string_view data) {
  const auto masked = [](std::string_view bytes) { return little_endian(std::rotr(crc32c(bytes), 15) + 0xa282ead8u); };
  const std::string length = little_endian(static_cast<uint64_t>(data.size()));
  return (length + masked(length)).append(data) + masked(data);
}

// In a protocol buffer, a field is an integer with the field's number and type, followed by the value.
enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>((value & 127) | 128);
  return bytes + static_cast<char>(value);
}
std::string field(uint32_t number, Wire kind) { return varint(number << 3 | kind); }
std::string field(uint32_t number, int64_t value) { return field(number, kVarint) + varint(static_cast<uint64_t>(value)); }
std::string field(uint32_t number, double value) { return field(number, kFixed64) + little_endian(std::bit_cast<uint64_t>(value)); }
std::string field(uint32_t number, float value) { return field(number, kFixed32) + little_endian(std::bit_cast<uint32_t>(value)); }
std::string field(uint32_t number, std::string_view value) { return field(number, kBytes) + varint(value.size()).append(value); }

// Returns a file name that sorts after the other event files, even if the clock was set back. A number of more than 10 digits is not a
// time.
std::string next_events(const std::string& folder, double time) {
  constexpr std::string_view prefix = "events.out.tfevents.";
  constexpr int64_t latest = 9'999'999'999;  // seconds since 1970 in 10 digits
  auto second = static_cast<int64_t>(time);
  for (const std::string& name : names_in(folder)) {
    int64_t other = 0;
    if (name.starts_with(prefix)) std::from_chars(name.data() + prefix.size(), name.data() + name.size(), other);
    if (other < latest) second = std::max(second, other + 1);
  }
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return fmt::format("{}/{}{:010}.{}", folder, prefix, second, host);
}

}  // namespace

Metrics read_record(const std::string& folder, int64_t step) {
  Metrics metrics{.step = step};
  each_record(find_text(folder + "/metrics.jsonl").value_or(""), [&](const Json& record, int64_t record_step, std::string_view) {
    if (record_step != step) return;
    each_value(metrics, [&]<class Number>(const char* key, std::optional<Number>& value) { value = as<Number>(member(record, key)); });
    for (const auto& [key, value] : record.items())
      if (key.find("_norm.") != key.npos && value.is_number()) metrics.norms.emplace_back(key, value.get<double>());
  });
  metrics.time.reset();
  return metrics;
}

std::string to_json(const Metrics& metrics) {
  std::string line = fmt::format(R"({{"step":{},"tokens":{})", metrics.step, metrics.tokens);
  each_value(metrics, [&](const char* key, const auto& value) {
    line += fmt::format(R"(,"{}":{})", key, is_measured(value) ? fmt::format("{}", *value) : "null");
  });
  return line + "}";
}

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0u);
  }
  return ~crc;
}

std::string start_events(double time, int64_t first_step) {
  const std::string restart = field(1, time) + field(2, first_step) + field(7, field(1, int64_t{1}));  // session_log: status START
  return tfrecord(field(1, time) + field(3, "brain.Event:2")) + tfrecord(restart);
}

std::string record_event(const Metrics& metrics) {
  std::string summary;
  const auto add = [&](std::string_view key, auto value) { summary += field(1, field(1, key) + field(2, static_cast<float>(value))); };
  add("tokens", metrics.tokens);
  each_value(metrics, [&](std::string_view key, const auto& value) {
    if (is_measured(value) && key != "time") add(key, *value);
  });
  return tfrecord(field(1, metrics.time.value_or(0)) + field(2, metrics.step) + field(5, summary));
}

MetricsFile::MetricsFile(const std::string& folder, int64_t step)
    : lines_(rewind(folder, step)), events_(next_events(folder, unix_time())) {
  events_.append(start_events(unix_time(), step + 1));
}

void MetricsFile::append(Metrics metrics) {
  if (!metrics.time) metrics.time = unix_time();
  lines_.append(to_json(metrics) + "\n");
  events_.append(record_event(metrics));
}

}  // namespace ricci::apps
