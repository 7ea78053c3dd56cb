#include "apps/lab/comparison/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "apps/lab/plot/records.h"
#include "apps/lab/report/statistics.h"
#include "apps/run/config.h"
#include "apps/terminal/cli.h"
#include "core/error.h"
#include "core/files/file.h"

namespace ricci::apps {
namespace {

const std::vector<double>& column(const RunRecords& run, const char* key) {
  const auto found = run.columns.find(key);
  if (found == run.columns.end()) fail("{}: no record has its {}", {run.path, key});
  return found->second;
}

template <class Get> MeanSpread over_seeds(const Compared& model, const Get& value) {
  std::vector<double> all;
  for (const Outcome& outcome : model.outcomes) all.push_back(std::invoke(value, outcome));
  return mean_spread(all);
}
MeanSpread nats_of(const Compared& model) { return over_seeds(model, &Outcome::min_nats); }
MeanSpread accuracy_of(const Compared& model) {
  return over_seeds(model, [](const Outcome& o) { return o.accuracy.value_or(0); });
}

// The unit of the losses: token or document.
std::string unit_of(const Comparison& comparison) { return is_classifier(comparison.config()) ? "document" : "token"; }
// True if every run has one; runs of older versions have none.
bool has_accuracy(const Comparison& comparison) {
  const auto known = [](const Compared& model) {
    return std::all_of(model.outcomes.begin(), model.outcomes.end(), [](const Outcome& outcome) { return outcome.accuracy.has_value(); });
  };
  return comparison.is_trained() && std::all_of(comparison.models.begin(), comparison.models.end(), known);
}

// The means over seeds of the i-th evaluation, as far as all seeds have one, and the halves of their intervals, where there are several.
struct MeanCurve {
  std::vector<Point> points = {};
  std::vector<double> half_widths = {};
  void add(double x, const MeanSpread& y, bool has_interval) {
    points.push_back({x, y.mean});
    if (has_interval) half_widths.push_back(y.half_width);
  }
};
template <class Y> MeanCurve mean_curve(const Compared& model, double Measurement::*x, const Y& y) {
  size_t count = SIZE_MAX;
  for (const Outcome& outcome : model.outcomes) count = std::min(count, outcome.measurements.size());
  MeanCurve curve;
  for (size_t i = 0; i < count; ++i)
    curve.add(over_seeds(model, [&](const Outcome& o) { return o.measurements[i].*x; }).mean,
        over_seeds(model, [&](const Outcome& o) { return y(o.measurements[i]); }), model.outcomes.size() > 1);
  return curve;
}

Json as_json(const Outcome& outcome) {
  ResultTable curve;
  curve.add({.key = "tokens"}, outcome.measurements, &Measurement::tokens);
  curve.add({.key = "seconds"}, outcome.measurements, &Measurement::seconds);
  curve.add({.key = "nats"}, outcome.measurements, &Measurement::nats);
  curve.add({.key = "accuracy"}, outcome.measurements, &Measurement::accuracy);
  Json json = {{"run", outcome.run}, {"seed", outcome.seed}, {"builds", outcome.builds}, {"least_nats", outcome.min_nats}};
  if (outcome.accuracy) json["accuracy"] = *outcome.accuracy;
  json.update({{"seconds", outcome.seconds}, {"tokens_per_second", outcome.tokens_per_second}, {"peak_bytes", outcome.peak_bytes},
      {"evaluations", json_of(curve)}});
  return json;
}

// A mean over seeds, and what a single seed leaves unknown: its deviation and the half of its interval.
template <class Get>
void add_spread(ResultTable& table, const std::vector<Compared>& models, Column mean, const std::string& prefix, const Get& spread) {
  const auto known = [](const Compared& model, double value) { return model.outcomes.size() > 1 ? Json(value) : Json(); };
  table.add(std::move(mean), models, [&](const Compared& model) { return spread(model).mean; });
  table.add({.key = prefix + "deviation"}, models, [&](const Compared& model) { return known(model, spread(model).deviation); });
  table.add({.heading = models[0].outcomes.size() > 1 ? "95% +-" : "",
                .key = prefix + "interval_95_half_width",
                .format = "+-{:.4f}",
                .missing = ""},
      models, [&](const Compared& model) { return known(model, spread(model).half_width); });
}

// The loss of each seed minus the first model's loss with the same seed. Both read the same data in the same order, so the differences
// vary less than the losses.
MeanSpread beside_first(const Comparison& comparison, const Compared& model) {
  std::vector<double> all;
  for (size_t i = 0; i < model.outcomes.size(); ++i) all.push_back(model.outcomes[i].min_nats - comparison.models[0].outcomes[i].min_nats);
  return mean_spread(all);
}

// The models that have such differences, for more than one seed.
std::span<const Compared> paired(const Comparison& comparison) {
  const bool has_several = comparison.is_trained() && comparison.models[0].outcomes.size() > 1;
  return has_several ? std::span(comparison.models).subspan(1) : std::span<const Compared>();
}

ResultTable table_of(const Comparison& comparison) {
  ResultTable table;
  const auto add = [&](Column column, const auto& value) { table.add(std::move(column), comparison.models, value); };
  add({.heading = "model", .key = "name", .left = true}, &Compared::name);
  add({.key = "keys"}, &Compared::overrides);
  add({.key = "grid"}, [](const Compared& m) {
    Json values;
    for (const auto& [key, value] : m.grid) values[key] = value;
    return values;
  });
  add({.heading = "changed", .key = "changed", .left = true}, &Compared::changed);
  add({.heading = "parameters", .key = "parameters", .format = ","}, [](const Compared& m) { return m.plan.parameters; });
  add({.heading = "GFLOP/step", .key = "flops_per_step", .format = "{:.2f}", .factor = 1e-9},
      [](const Compared& m) { return m.plan.flops(); });
  const bool shows_plan = !comparison.is_trained() || comparison.equal == Equal::memory;  // else the measured memory is enough
  add({.heading = shows_plan ? "planned MB" : "", .key = "planned_bytes", .format = "{:.1f}", .factor = 1e-6},
      [](const Compared& m) { return m.plan.peak; });
  add({.heading = "vs first", .format = "{:+.1f}%", .factor = 100}, [](const Compared& m) { return m.beside_first - 1; });
  if (!comparison.is_trained()) return table;
  const auto add_mean = [&](Column column, double Outcome::*member) {
    add(std::move(column), [&](const Compared& m) { return over_seeds(m, member).mean; });
  };
  add_mean({.heading = "MB", .format = "{:.1f}", .factor = 1e-6}, &Outcome::peak_bytes);
  add_spread(table, comparison.models, {.heading = "nats/" + unit_of(comparison), .key = "least_nats", .format = "{:.4f}"}, "", nats_of);
  const auto difference = [&](const Compared& m, double MeanSpread::*part) {
    return paired(comparison).empty() || &m == comparison.models.data() ? Json() : Json(beside_first(comparison, m).*part);
  };
  add({.key = "difference_from_first"}, [&](const Compared& m) { return difference(m, &MeanSpread::mean); });
  add({.key = "difference_interval_95_half_width"}, [&](const Compared& m) { return difference(m, &MeanSpread::half_width); });
  if (has_accuracy(comparison))
    add_spread(table, comparison.models, {.heading = "accuracy", .key = "accuracy", .format = "{:.4f}"}, "accuracy_", accuracy_of);
  if (comparison.config().model.traits().writes_text())
    add({.heading = "perplexity", .key = "perplexity", .format = "{:.2f}"}, [](const Compared& m) { return std::exp(nats_of(m).mean); });
  add({.heading = "tokens/s", .format = ","},
      [](const Compared& m) { return std::llround(over_seeds(m, &Outcome::tokens_per_second).mean); });
  add_mean({.heading = "seconds", .format = "{:.1f}"}, &Outcome::seconds);
  add({.key = "runs"}, [](const Compared& m) { return values_of(m.outcomes, as_json); });
  return table;
}

Chart chart_of(const Comparison& comparison, const std::string& title) {
  Chart chart{.title = title, .x_name = "tokens read in training"};
  constexpr size_t few = 30;  // points of a curve that have dots
  const size_t seeds = comparison.models[0].outcomes.size();
  const std::string mean = seeds > 1 ? ", mean of " + std::to_string(seeds) + " seeds, 95% interval" : "";
  chart.panels = {{"validation loss", "nats per " + unit_of(comparison) + mean},
      {"validation loss", "against time", {}, "seconds of training"},
      {"least validation loss", "against memory", {}, "MB of tensors, at most"}};
  const auto nats = [](const Measurement& m) { return m.nats; };
  const auto accuracy = [](const Measurement& m) { return m.accuracy.value_or(0); };
  if (has_accuracy(comparison)) chart.panels.insert(chart.panels.begin() + 1, {"validation accuracy", "part predicted right"});
  for (const Compared& model : comparison.models) {
    MeanCurve best;
    best.add(over_seeds(model, &Outcome::peak_bytes).mean * 1e-6, nats_of(model), seeds > 1);
    std::vector<MeanCurve> curves{mean_curve(model, &Measurement::tokens, nats), mean_curve(model, &Measurement::seconds, nats), best};
    if (has_accuracy(comparison)) curves.insert(curves.begin() + 1, mean_curve(model, &Measurement::tokens, accuracy));
    const auto colour = static_cast<int>(chart.legend.size());
    chart.legend.push_back({model.name, colour});
    for (size_t i = 0; i < curves.size(); ++i)
      chart.panels[i].curves.push_back({.name = model.name,
          .colour = colour,
          .points = curves[i].points,
          .marked = curves[i].points.size() <= few,
          .half_widths = curves[i].half_widths});
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
  if (const std::string build = build_line(read_text(run + "/config.yaml", kMaxYaml)); !build.empty()) outcome.builds = {build};
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
  const TrainConfig& config = comparison.config();
  if (config.eval_from == 0) return "";
  return fmt::format("losses of the positions from {} on of each window of {}", config.eval_from, config.sequence_length());
}

Report report_of(const Comparison& comparison) {
  Report report{.title = comparison.title, .table = table_of(comparison)};
  report.json = {{"title", comparison.title}, {"build", build_info()}, {"command", comparison.command},
      {"equal", name_of(comparison.equal)}, {"eval_from", comparison.config().eval_from}, {"models", json_of(report.table)}};
  for (const Compared& model : paired(comparison)) {
    const MeanSpread difference = beside_first(comparison, model);
    report.notes.push_back(fmt::format("{} minus {}: {:+.4f} +-{:.4f} nats/{} (95%, seed by seed)", model.name, comparison.models[0].name,
        difference.mean, difference.half_width, unit_of(comparison)));
  }
  const std::string note = scored_note(comparison);
  if (!note.empty()) report.notes.push_back(note);
  if (comparison.is_trained()) report.chart = chart_of(comparison, comparison.title + (note.empty() ? "" : "; " + note));
  return report;
}

}  // namespace ricci::apps
