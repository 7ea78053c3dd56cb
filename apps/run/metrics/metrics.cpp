#include "apps/run/metrics/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/files/file.h"
#include "core/json/depth.h"

namespace ricci::apps {
namespace {

constexpr const char* kKeys[] = {
    "step", "tokens", "train_loss", "val_loss", "val_accuracy", "lr", "grad_norm", "tokens_per_s", "peak_bytes", "time"};

// f(key, value) for every key, in order.
template <class F> void each_value(const Metrics& m, const F& f) {
  int key = 0;
  const auto visit = [&](const auto&... values) { (f(kKeys[key++], values), ...); };
  visit(std::optional(m.step), std::optional(m.tokens), m.train_loss, m.val_loss, m.val_accuracy, m.lr, m.grad_norm, m.tokens_per_s,
      m.peak_bytes, m.time);
}

std::string number(const std::optional<double>& value) { return value && std::isfinite(*value) ? fmt::format("{}", *value) : "null"; }
std::string number(const std::optional<int64_t>& value) { return value ? fmt::format("{}", *value) : "null"; }

double unix_time() {
  const auto now = std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  return static_cast<double>(now.time_since_epoch().count()) / 1000;
}

// The line is a record of this step or an earlier one.
bool is_record_until(std::string_view line, int64_t step) {
  if (json_depth(line) > 1) return false;
  const auto record = nlohmann::json::parse(line, nullptr, false);
  const auto found = record.is_object() ? record.find("step") : record.end();
  if (!record.is_object() || found == record.end() || !found->is_number_integer()) return false;
  if (found->is_number_unsigned()) return found->get<uint64_t>() <= static_cast<uint64_t>(step);
  return found->get<int64_t>() <= step;
}

// The place of the records, without those beyond the step.
FilePlace rewind(const Folder& folder, int64_t step) {
  const FilePlace place(folder, "metrics.jsonl");
  if (!OpenFile::find(place)) return place;
  const std::string text = read_text(place);
  std::string kept;
  for (size_t begin = 0, end; begin < text.size(); begin = end) {
    end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (line.ends_with('\n') && is_record_until(line, step)) kept += line;
  }
  if (kept != text) write_file_atomically(place, kept);
  return place;
}

}  // namespace

std::span<const char* const> metrics_keys() { return kKeys; }

std::string to_json(const Metrics& metrics) {
  std::string line;
  each_value(metrics,
      [&](const char* key, const auto& value) { line += fmt::format(R"({}"{}":{})", line.empty() ? "{" : ",", key, number(value)); });
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
    if (value && std::isfinite(static_cast<double>(*value)) && key != "step" && key != "time")
      scalars.push_back({key, static_cast<float>(*value)});
  });
  events_.append(*metrics.time, metrics.step, scalars);
}

}  // namespace ricci::apps
