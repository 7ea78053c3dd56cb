#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "apps/lab/comparison/comparison.h"
#include "apps/lab/plot/records.h"
#include "apps/run/config.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/memory/memory.h"

namespace ricci::apps {
namespace {

template <class Get> MeanSpread over_seeds(const Contestant& model, const Get& value) {
  std::vector<double> all;
  for (const Outcome& outcome : model.outcomes) all.push_back(std::invoke(value, outcome));
  return mean_spread(all);
}
MeanSpread nats_of(const Contestant& model) {
  return over_seeds(model, [](const Outcome& o) { return o.best().nats; });
}
MeanSpread accuracy_of(const Contestant& model) {
  return over_seeds(model, [](const Outcome& o) { return o.best().accuracy; });
}

// The unit of the losses: token or document.
std::string unit_of(const Comparison& comparison) { return is_classifier(comparison.config()) ? "document" : "token"; }
bool has_accuracy(const Comparison& comparison) {
  const auto is_known = [](const Contestant& model) { return std::isfinite(accuracy_of(model).mean); };
  return comparison.seeds() > 0 && std::all_of(comparison.models.begin(), comparison.models.end(), is_known);
}

Json as_json(const Outcome& o) {
  Json json = {{"run", o.run}, {"seed", o.seed}, {"builds", o.builds}, {"least_nats", o.best().nats}, {"seconds", o.seconds},
      {"tokens_per_second", o.tokens_per_second}, {"peak_bytes", o.peak_bytes}, {"evaluations", Json::array()}};
  const auto add_accuracy = [](Json& to, const Evaluation& evaluation) {
    if (std::isfinite(evaluation.accuracy)) to["accuracy"] = evaluation.accuracy;
  };
  for (const Evaluation& each : o.evaluations) {
    Json evaluation = {{"tokens", each.tokens}, {"seconds", each.seconds}, {"nats", each.nats}};
    add_accuracy(evaluation, each);
    json["evaluations"].push_back(evaluation);
  }
  add_accuracy(json, o.best());
  return json;
}

// The loss minus the first model's loss with the same seed varies less than the losses themselves. Returns nothing for the first model or a
// single seed.
std::optional<MeanSpread> difference_from_first(const Comparison& comparison, const Contestant& model) {
  const Contestant& first = comparison.models[0];
  std::vector<double> all;
  for (size_t i = 0; i < model.outcomes.size(); ++i) all.push_back(model.outcomes[i].best().nats - first.outcomes[i].best().nats);
  return all.size() > 1 && &model != &first ? std::optional(mean_spread(all)) : std::nullopt;
}

ResultTable table_of(const Comparison& comparison) {
  ResultTable table;
  const auto add = [&](Column column, const auto& value) { table.add(std::move(column), comparison.models, value); };
  add({.heading = "model", .key = "name", .left = true},
      [&](const Contestant& m) { return m.name.empty() ? comparison.title : m.name; });  // without a grid
  add({.key = "keys"}, &Contestant::overrides);
  add({.key = "grid"}, &Contestant::grid);
  add({.heading = "changed", .key = "changed", .left = true}, &Contestant::changed);
  add({.heading = "parameters", .key = "parameters", .format = ","}, [](const Contestant& m) { return m.plan.parameters; });
  add({.heading = "GFLOP/step", .key = "flops_per_step", .format = "{:.2f}", .factor = 1e-9},
      [](const Contestant& m) { return m.plan.flops(); });
  const bool shows_plan = comparison.seeds() == 0 || comparison.equal == Equal::memory;  // else the measured memory is enough
  add({.heading = shows_plan ? "planned" : "", .key = "planned_bytes", .format = "bytes"}, [](const Contestant& m) { return m.plan.peak; });
  add({.heading = "vs first", .format = "{:+.1f}%", .factor = 100}, [](const Contestant& m) { return m.vs_first - 1; });
  if (comparison.seeds() == 0) return table;
  const auto add_mean = [&](Column column, double Outcome::*member) {
    add(std::move(column), [&](const Contestant& m) { return over_seeds(m, member).mean; });
  };
  // Adds a mean over seeds, the standard deviation and half of the interval. A single seed has only a mean.
  const auto add_spread = [&](const std::string& heading, const std::string& key, const std::string& prefix, const auto& spread) {
    const auto part = [&](double MeanSpread::*member) {
      return [&, member](const Contestant& m) {
        const std::optional<MeanSpread> known = spread(m);
        return known ? Json((*known).*member) : Json();
      };
    };
    add({.heading = heading, .key = key, .format = "{:.4f}"}, part(&MeanSpread::mean));
    if (comparison.seeds() == 1) return;
    add({.key = prefix + "deviation"}, part(&MeanSpread::deviation));
    add({.heading = heading.empty() ? "" : "95% ±", .key = prefix + "interval_95_half_width", .format = "±{:.4f}"},
        part(&MeanSpread::half_width));
  };
  add_mean({.heading = "memory", .format = "bytes"}, &Outcome::peak_bytes);
  add_spread("nats/" + unit_of(comparison), "least_nats", "", nats_of);
  add_spread("", "difference_from_first", "difference_", [&](const Contestant& m) { return difference_from_first(comparison, m); });
  if (has_accuracy(comparison)) add_spread("accuracy", "accuracy", "accuracy_", accuracy_of);
  if (comparison.config().model.traits().writes_text())
    add({.heading = "perplexity", .key = "perplexity", .format = "{:.2f}"}, [](const Contestant& m) { return std::exp(nats_of(m).mean); });
  add({.heading = "tokens/s", .format = ","},
      [](const Contestant& m) { return std::llround(over_seeds(m, &Outcome::tokens_per_second).mean); });
  add_mean({.heading = "seconds", .format = "{:.1f}"}, &Outcome::seconds);
  add({.key = "runs"}, [](const Contestant& m) { return values_of(m.outcomes, as_json); });
  return table;
}

// The mean over seeds of each evaluation that all seeds have, with its interval.
Curve mean_curve(const Contestant& model, int colour, double Evaluation::*x, double Evaluation::*y) {
  constexpr size_t few = 12;  // longer curves have no dots
  Curve curve{.name = model.name, .colour = colour};
  size_t count = SIZE_MAX;
  for (const Outcome& outcome : model.outcomes) count = std::min(count, outcome.evaluations.size());
  for (size_t i = 0; i < count; ++i) {
    const auto mean = [&](double Evaluation::*member) {
      return over_seeds(model, [&](const Outcome& o) { return o.evaluations[i].*member; });
    };
    curve.points.push_back({mean(x).mean, mean(y).mean, mean(y).half_width});
  }
  curve.marked = count <= few;
  return curve;
}

}  // namespace

Outcome read_outcome(const std::string& run, uint64_t seed) {
  const RunRecords records = read_records(run);
  const std::vector<double> nats = records.column("val_loss"), accuracy = records.column("val_accuracy"), tokens = records.column("tokens"),
                            seconds = training_seconds(records);
  Outcome outcome{.run = run, .seed = seed, .tokens_per_second = median(records.finite("tokens_per_s"))};
  if (const std::string build = build_line(read_text(run + "/config.yaml", kMaxYaml)); !build.empty()) outcome.builds = {build};
  for (size_t i = 0; i < nats.size(); ++i)
    if (std::isfinite(nats[i])) outcome.evaluations.push_back({tokens[i], seconds[i], nats[i], accuracy[i]});
  if (outcome.evaluations.empty()) fail("{}: the validation loss was not measured", {records.path});
  outcome.seconds = seconds.back();
  for (const double bytes : records.finite("peak_bytes")) outcome.peak_bytes = std::max(outcome.peak_bytes, bytes);
  return outcome;
}

std::vector<Chart> charts_of(const Comparison& comparison) {
  const std::string unit = "nats per " + unit_of(comparison),
                    mean = comparison.seeds() > 1 ? fmt::format(", mean of {} seeds, 95% interval", comparison.seeds()) : "";
  Chart tokens{.x_name = "tokens read in training"}, time{.x_name = "seconds of training"},
      memory{.x_name = "MiB of tensors, at most", .panels = {{"lowest validation loss", unit}}};
  const auto add = [&](Chart& chart, Panel panel, double Evaluation::*x, double Evaluation::*y) {
    for (const Contestant& model : comparison.models)
      panel.curves.push_back(mean_curve(model, static_cast<int>(panel.curves.size()), x, y));
    chart.panels.push_back(panel);
  };
  add(tokens, {"validation loss", unit + mean}, &Evaluation::tokens, &Evaluation::nats);
  if (has_accuracy(comparison)) add(tokens, {"validation accuracy", "part predicted right"}, &Evaluation::tokens, &Evaluation::accuracy);
  add(time, {"validation loss", unit}, &Evaluation::seconds, &Evaluation::nats);
  for (const Contestant& model : comparison.models) {
    const MeanSpread nats = nats_of(model);
    add_curves(memory, model.name, {{{over_seeds(model, &Outcome::peak_bytes).mean / kMebibyte, nats.mean, nats.half_width}}}, false);
  }
  return {tokens, time, memory};
}

Report report_of(const Comparison& comparison) {
  const TrainConfig& config = comparison.config();
  Report report{.title = comparison.title, .table = table_of(comparison)};
  report.json = {{"title", comparison.title}, {"build", build_info()}, {"command", comparison.command},
      {"equal", name_of(comparison.equal)}, {"eval_from", config.eval_from}, {"models", json_of(report.table)}};
  if (config.eval_from > 0)
    report.title += fmt::format("; losses from position {} of each window of {}", config.eval_from, config.sequence_length());
  if (comparison.seeds() == 2) report.notes.push_back("intervals of 2 seeds are wide; with 3 seeds they are about a quarter as wide");
  for (const Contestant& model : comparison.models)
    if (const std::optional<MeanSpread> difference = difference_from_first(comparison, model))
      report.notes.push_back(fmt::format("{} minus {}: {:+.4f} ±{:.4f} nats/{} (95%, seed by seed)", model.name, comparison.models[0].name,
          difference->mean, difference->half_width, unit_of(comparison)));
  if (comparison.seeds() > 0)
    for (const Chart& chart : charts_of(comparison)) report.add(chart);
  return report;
}

}  // namespace ricci::apps
