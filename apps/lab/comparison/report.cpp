#include "apps/lab/comparison/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/lab/comparison/statistics.h"
#include "apps/lab/plot/records.h"
#include "apps/run/config/builds.h"
#include "apps/run/config/yaml.h"
#include "apps/run/folder/said.h"
#include "apps/terminal/progress.h"
#include "core/error.h"
#include "core/files/file.h"

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

MeanSpread nats_of(const Compared& model) {
  return mean_spread(of_seeds(model, [](const Outcome& o) { return o.least_nats; }));
}
MeanSpread accuracy_of(const Compared& model) {
  return mean_spread(of_seeds(model, [](const Outcome& o) { return o.accuracy.value_or(0); }));
}

// "+-0.0123"; nothing is known of a single seed's.
std::string half_width_of(const Compared& model, const MeanSpread& spread) {
  return model.outcomes.size() > 1 ? fmt::format("+-{:.4f}", spread.half_width) : "";
}

// "+0.4%": so much more than the first model has.
std::string beside_first(const Compared& model) { return fmt::format("{:+.1f}%", 100 * (model.model.beside_first - 1)); }

const char* amount_name(Equal equal) { return equal == Equal::flops ? "FLOPs" : equal == Equal::memory ? "planned MB" : "parameters"; }

const TrainConfig& config_of(const Comparison& comparison) { return comparison.models[0].model.config; }

bool is_trained(const Comparison& comparison) { return !comparison.models[0].outcomes.empty(); }

// What the losses of all models are a mean over, and whether they are of the next token, so that they have a perplexity.
std::string unit_of(const Comparison& comparison) { return is_classifier(config_of(comparison)) ? "document" : "token"; }
// Every run tells it; those of older versions do not.
bool has_accuracy(const Comparison& comparison) {
  const auto told = [](const Outcome& outcome) { return outcome.accuracy.has_value(); };
  const auto all_told = [&](const Compared& model) { return std::all_of(model.outcomes.begin(), model.outcomes.end(), told); };
  return is_trained(comparison) && std::all_of(comparison.models.begin(), comparison.models.end(), all_told);
}
bool has_perplexity(const Comparison& comparison) { return config_of(comparison).model.traits().writes_text(); }

// The mean over seeds of the i-th evaluation, as far as all seeds have one.
template <class Y> std::vector<Point> mean_curve(const Compared& model, double Measurement::*x, const Y& y) {
  size_t count = SIZE_MAX;
  for (const Outcome& outcome : model.outcomes) count = std::min(count, outcome.measurements.size());
  std::vector<Point> points;
  for (size_t i = 0; i < count; ++i)
    points.push_back({mean_spread(of_seeds(model, [&](const Outcome& o) { return o.measurements[i].*x; })).mean,
        mean_spread(of_seeds(model, [&](const Outcome& o) { return y(o.measurements[i]); })).mean});
  return points;
}

json outcome_json(const Outcome& outcome) {
  json curve = json::array();
  for (const Measurement& m : outcome.measurements) {
    curve.push_back({{"tokens", m.tokens}, {"seconds", m.seconds}, {"nats", m.nats}});
    if (m.accuracy) curve.back()["accuracy"] = *m.accuracy;
  }
  json result{{"run", outcome.run}, {"seed", outcome.seed}, {"builds", outcome.builds}, {"least_nats", outcome.least_nats}};
  if (outcome.accuracy) result["accuracy"] = *outcome.accuracy;
  result["seconds"] = outcome.seconds;
  result["tokens_per_second"] = outcome.tokens_per_second;
  result["peak_bytes"] = outcome.peak_bytes;
  result["evaluations"] = curve;
  return result;
}

}  // namespace

Outcome read_outcome(const std::string& run, uint64_t seed) {
  const RunRecords records = read_records(run);
  const std::vector<double>&tokens = column(records, "tokens"), &nats = column(records, "val_loss"),
        &speed = column(records, "tokens_per_s"), &peak = column(records, "peak_bytes");
  const auto accuracies = records.columns.find("val_accuracy");
  Outcome outcome;
  outcome.run = run, outcome.seed = seed, outcome.builds = builds_in(read_text(run + "/config.yaml", kMaxYaml));
  std::vector<double> speeds;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (speed[i] > 0) outcome.seconds += (tokens[i] - (i ? tokens[i - 1] : 0)) / speed[i], speeds.push_back(speed[i]);
    if (std::isfinite(peak[i])) outcome.peak_bytes = std::max(outcome.peak_bytes, peak[i]);
    if (!std::isfinite(nats[i])) continue;
    outcome.measurements.push_back({tokens[i], outcome.seconds, nats[i]});
    if (accuracies != records.columns.end() && std::isfinite(accuracies->second[i]))
      outcome.measurements.back().accuracy = accuracies->second[i];
  }
  if (outcome.measurements.empty()) fail("{}: the validation loss was not measured", {records.path});
  const auto less = [](const Measurement& a, const Measurement& b) { return a.nats < b.nats; };
  const auto least = std::min_element(outcome.measurements.begin(), outcome.measurements.end(), less);
  outcome.least_nats = least->nats, outcome.accuracy = least->accuracy;
  std::sort(speeds.begin(), speeds.end());
  if (!speeds.empty()) outcome.tokens_per_second = speeds[speeds.size() / 2];
  return outcome;
}

std::string scored_note(const Comparison& comparison) {
  const TrainConfig& config = config_of(comparison);
  if (config.eval_from == 0) return "";
  return fmt::format(
      "losses of the positions from {} on of each window of {}", config.eval_from, config.context.value_or(config.model.ctx));
}

std::vector<Cells> cells_of(const Comparison& comparison) {
  std::vector<Cells> rows = {
      {"model", "changed", "parameters", "GFLOP/step", "planned MB", fmt::format("{} beside first", amount_name(comparison.equal))}};
  if (is_trained(comparison)) {
    rows[0].insert(rows[0].end(), {"measured MB", "least nats/" + unit_of(comparison), "95% +-"});
    if (has_accuracy(comparison)) rows[0].insert(rows[0].end(), {"accuracy at that evaluation", "95% +-"});
    if (has_perplexity(comparison)) rows[0].push_back("perplexity");
    rows[0].insert(rows[0].end(), {"tokens/s", "seconds"});
  }
  for (const Compared& model : comparison.models) {
    const Plan& plan = model.model.plan;
    Cells& row = rows.emplace_back(Cells{model.model.name, model.model.changed, with_commas(plan.parameters),
        fmt::format("{:.2f}", plan.flops() * 1e-9), fmt::format("{:.1f}", static_cast<double>(plan.peak) * 1e-6), beside_first(model)});
    if (!is_trained(comparison)) continue;
    const MeanSpread nats = nats_of(model);
    row.insert(row.end(),
        {fmt::format("{:.1f}", mean_of(model, &Outcome::peak_bytes) * 1e-6), fmt::format("{:.4f}", nats.mean), half_width_of(model, nats)});
    if (has_accuracy(comparison)) {
      const MeanSpread accuracy = accuracy_of(model);
      row.insert(row.end(), {fmt::format("{:.4f}", accuracy.mean), half_width_of(model, accuracy)});
    }
    if (has_perplexity(comparison)) row.push_back(fmt::format("{:.2f}", std::exp(nats.mean)));
    row.insert(row.end(),
        {with_commas(std::llround(mean_of(model, &Outcome::tokens_per_second))), fmt::format("{:.1f}", mean_of(model, &Outcome::seconds))});
  }
  return rows;
}

std::string table_of(const Comparison& comparison) {
  const std::string note = scored_note(comparison);
  return comparison.title + "\n" + aligned(cells_of(comparison), 2) + (note.empty() ? "" : "\n" + note);
}

std::string json_of(const Comparison& comparison) {
  json result{{"title", comparison.title}, {"build", build_info()}, {"command", comparison.command}, {"equal", name_of(comparison.equal)},
      {"eval_from", config_of(comparison).eval_from}, {"models", json::array()}};
  for (const Compared& model : comparison.models) {
    const Plan& plan = model.model.plan;
    json outcomes = json::array();
    for (const Outcome& outcome : model.outcomes) outcomes.push_back(outcome_json(outcome));
    result["models"].push_back({{"name", model.model.name}, {"keys", model.model.overrides}, {"changed", model.model.changed},
        {"parameters", plan.parameters}, {"flops_per_step", plan.flops()}, {"planned_bytes", plan.peak}});
    if (!is_trained(comparison)) continue;
    const MeanSpread nats = nats_of(model);
    json& row = result["models"].back();
    row["least_nats"] = nats.mean;
    if (model.outcomes.size() > 1) row["deviation"] = nats.deviation, row["interval_95_half_width"] = nats.half_width;
    if (has_accuracy(comparison)) {
      const MeanSpread accuracy = accuracy_of(model);
      row["accuracy"] = accuracy.mean;
      if (model.outcomes.size() > 1)
        row["accuracy_deviation"] = accuracy.deviation, row["accuracy_interval_95_half_width"] = accuracy.half_width;
    }
    if (has_perplexity(comparison)) row["perplexity"] = std::exp(nats.mean);
    row["runs"] = outcomes;
  }
  return result.dump(1);
}

Chart chart_of(const Comparison& comparison) {
  Chart chart;
  const std::string note = scored_note(comparison);
  chart.title = comparison.title + (note.empty() ? "" : "; " + note), chart.x_name = "tokens read in training";
  const std::string seeds =
      comparison.models[0].outcomes.size() > 1 ? ", mean of " + std::to_string(comparison.models[0].outcomes.size()) + " seeds" : "";
  chart.panels = {{"validation loss", "nats per " + unit_of(comparison) + seeds, {}, ""},
      {"validation loss", "against time", {}, "seconds of training"},
      {"least validation loss", "against memory", {}, "MB of tensors, at most"}};
  const auto nats = [](const Measurement& m) { return m.nats; };
  const auto accuracy = [](const Measurement& m) { return m.accuracy.value_or(0); };
  if (has_accuracy(comparison)) chart.panels.insert(chart.panels.begin() + 1, {"validation accuracy", "part predicted right", {}, ""});
  for (size_t i = 0; i < comparison.models.size(); ++i) {
    const Compared& model = comparison.models[i];
    const int colour = static_cast<int>(i);
    std::vector<std::vector<Point>> curves{mean_curve(model, &Measurement::tokens, nats), mean_curve(model, &Measurement::seconds, nats),
        {{mean_of(model, &Outcome::peak_bytes) * 1e-6, nats_of(model).mean}}};
    if (has_accuracy(comparison)) curves.insert(curves.begin() + 1, mean_curve(model, &Measurement::tokens, accuracy));
    for (size_t p = 0; p < chart.panels.size(); ++p)
      chart.panels[p].curves.push_back({model.model.name, colour, p + 1 == chart.panels.size(), curves[p], {}});
    chart.legend.push_back({model.model.name, colour, false});
  }
  return chart;
}

}  // namespace ricci::apps
