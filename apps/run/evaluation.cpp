#include "apps/run/evaluation.h"

#include <algorithm>
#include <map>

#include "apps/run/micro_batches.h"
#include "core/error.h"
#include "data/feeds/documents.h"

namespace ricci::apps {
namespace {

ResultTable results_of(std::span<const ScoredRun> scored) {
  ResultTable table;
  const auto add = [&](Column column, const auto& value) { table.add(std::move(column), scored, value); };
  // Columns without a value where a run makes no such predictions, or was not scored as a whole text.
  const auto predicted = [&](const char* key, const auto& value) {
    add({.key = key}, [&](const ScoredRun& s) { return s.result.predictions ? Json(value(*s.result.predictions)) : Json(); });
  };
  const auto sized = [&](Column column, const auto& value) {
    add(std::move(column), [&](const ScoredRun& s) { return s.size ? Json(value(s)) : Json(); });
  };
  add({.heading = "run", .key = "run", .left = true}, &ScoredRun::run);
  add({.key = "text"}, &ScoredRun::text);
  add({.heading = "tokens", .key = "tokens", .format = ","}, [](const ScoredRun& s) { return s.result.tokens; });
  add({.heading = "context", .key = "context"}, &ScoredRun::context);
  const bool overlap =
      std::any_of(scored.begin(), scored.end(), [](const ScoredRun& s) { return s.stride.value_or(s.context) < s.context; });
  add({.heading = overlap ? "stride" : "", .key = "stride"}, &ScoredRun::stride);
  add({.key = "from"}, [](const ScoredRun& s) { return s.from ? Json(s.from) : Json(); });
  add({.heading = "nats", .key = "nats_per_token", .format = "{:.4f}"}, [](const ScoredRun& s) { return s.result.nats_per_token; });
  add({.heading = "perplexity", .key = "perplexity", .format = "{:.3f}"}, [](const ScoredRun& s) { return s.result.perplexity(); });
  const auto word_perplexity = [](const ScoredRun& s) { return s.result.word_perplexity(s.size->words); };
  if (std::any_of(scored.begin(), scored.end(), [](const ScoredRun& s) { return s.has_words; }))
    add({.heading = "per word", .format = "{:.2f}"},
        [&](const ScoredRun& s) { return s.size && s.has_words ? Json(word_perplexity(s)) : Json(); });
  predicted("token_accuracy", [](const Predictions& p) { return p.token_accuracy(); });
  predicted("sequence_accuracy", [](const Predictions& p) { return p.sequence_accuracy(); });
  sized({.key = "bytes"}, [](const ScoredRun& s) { return s.size->bytes; });
  sized({.heading = "bits/byte", .key = "bits_per_byte", .format = "{:.4f}"},
      [](const ScoredRun& s) { return s.result.bits_per_byte(s.size->bytes); });
  sized({.key = "words"}, [](const ScoredRun& s) { return s.size->words; });
  sized({.key = "word_perplexity"}, word_perplexity);
  return table;
}

// A row for each class, with the classes that its documents were taken for. Empty if a row would not fit into a line.
std::string confusion_text(const ScoredRun& scored) {
  constexpr size_t kColumns = 80;
  if (!scored.result.confusion || scored.result.confusion->classes() > static_cast<int64_t>(kColumns)) return "";
  const Confusion& confusion = *scored.result.confusion;
  const auto name = [&](int64_t k) {
    return scored.classes.empty() ? std::to_string(k) : one_line(scored.classes[static_cast<size_t>(k)]);
  };
  ResultTable table{{{.heading = "documents of class", .left = true}}};
  for (int64_t k = 0; k < confusion.classes(); ++k) table.columns.push_back({.heading = "as " + name(k)});
  for (const char* const heading : {"precision", "recall"}) table.columns.push_back({.heading = heading, .format = "{:.4f}"});
  for (int64_t target = 0; target < confusion.classes(); ++target) {
    std::vector<Json> row{Json(name(target))};
    for (int64_t predicted = 0; predicted < confusion.classes(); ++predicted) row.emplace_back(confusion.count(target, predicted));
    const ClassScores scores = confusion.scores(target);
    row.insert(row.end(), {Json(scores.precision), Json(scores.recall)});
    table.add_row(row);
  }
  const std::string text = text_of(table);
  return text.find('\n') > kColumns ? "" : "\n" + text;
}

// The runs of classifiers, or the others.
std::vector<ScoredRun> only(std::span<const ScoredRun> scored, bool classifiers) {
  std::vector<ScoredRun> some;
  std::copy_if(scored.begin(), scored.end(), std::back_inserter(some),
      [&](const ScoredRun& each) { return each.result.confusion.has_value() == classifiers; });
  return some;
}

}  // namespace

EvaluationBatches evaluation_batches(const TrainConfig& config, const Tokens& tokens, int64_t batch, int64_t context, int64_t stride) {
  if (is_classifier(config)) return {DocumentBatches(tokens, batch, context), context, evaluate_classes};
  if (has_mask(config)) return {DocumentBatches(tokens, batch, context), context, evaluate_predictions};
  const int64_t window = std::clamp<int64_t>(tokens.size() - 1, 1, context);
  if (config.eval_from >= window)
    fail("eval_from: {}, but a window of {} has {} positions, counted from 0", {config.eval_from, tokens.name(), window});
  const Windows windows(tokens, batch, window, window < context ? window : stride, config.eval_from);
  return {windows, window, ricci::evaluate, std::min(stride, window)};
}

// eval_batches counts batches of the run file. batch_invariant divides each of them into sequences.
EvaluationBatches evaluation_batches(const TrainConfig& config, const Tokens& validation) {
  const int64_t sequences = layout_of(config).sequences, per_batch = config.batch / sequences;
  EvaluationBatches batches = evaluation_batches(config, validation, sequences, config.sequence_length(), config.sequence_length());
  if (config.eval_batches > 0) batches.count = std::min(batches.count, std::min(config.eval_batches, batches.count) * per_batch);
  return batches;
}

Evaluation evaluate(const Model& model, const EvaluationBatches& batches, Device device, const AfterBatch& after_batch, Ranks& ranks) {
  const auto batch = [&](int64_t i) { return micro_batch_of(batches.batch_at(i), device); };
  return batches.score(model, batches.count, batch, after_batch, ranks);
}

Json scores_of(const Evaluation& classes) {
  const Confusion& confusion = *classes.confusion;
  const ClassScores macro = confusion.macro();
  Json counts = Json::array();
  for (int64_t target = 0; target < confusion.classes(); ++target) {
    Json& row = counts.emplace_back(Json::array());
    for (int64_t predicted = 0; predicted < confusion.classes(); ++predicted) row.push_back(confusion.count(target, predicted));
  }
  return {{"sequences", confusion.total()}, {"nats_per_sequence", classes.nats_per_token}, {"accuracy", confusion.accuracy()},
      {"macro_precision", macro.precision}, {"macro_recall", macro.recall}, {"macro_f1", macro.f1}, {"confusion", counts}};
}

std::string line_of(const ScoredRun& s) {
  const Evaluation& result = s.result;
  std::string line = format_message(
      "{}: {} {}, context {}{}", {s.text, result.tokens, result.confusion ? "documents" : "tokens", s.context, s.context_note});
  if (result.confusion)
    return line + format_message("\n{:.4f} nats per document, accuracy {:.4f}, macro F1 {:.4f}",
                      {result.nats_per_token, result.confusion->accuracy(), result.confusion->macro().f1});
  if (s.stride) line += format_message(", stride {}", {*s.stride});
  if (s.from) line += format_message(", from position {}", {s.from});
  line += format_message("\n{:.4f} nats per token, perplexity {:.3f}", {result.nats_per_token, result.perplexity()});
  if (result.predictions) line += "\n" + predictions_note(*result.predictions);
  if (!s.size) return line;
  line += format_message(", {:.4f} bits per byte", {result.bits_per_byte(s.size->bytes)});
  return s.has_words ? line + format_message("\nword perplexity {:.2f}", {result.word_perplexity(s.size->words)}) : line;
}

std::string predictions_note(const Predictions& p) {
  return format_message("{:.2f}% of the tokens right, exact answers: {:.1f}%", {100 * p.token_accuracy(), 100 * p.sequence_accuracy()});
}

std::string text_of(std::span<const ScoredRun> scored) {
  if (scored.size() == 1) return line_of(scored[0]) + confusion_text(scored[0]);
  std::map<std::string, std::vector<ScoredRun>> by_text;
  for (const ScoredRun& each : only(scored, false)) by_text[each.text].push_back(each);
  std::string text;
  for (const auto& [name, runs] : by_text) text += (text.empty() ? "" : "\n") + name + ":\n" + text_of(results_of(runs));
  for (const ScoredRun& each : only(scored, true))
    text += (text.empty() ? "" : "\n") + each.run + ", " + line_of(each) + confusion_text(each);
  return text;
}

std::string json_of(std::span<const ScoredRun> scored) {
  Json all = json_of(results_of(only(scored, false)));
  for (const ScoredRun& each : only(scored, true)) {
    Json run = {{"run", each.run}, {"text", each.text}, {"context", each.context}};
    if (!each.classes.empty()) run["classes"] = each.classes;
    run.update(scores_of(each.result));
    all.push_back(run);
  }
  return to_text(all, 1);
}

}  // namespace ricci::apps
