// ricci-predict: the class of each document by a trained classifier, and the probabilities of all classes.
//   ricci-predict runs/NAME 'a touching film' 'a dull one'
//   ricci-predict runs/NAME --file reviews.txt
//   ricci-predict runs/NAME --jsonl <reviews.jsonl >classes.jsonl
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>

#include "apps/run/micro_batches.h"
#include "apps/run/model_options.h"
#include "apps/terminal/streams.h"
#include "apps/terminal/table.h"
#include "core/error.h"
#include "data/shards/document_reader.h"
#include "models/inference/evaluation.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  std::string run, file;
  std::vector<std::string> texts;
  bool json_lines = false;
  int64_t batch = 32;
  ModelOptions model;
};

struct Document {
  std::string place, text;
};

class Predictor {
 public:
  explicit Predictor(const Options& options)
      : options_(options), open_(open_model(options.run, options.model)), classes_(class_names(open_.run.config())) {
    for (const std::string& name : classes_) width_ = std::max(width_, one_line(name).size());
  }

  // A line of a file or of stdin as a document.
  Document read(std::string line, const std::string& place) const {
    if (line.ends_with('\r')) line.pop_back();
    if (options_.json_lines) line = record_of_json(line, {.text_field = text_field()}, place).text;
    return {place, line};
  }

  void add(const Document& document) {
    waiting_.push_back(document);
    if (std::ssize(waiting_) == options_.batch) print_waiting();
  }

  // Documents in their order, --batch of them at a time.
  void print_waiting() {
    std::vector<LabelledIds> rows(waiting_.size());
    std::vector<Passage> passages;
    for (const Document& each : waiting_) passages.push_back({each.text, 0, true, each.place});
    for (const EncodedPart& part : encode(*open_.run.tokenizer(), passages))
      rows[part.passage].ids.insert(rows[part.passage].ids.end(), part.ids.begin(), part.ids.end());
    std::vector<LabelledIds> read;
    for (LabelledIds& row : rows) {
      cut_ += std::ssize(row.ids) > open_.context;
      row.ids.resize(std::min(row.ids.size(), static_cast<size_t>(open_.context)));
      if (!row.ids.empty()) read.push_back(row);
    }
    const Tensor probabilities_bk =
        read.empty() ? Tensor() : class_probabilities(open_.model, micro_batch_of(batch_of(read), open_.device).inputs);
    const double* next = read.empty() ? nullptr : probabilities_bk.data<double>();
    for (size_t i = 0; i < rows.size(); ++i) {
      const bool is_empty = rows[i].ids.empty();
      print(waiting_[i], is_empty ? nullptr : next);
      next += is_empty ? 0 : std::ssize(classes_);
    }
    std::fflush(stdout);
    waiting_.clear();
  }

  void finish() {
    print_waiting();
    if (cut_)
      std::fprintf(stderr, "ricci-predict: of %lld longer documents the first %lld tokens are read\n", static_cast<long long>(cut_),
          static_cast<long long>(open_.context));
  }

 private:
  // In JSONL; the field that the run was trained on is the number of a column if that was TSV.
  std::string text_field() const { return open_.run.config().format == DocumentFormat::jsonl ? open_.run.config().text_field : ""; }

  // p has the probabilities of the classes; it is null if the document has no tokens.
  void print(const Document& document, const double* p) const {
    if (!p) std::fprintf(stderr, "ricci-predict: %s: has no tokens, and no class\n", one_line(document.place).c_str());
    const int64_t best = p ? std::max_element(p, p + classes_.size()) - p : -1;
    if (options_.json_lines) return apps::print(json_text(json_of(document, p, best), -1));
    if (!p) return;
    std::string line;
    const auto name = [&](size_t k) { return one_line(classes_[k]); };
    line = name(static_cast<size_t>(best)) + std::string(width_ - name(static_cast<size_t>(best)).size(), ' ');
    for (size_t k = 0; k < classes_.size(); ++k) line += format_message("  {} {:.4f}", {name(k), p[k]});
    apps::print(line + "  " + one_line(document.text));
  }

  Value json_of(const Document& document, const double* p, int64_t best) const {
    Object probabilities, all{{"text", document.text}, {"class", p ? Value(best) : Value(nullptr)}};
    for (size_t k = 0; p && k < classes_.size(); ++k) probabilities.emplace_back(classes_[k], p[k]);
    all.emplace_back("label", p ? Value(classes_[static_cast<size_t>(best)]) : Value(nullptr));
    all.emplace_back("probabilities", probabilities);
    return all;
  }

  const Options& options_;
  OpenModel open_;
  std::vector<std::string> classes_;
  size_t width_ = 0;
  int64_t cut_ = 0;
  std::vector<Document> waiting_;
};

int predict(const Options& options) {
  const RunFolder run = RunFolder::open(options.run);
  if (!is_classifier(run.config())) fail("{}: is a language model, not a classifier; ricci-generate continues a text", {run.path()});
  Predictor predictor(options);
  for (size_t i = 0; i < options.texts.size(); ++i) predictor.add({format_message("text {}", {i + 1}), options.texts[i]});
  const bool from_stdin = options.file == "-" || (options.file.empty() && options.texts.empty());
  std::ifstream file;
  if (!from_stdin && !options.file.empty()) {
    errno = 0;
    file.open(options.file);
    if (!file) fail("cannot read {}: {}", {options.file, system_reason()});
  }
  if (from_stdin || !options.file.empty()) {
    std::istream& lines = from_stdin ? std::cin : file;
    int64_t number = 0;
    for (std::string line; next_line(lines, line, number);)
      if (!options.json_lines || !is_blank(line))
        predictor.add(predictor.read(line, format_message("{}:{}", {from_stdin ? "stdin" : options.file, number})));
    if (lines.bad()) fail("cannot read {}: {}", {from_stdin ? "stdin" : options.file, system_reason()});
  }
  predictor.finish();
  return 0;
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("run", options.run, "A trained classifier by its folder or name, such as runs/reviews or reviews")->required();
  app.add_option("texts", options.texts, "Documents; the lines of stdin where none is given");
  app.add_option("--file", options.file, "Each line of this file is a document; -: stdin");
  app.add_flag(
      "--jsonl", options.json_lines, "The lines are objects with the run's text_field, or \"text\"; prints an object for each document");
  app.add_option("--batch", options.batch, "Documents at a time; 1 answers each line at once")->check(at_least_one)->capture_default_str();
  add_model_options(app, options.model, "Tokens of a document that are read");
}

}  // namespace

int main(int argc, char** argv) {
  return run_app<Options>(
      argc, argv, {"ricci-predict", "The classes of documents by a trained classifier, with their probabilities."}, add_options, predict);
}
