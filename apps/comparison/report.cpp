#include "apps/comparison/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/plot/records.h"
#include "apps/runs/build_info.h"
#include "apps/terminal/progress.h"
#include "core/error.h"

namespace ricci::apps {
namespace {

using json = nlohmann::ordered_json;

const std::vector<double>& column(const RunRecords& run, const char* key) {
  const auto found = run.columns.find(key);
  if (found == run.columns.end()) fail("{}: no record tells its {}", {run.path, key});
  return found->second;
}

template <class Value> std::vector<double> of_seeds(const Compared& model, const Value& value) {
  std::vector<double> all;
  for (const Outcome& outcome : model.outcomes) all.push_back(value(outcome));
  return all;
}

double mean_of(const Compared& model, double Outcome::*member) {
  return mean_spread(of_seeds(model, [&](const Outcome& o) { return o.*member; })).mean;
}

MeanSpread nats_of(const Compared& model) { return mean_spread(of_seeds(model, [](const Outcome& o) { return o.least_nats; })); }

// "+0.4%" more than the first model.
std::string beside_first(const Comparison& comparison, const Compared& model) {
  const double first = comparison.models[0].model.amount(comparison.equal), own = model.model.amount(comparison.equal);
  return fmt::format("{:+.1f}%", 100 * (own / first - 1));
}

// The mean over seeds of the i-th evaluation, as far as all seeds have one.
std::vector<Point> mean_curve(const Compared& model, double Measurement::*x) {
  size_t count = SIZE_MAX;
  for (const Outcome& outcome : model.outcomes) count = std::min(count, outcome.measurements.size());
  std::vector<Point> points;
  for (size_t i = 0; i < count; ++i)
    points.push_back({mean_spread(of_seeds(model, [&](const Outcome& o) { return o.measurements[i].*x; })).mean,
                      mean_spread(of_seeds(model, [&](const Outcome& o) { return o.measurements[i].nats; })).mean});
  return points;
}

json outcome_json(const Outcome& outcome) {
  json curve = json::array();
  for (const Measurement& m : outcome.measurements) curve.push_back({{"tokens", m.tokens}, {"seconds", m.seconds}, {"nats", m.nats}});
  return {{"run", outcome.run},
          {"seed", outcome.seed},
          {"nats", outcome.least_nats},
          {"seconds", outcome.seconds},
          {"tokens_per_second", outcome.tokens_per_second},
          {"peak_bytes", outcome.peak_bytes},
          {"evaluations", curve}};
}

}  // namespace

MeanSpread mean_spread(const std::vector<double>& values) {
  MeanSpread result;
  const auto n = static_cast<double>(values.size());
  for (const double value : values) result.mean += value / n;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  if (values.size() > 1) result.deviation = std::sqrt(squares / (n - 1));
  return result;
}

Outcome read_outcome(const std::string& run, uint64_t seed) {
  const RunRecords records = read_records(run);
  const std::vector<double>&tokens = column(records, "tokens"), &nats = column(records, "val_loss"), &speed = column(records, "tokens_per_s"),
                            &peak = column(records, "peak_bytes");
  Outcome outcome;
  outcome.run = run, outcome.seed = seed;
  std::vector<double> speeds;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (speed[i] > 0) outcome.seconds += (tokens[i] - (i ? tokens[i - 1] : 0)) / speed[i], speeds.push_back(speed[i]);
    if (std::isfinite(peak[i])) outcome.peak_bytes = std::max(outcome.peak_bytes, peak[i]);
    if (std::isfinite(nats[i])) outcome.measurements.push_back({tokens[i], outcome.seconds, nats[i]});
  }
  if (outcome.measurements.empty()) fail("{}: the validation loss was not measured", {records.path});
  const auto less = [](const Measurement& a, const Measurement& b) { return a.nats < b.nats; };
  outcome.least_nats = std::min_element(outcome.measurements.begin(), outcome.measurements.end(), less)->nats;
  std::sort(speeds.begin(), speeds.end());
  if (!speeds.empty()) outcome.tokens_per_second = speeds[speeds.size() / 2];
  return outcome;
}

std::vector<Cells> cells_of(const Comparison& comparison) {
  const bool trained = !comparison.models[0].outcomes.empty();
  std::vector<Cells> rows = {{"model", "changed", "parameters", "GFLOP/step", "planned MB", "beside first"}};
  if (trained) rows[0].insert(rows[0].end(), {"measured MB", "nats/token", "deviation", "perplexity", "tokens/s", "seconds"});
  for (const Compared& model : comparison.models) {
    const Plan& plan = model.model.plan;
    Cells& row = rows.emplace_back(Cells{model.name, model.model.changed, with_commas(plan.parameters), fmt::format("{:.2f}", plan.flops() * 1e-9),
                                         fmt::format("{:.1f}", static_cast<double>(plan.peak) * 1e-6), beside_first(comparison, model)});
    if (!trained) continue;
    const MeanSpread nats = nats_of(model);
    row.insert(row.end(), {fmt::format("{:.1f}", mean_of(model, &Outcome::peak_bytes) * 1e-6), fmt::format("{:.4f}", nats.mean),
                           model.outcomes.size() > 1 ? fmt::format("{:.4f}", nats.deviation) : "", fmt::format("{:.2f}", std::exp(nats.mean)),
                           with_commas(std::llround(mean_of(model, &Outcome::tokens_per_second))), fmt::format("{:.1f}", mean_of(model, &Outcome::seconds))});
  }
  return rows;
}

std::string table_of(const Comparison& comparison) { return comparison.title + "\n" + aligned(cells_of(comparison), 2); }

std::string json_of(const Comparison& comparison) {
  json result{{"title", comparison.title}, {"build", build_info()}, {"command", comparison.command}, {"equal", name_of(comparison.equal)}, {"models", json::array()}};
  for (const Compared& model : comparison.models) {
    const Plan& plan = model.model.plan;
    const MeanSpread nats = nats_of(model);
    json outcomes = json::array();
    for (const Outcome& outcome : model.outcomes) outcomes.push_back(outcome_json(outcome));
    result["models"].push_back({{"name", model.name},
                                {"keys", model.model.overrides},
                                {"changed", model.model.changed},
                                {"parameters", plan.parameters},
                                {"flops_per_step", plan.flops()},
                                {"planned_bytes", plan.peak},
                                {"nats", nats.mean},
                                {"deviation", nats.deviation},
                                {"perplexity", std::exp(nats.mean)},
                                {"runs", outcomes}});
  }
  return result.dump(1);
}

Chart chart_of(const Comparison& comparison) {
  Chart chart;
  chart.title = comparison.title, chart.x_name = "tokens read in training";
  const std::string seeds = comparison.models[0].outcomes.size() > 1 ? ", mean of " + std::to_string(comparison.models[0].outcomes.size()) + " seeds" : "";
  chart.panels = {{"validation loss", "nats per token" + seeds, {}, ""},
                  {"validation loss", "against time", {}, "seconds of training"},
                  {"best validation loss", "against memory", {}, "MB of tensors, at most"}};
  for (size_t i = 0; i < comparison.models.size(); ++i) {
    const Compared& model = comparison.models[i];
    const int colour = static_cast<int>(i);
    const std::vector<Point> memory{{mean_of(model, &Outcome::peak_bytes) * 1e-6, nats_of(model).mean}};
    const std::vector<Point> curves[] = {mean_curve(model, &Measurement::tokens), mean_curve(model, &Measurement::seconds), memory};
    for (size_t p = 0; p < chart.panels.size(); ++p) chart.panels[p].curves.push_back({model.name, colour, p == 2, curves[p], {}});
    chart.legend.push_back({model.name, colour, false});
  }
  return chart;
}

}  // namespace ricci::apps
