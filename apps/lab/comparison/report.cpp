#include "apps/lab/comparison/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/lab/comparison/statistics.h"
#include "apps/lab/plot/records.h"
#include "apps/run/config/config.h"
#include "apps/run/folder/provenance.h"
#include "core/error.h"
#include "core/files/file.h"

namespace ricci::apps {
namespace {

const std::vector<double>& column(const RunRecords& run, const char* key) {
  const auto found = run.columns.find(key);
  if (found == run.columns.end()) fail("{}: no record tells its {}", {run.path, key});
  return found->second;
}

template <class Get> std::vector<double> of_seeds(const Compared& model, const Get& value) {
  std::vector<double> all;
  for (const Outcome& outcome : model.outcomes) all.push_back(value(outcome));
  return all;
}

template <class Get> MeanSpread spread_over_seeds(const Compared& model, const Get& value) { return mean_spread(of_seeds(model, value)); }

double mean_of(const Compared& model, double Outcome::*member) {
  return spread_over_seeds(model, [&](const Outcome& o) { return o.*member; }).mean;
}
MeanSpread nats_of(const Compared& model) {
  return spread_over_seeds(model, [](const Outcome& o) { return o.min_nats; });
}
MeanSpread accuracy_of(const Compared& model) {
  return spread_over_seeds(model, [](const Outcome& o) { return o.accuracy.value_or(0); });
}

std::string amount_name(Equal equal) {
  if (equal == Equal::flops) return "FLOPs";
  return equal == Equal::memory ? "planned MB" : "parameters";
}

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
    points.push_back({spread_over_seeds(model, [&](const Outcome& o) { return o.measurements[i].*x; }).mean,
        spread_over_seeds(model, [&](const Outcome& o) { return y(o.measurements[i]); }).mean});
  return points;
}

Value json_of(const Outcome& outcome) {
  ResultTable curve;
  curve.add({.key = "tokens"}, outcome.measurements, &Measurement::tokens);
  curve.add({.key = "seconds"}, outcome.measurements, &Measurement::seconds);
  curve.add({.key = "nats"}, outcome.measurements, &Measurement::nats);
  curve.add({.key = "accuracy"}, outcome.measurements, &Measurement::accuracy);
  Object result{{"run", outcome.run}, {"seed", outcome.seed}, {"builds", outcome.builds}, {"least_nats", outcome.min_nats}};
  if (outcome.accuracy) result.emplace_back("accuracy", *outcome.accuracy);
  result.insert(result.end(), {{"seconds", outcome.seconds}, {"tokens_per_second", outcome.tokens_per_second},
                                  {"peak_bytes", outcome.peak_bytes}, {"evaluations", ricci::apps::json_of(curve)}});
  return result;
}

// A mean over seeds, and what a single seed leaves unknown: its deviation and the half of its interval.
template <class Get>
void add_spread(ResultTable& table, const std::vector<Compared>& models, Column mean, const std::string& prefix, const Get& spread) {
  const auto known = [](const Compared& model, double value) { return model.outcomes.size() > 1 ? Value(value) : Value(); };
  table.add(std::move(mean), models, [&](const Compared& model) { return spread(model).mean; });
  table.add({.key = prefix + "deviation"}, models, [&](const Compared& model) { return known(model, spread(model).deviation); });
  table.add({.heading = "95% +-", .key = prefix + "interval_95_half_width", .format = "+-{:.4f}", .missing = ""}, models,
      [&](const Compared& model) { return known(model, spread(model).half_width); });
}

ResultTable table_of(const Comparison& comparison) {
  ResultTable table;
  const auto add = [&](Column column, const auto& value) { table.add(std::move(column), comparison.models, value); };
  add({.heading = "model", .key = "name", .left = true}, [](const Compared& m) { return m.model.name; });
  add({.key = "keys"}, [](const Compared& m) { return m.model.overrides; });
  add({.heading = "changed", .key = "changed", .left = true}, [](const Compared& m) { return m.model.changed; });
  add({.heading = "parameters", .key = "parameters", .format = ","}, [](const Compared& m) { return m.model.plan.parameters; });
  add({.heading = "GFLOP/step", .key = "flops_per_step", .format = "{:.2f}", .factor = 1e-9},
      [](const Compared& m) { return m.model.plan.flops(); });
  add({.heading = "planned MB", .key = "planned_bytes", .format = "{:.1f}", .factor = 1e-6},
      [](const Compared& m) { return m.model.plan.peak; });
  add({.heading = amount_name(comparison.equal) + " beside first", .format = "{:+.1f}%", .factor = 100},
      [](const Compared& m) { return m.model.beside_first - 1; });
  if (!is_trained(comparison)) return table;
  add({.heading = "measured MB", .format = "{:.1f}", .factor = 1e-6}, [](const Compared& m) { return mean_of(m, &Outcome::peak_bytes); });
  add_spread(
      table, comparison.models, {.heading = "least nats/" + unit_of(comparison), .key = "least_nats", .format = "{:.4f}"}, "", nats_of);
  if (has_accuracy(comparison))
    add_spread(table, comparison.models, {.heading = "accuracy at that evaluation", .key = "accuracy", .format = "{:.4f}"}, "accuracy_",
        accuracy_of);
  if (has_perplexity(comparison))
    add({.heading = "perplexity", .key = "perplexity", .format = "{:.2f}"}, [](const Compared& m) { return std::exp(nats_of(m).mean); });
  add({.heading = "tokens/s", .format = ","}, [](const Compared& m) { return std::llround(mean_of(m, &Outcome::tokens_per_second)); });
  add({.heading = "seconds", .format = "{:.1f}"}, [](const Compared& m) { return mean_of(m, &Outcome::seconds); });
  add({.key = "runs"}, [](const Compared& m) { return values_of(m.outcomes, [](const Outcome& outcome) { return json_of(outcome); }); });
  return table;
}

Chart chart_of(const Comparison& comparison, const std::string& title) {
  Chart chart{.title = title, .x_name = "tokens read in training"};
  const size_t seeds = comparison.models[0].outcomes.size();
  const std::string mean = seeds > 1 ? ", mean of " + std::to_string(seeds) + " seeds" : "";
  chart.panels = {{"validation loss", "nats per " + unit_of(comparison) + mean},
      {"validation loss", "against time", {}, "seconds of training"},
      {"least validation loss", "against memory", {}, "MB of tensors, at most"}};
  const auto nats = [](const Measurement& m) { return m.nats; };
  const auto accuracy = [](const Measurement& m) { return m.accuracy.value_or(0); };
  if (has_accuracy(comparison)) chart.panels.insert(chart.panels.begin() + 1, {"validation accuracy", "part predicted right"});
  for (const Compared& model : comparison.models) {
    std::vector<std::vector<Point>> curves{mean_curve(model, &Measurement::tokens, nats), mean_curve(model, &Measurement::seconds, nats),
        {{mean_of(model, &Outcome::peak_bytes) * 1e-6, nats_of(model).mean}}};
    if (has_accuracy(comparison)) curves.insert(curves.begin() + 1, mean_curve(model, &Measurement::tokens, accuracy));
    add_curves(chart, model.model.name, curves, false);
    chart.panels.back().curves.back().marked = true;
  }
  return chart;
}

}  // namespace

Outcome read_outcome(const std::string& run, uint64_t seed) {
  const RunRecords records = read_records(run);
  const std::vector<double>&tokens = column(records, "tokens"), &nats = column(records, "val_loss"),
        &speed = column(records, "tokens_per_s"), &peak = column(records, "peak_bytes");
  const auto accuracies = records.columns.find("val_accuracy");
  Outcome outcome;
  outcome.run = run;
  outcome.seed = seed;
  outcome.builds = builds_in(read_text(run + "/config.yaml", kMaxYaml));
  std::vector<double> speeds;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (speed[i] > 0) {
      outcome.seconds += (tokens[i] - (i ? tokens[i - 1] : 0)) / speed[i];
      speeds.push_back(speed[i]);
    }
    if (std::isfinite(peak[i])) outcome.peak_bytes = std::max(outcome.peak_bytes, peak[i]);
    if (!std::isfinite(nats[i])) continue;
    outcome.measurements.push_back({tokens[i], outcome.seconds, nats[i]});
    if (accuracies != records.columns.end() && std::isfinite(accuracies->second[i]))
      outcome.measurements.back().accuracy = accuracies->second[i];
  }
  if (outcome.measurements.empty()) fail("{}: the validation loss was not measured", {records.path});
  const auto less = [](const Measurement& a, const Measurement& b) { return a.nats < b.nats; };
  const auto best = std::min_element(outcome.measurements.begin(), outcome.measurements.end(), less);
  outcome.min_nats = best->nats;
  outcome.accuracy = best->accuracy;
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

Report report_of(const Comparison& comparison) {
  Report report{.title = comparison.title, .table = table_of(comparison)};
  report.json = Object{{"title", comparison.title}, {"build", build_info()}, {"command", comparison.command},
      {"equal", name_of(comparison.equal)}, {"eval_from", config_of(comparison).eval_from}, {"models", json_of(report.table)}};
  const std::string note = scored_note(comparison);
  if (!note.empty()) report.notes.push_back(note);
  if (is_trained(comparison)) report.chart = chart_of(comparison, comparison.title + (note.empty() ? "" : "; " + note));
  return report;
}

}  // namespace ricci::apps
