#include "apps/run/evaluation/scored_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "apps/terminal/progress.h"
#include "core/error.h"

namespace ricci::apps {
namespace {

using json = nlohmann::ordered_json;

using Cells = std::vector<std::string>;

Cells cells_of(const ScoredRun& s) {
  return {s.run, with_commas(s.result.tokens), std::to_string(s.context), s.stride ? std::to_string(*s.stride) : "-",
      format_message("{:.4f}", {s.result.nats_per_token}), format_message("{:.3f}", {s.result.perplexity()}),
      s.size ? format_message("{:.4f}", {s.result.bits_per_byte(s.size->bytes)}) : "-",
      s.size ? format_message("{:.2f}", {s.result.word_perplexity(s.size->words)}) : "-", s.text};
}

json object_of(const ClassEvaluation& evaluation) {
  const Confusion& confusion = evaluation.confusion;
  const ClassScores macro = confusion.macro();
  json counts = json::array();
  for (int64_t target = 0; target < confusion.classes(); ++target) {
    json row = json::array();
    for (int64_t predicted = 0; predicted < confusion.classes(); ++predicted) row.push_back(confusion.count(target, predicted));
    counts.push_back(row);
  }
  return {{"sequences", confusion.total()}, {"nats_per_sequence", evaluation.nats_per_sequence}, {"accuracy", confusion.accuracy()},
      {"macro_precision", macro.precision}, {"macro_recall", macro.recall}, {"macro_f1", macro.f1}, {"confusion", counts}};
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

std::string table_of(std::span<const ScoredRun> scored) {
  std::vector<Cells> rows = {{"run", "tokens", "context", "stride", "nats/token", "perplexity", "bits/byte", "word perplexity", "text"}};
  for (const ScoredRun& one : scored) rows.push_back(cells_of(one));
  std::vector<size_t> widths(rows[0].size());
  for (const Cells& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string table;
  for (const Cells& row : rows) {
    if (!table.empty()) table += '\n';
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - row[i].size(), ' ');
      const bool first = i == 0, last = i + 1 == row.size();  // these two are names
      table += first ? row[i] + blanks : last ? "  " + row[i] : "  " + blanks + row[i];
    }
  }
  return table;
}

std::string json_of(std::span<const ScoredRun> scored, std::span<const ScoredClassifier> classifiers) {
  json all = json::array();
  for (const ScoredRun& s : scored) {
    all.push_back({{"run", s.run}, {"text", s.text}, {"tokens", s.result.tokens}, {"context", s.context}});
    if (s.stride) all.back()["stride"] = *s.stride;
    if (s.from) all.back()["from"] = s.from;
    all.back().update({{"nats_per_token", s.result.nats_per_token}, {"perplexity", s.result.perplexity()}});
    if (const auto& p = s.result.predictions)
      all.back().update({{"token_accuracy", p->token_accuracy()}, {"sequence_accuracy", p->sequence_accuracy()}});
    if (!s.size) continue;
    all.back().update({{"bytes", s.size->bytes}, {"bits_per_byte", s.result.bits_per_byte(s.size->bytes)}, {"words", s.size->words},
        {"word_perplexity", s.result.word_perplexity(s.size->words)}});
  }
  for (const ScoredClassifier& s : classifiers) {
    all.push_back({{"run", s.run}, {"text", s.text}, {"context", s.context}});
    all.back().update(object_of(s.result));
  }
  return all.dump(1, ' ', false, json::error_handler_t::replace);
}

std::string json_of(const ClassEvaluation& evaluation) { return object_of(evaluation).dump(); }

}  // namespace ricci::apps
