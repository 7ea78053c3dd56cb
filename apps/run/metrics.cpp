#include "apps/run/metrics.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/files/file.h"
#include "core/json/value.h"

namespace ricci::apps {
namespace {

constexpr const char* kKeys[] = {"step", "tokens", "train_loss", "val_loss", "val_accuracy", "lr", "grad_norm", "tokens_per_s",
    "peak_bytes", "reserved_bytes", "ranks", "time"};

// f(key, value) for every key, in order.
template <class F> void each_value(const Metrics& m, const F& f) {
  int key = 0;
  const auto visit = [&](const auto&... values) { (f(kKeys[key++], values), ...); };
  visit(std::optional(m.step), std::optional(m.tokens), m.train_loss, m.val_loss, m.val_accuracy, m.lr, m.grad_norm, m.tokens_per_s,
      m.peak_bytes, m.reserved_bytes, m.ranks, m.time);
}

template <class Number> bool is_measured(const std::optional<Number>& value) { return value && std::isfinite(static_cast<double>(*value)); }

double unix_time() {
  const auto now = std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  return static_cast<double>(now.time_since_epoch().count()) / 1000;
}

// The step of a record, or nullopt if the line is no record.
std::optional<int64_t> step_of(const nlohmann::json& record) {
  if (!record.contains("step") || !record["step"].is_number_integer()) return {};
  const nlohmann::json& step = record["step"];
  constexpr uint64_t largest = std::numeric_limits<int64_t>::max();
  return step.is_number_unsigned() && step.get<uint64_t>() > largest ? std::nullopt : std::optional(step.get<int64_t>());
}

nlohmann::json parse_line(std::string_view line) {
  return json_depth(line) > 1 ? nlohmann::json() : nlohmann::json::parse(line, nullptr, false);
}

// The place of the records, without those beyond the step.
FilePlace rewind(const Folder& folder, int64_t step) {
  const FilePlace place(folder, "metrics.jsonl");
  if (!OpenFile::find(place)) {
    if (step > 0) std::fprintf(stderr, "warning: %s is missing: the records of %lld steps are lost\n", place.path.c_str(), (long long)step);
    return place;
  }
  const std::string text = read_text(place);
  std::string kept;
  each_line(text, [&](std::string_view line) {
    const std::optional<int64_t> found = step_of(parse_line(line));
    if (found && *found <= step) kept += line;
  });
  if (kept != text) write_file_atomically(place, kept);
  return place;
}

}  // namespace

std::span<const char* const> metrics_keys() { return kKeys; }

Metrics read_record(const Folder& folder, int64_t step) {
  Metrics metrics{.step = step};
  const FilePlace place(folder, "metrics.jsonl");
  if (!OpenFile::find(place)) return metrics;
  each_line(read_text(place), [&](std::string_view line) {
    const nlohmann::json record = parse_line(line);
    if (step_of(record) != step) return;
    const auto number = [&]<class Number>(const char* key, std::optional<Number>& value) {
      if (const auto found = record.find(key); found != record.end() && found->is_number()) value = found->get<Number>();
    };
    number("train_loss", metrics.train_loss);
    number("lr", metrics.lr);
    number("grad_norm", metrics.grad_norm);
    number("tokens_per_s", metrics.tokens_per_s);
    number("peak_bytes", metrics.peak_bytes);
    number("reserved_bytes", metrics.reserved_bytes);
    number("ranks", metrics.ranks);
  });
  return metrics;
}

std::string to_json(const Metrics& metrics) {
  std::string line;
  each_value(metrics, [&](const char* key, const auto& value) {
    line += fmt::format(R"({}"{}":{})", line.empty() ? "{" : ",", key, is_measured(value) ? fmt::format("{}", *value) : "null");
  });
  return line + "}";
}

MetricsFile::MetricsFile(const Folder& folder, int64_t step, std::span<const HyperParameter> parameters)
    : lines_(rewind(folder, step)), events_(folder, unix_time(), step + 1) {
  if (step == 0 && !parameters.empty()) events_.append(unix_time(), parameters);
}

void MetricsFile::append(Metrics metrics) {
  if (!metrics.time) metrics.time = unix_time();
  lines_.append(to_json(metrics) + "\n");
  std::vector<Scalar> scalars;
  each_value(metrics, [&](std::string_view key, const auto& value) {
    if (is_measured(value) && key != "step" && key != "time") scalars.push_back({key, static_cast<float>(*value)});
  });
  events_.append(*metrics.time, metrics.step, scalars);
}

}  // namespace ricci::apps
