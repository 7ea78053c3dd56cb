#include "apps/run/evaluation/scored_run.h"

#include "apps/terminal/table.h"
#include "core/error.h"

namespace ricci::apps {
namespace {

Object object_of(const ClassEvaluation& evaluation) {
  const Confusion& confusion = evaluation.confusion;
  const ClassScores macro = confusion.macro();
  Value::List counts;
  for (int64_t target = 0; target < confusion.classes(); ++target) {
    Value::List row;
    for (int64_t predicted = 0; predicted < confusion.classes(); ++predicted) row.emplace_back(confusion.count(target, predicted));
    counts.emplace_back(row);
  }
  return {{"sequences", confusion.total()}, {"nats_per_sequence", evaluation.nats_per_sequence}, {"accuracy", confusion.accuracy()},
      {"macro_precision", macro.precision}, {"macro_recall", macro.recall}, {"macro_f1", macro.f1}, {"confusion", counts}};
}

ResultTable results_of(std::span<const ScoredRun> scored) {
  ResultTable table;
  const auto add = [&](Column column, const auto& value) { table.add(std::move(column), scored, value); };
  // Columns without a value where a run makes no such predictions, or was not scored as a whole text.
  const auto predicted = [&](const char* key, const auto& value) {
    add({.key = key}, [&](const ScoredRun& s) { return s.result.predictions ? Value(value(*s.result.predictions)) : Value(); });
  };
  const auto sized = [&](Column column, const auto& value) {
    add(std::move(column), [&](const ScoredRun& s) { return s.size ? Value(value(s)) : Value(); });
  };
  add({.heading = "run", .key = "run", .left = true}, &ScoredRun::run);
  add({.key = "text"}, &ScoredRun::text);
  add({.heading = "tokens", .key = "tokens", .format = ","}, [](const ScoredRun& s) { return s.result.tokens; });
  add({.heading = "context", .key = "context"}, &ScoredRun::context);
  add({.heading = "stride", .key = "stride"}, &ScoredRun::stride);
  add({.key = "from"}, [](const ScoredRun& s) { return s.from ? Value(s.from) : Value(); });
  add({.heading = "nats/token", .key = "nats_per_token", .format = "{:.4f}"}, [](const ScoredRun& s) { return s.result.nats_per_token; });
  add({.heading = "perplexity", .key = "perplexity", .format = "{:.3f}"}, [](const ScoredRun& s) { return s.result.perplexity(); });
  predicted("token_accuracy", [](const Predictions& p) { return p.token_accuracy(); });
  predicted("sequence_accuracy", [](const Predictions& p) { return p.sequence_accuracy(); });
  sized({.key = "bytes"}, [](const ScoredRun& s) { return s.size->bytes; });
  sized({.heading = "bits/byte", .key = "bits_per_byte", .format = "{:.4f}"},
      [](const ScoredRun& s) { return s.result.bits_per_byte(s.size->bytes); });
  sized({.key = "words"}, [](const ScoredRun& s) { return s.size->words; });
  sized({.heading = "word perplexity", .key = "word_perplexity", .format = "{:.2f}"},
      [](const ScoredRun& s) { return s.result.word_perplexity(s.size->words); });
  add({.heading = "text", .left = true}, &ScoredRun::text);
  return table;
}

}  // namespace

std::string line_of(const ScoredClassifier& s) {
  return format_message("{}: {} documents, context {}{}: {:.4f} nats per document, accuracy {:.4f}, macro F1 {:.4f}",
      {s.text, s.result.confusion.total(), s.context, s.context_note, s.result.nats_per_sequence, s.result.confusion.accuracy(),
          s.result.confusion.macro().f1});
}

std::string line_of(const ScoredRun& s) {
  std::string line = format_message("{}: {} tokens, context {}{}", {s.text, s.result.tokens, s.context, s.context_note});
  if (s.stride) line += format_message(", stride {}", {*s.stride});
  if (s.from) line += format_message(", from position {}", {s.from});
  line += format_message(": {:.4f} nats per token, perplexity {:.3f}", {s.result.nats_per_token, s.result.perplexity()});
  if (s.result.predictions) line += predictions_note(*s.result.predictions);
  if (!s.size) return line;
  return line + format_message(", {:.4f} bits per byte, word perplexity {:.2f}",
                    {s.result.bits_per_byte(s.size->bytes), s.result.word_perplexity(s.size->words)});
}

std::string predictions_note(const Predictions& p) {
  return format_message(
      ", {:.2f}% of the tokens and {:.2f}% of the sequences right", {100 * p.token_accuracy(), 100 * p.sequence_accuracy()});
}

std::string table_of(std::span<const ScoredRun> scored) { return text_of(results_of(scored)); }

std::string json_of(std::span<const ScoredRun> scored, std::span<const ScoredClassifier> classifiers) {
  const Value rows = json_of(results_of(scored));
  Value::List all = std::get<Value::List>(rows.any());
  for (const ScoredClassifier& s : classifiers) {
    Object run{{"run", s.run}, {"text", s.text}, {"context", s.context}};
    for (auto& member : object_of(s.result)) run.push_back(std::move(member));
    all.emplace_back(std::move(run));
  }
  return json_text(all);
}

std::string json_of(const ClassEvaluation& evaluation) { return json_text(object_of(evaluation), -1); }

}  // namespace ricci::apps
