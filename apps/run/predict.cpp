// ricci-predict: predicts the class of each document with a trained classifier, and the probabilities of all classes.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "apps/run/batches.h"
#include "apps/run/options.h"
#include "apps/terminal/streams.h"
#include "apps/terminal/table.h"
#include "core/error.h"
#include "core/json.h"
#include "data/feeds/evaluation.h"
#include "data/formats/documents.h"
#include "models/inference/evaluation.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  std::string run;
  std::vector<std::string> texts;
  bool json_lines = false;
  int64_t batch = 32;
  ModelOptions model;
};

class Predictor {
 public:
  explicit Predictor(const Options& options) : options_(options), open_(open_model(options.run, options.model)) {
    if (!is_classifier(open_.run.config()))
      fail("{}: is a language model, not a classifier; ricci-generate continues a text", {open_.run.path()});
    classes_ = open_.run.labels();
    while (std::ssize(classes_) < open_.model.config().settings<Classifier>().classes) classes_.push_back(std::to_string(classes_.size()));
    for (const std::string& name : classes_) width_ = std::max(width_, one_line(name).size());
  }

  // Predicts --batch documents at a time, in their order.
  void add(const std::string& text, const std::string& place) {
    waiting_.push_back({.text = text, .starts = true, .ends = true, .place = place});
    if (std::ssize(waiting_) == options_.batch) print_waiting();
  }

  // Each line of stdin is a document.
  void add_lines() {
    // In a run of columns text_field is a number, but JSON objects have names.
    const TrainConfig& config = open_.run.config();
    const DocumentOptions fields{.text_field = config.format == format_of(kJsonl) ? config.text_field : ""};
    int64_t number = 0;
    for (std::string line; next_line(std::cin, line, number);) {
      if (options_.json_lines && is_blank(line)) continue;
      const std::string place = format_message("stdin:{}", {number});
      add(options_.json_lines ? kJsonl.read({line, {}, place}, fields).text : line, place);
    }
    if (std::cin.bad()) fail("cannot read from stdin: {}", {system_reason()});
  }

  void finish() {
    print_waiting();
    if (cut_) std::fputs(format_message("warning: {} longer documents were cut after {} tokens\n", {cut_, open_.context}).c_str(), stderr);
  }

 private:
  void print_waiting() {
    std::vector<Row> rows, read;
    for (std::vector<int64_t>& ids : encode(*open_.run.tokenizer(), waiting_)) {
      cut_ += std::ssize(ids) > open_.context;
      ids.resize(std::min(ids.size(), static_cast<size_t>(open_.context)));
      rows.push_back({std::move(ids)});
      if (!rows.back().ids.empty()) read.push_back(rows.back());
    }
    const Tensor probabilities_bk =
        read.empty() ? Tensor() : class_probabilities(open_.model, micro_batch_of(labelled_batch(read), open_.device).inputs);
    const double* next = read.empty() ? nullptr : probabilities_bk.data<double>();
    for (size_t i = 0; i < rows.size(); ++i) {
      const size_t count = rows[i].ids.empty() ? 0 : classes_.size();
      print(waiting_[i], {next, count});
      next += count;
    }
    std::fflush(stdout);
    waiting_.clear();
  }

  // p_k: the probabilities of the classes; empty if the document has no tokens.
  void print(const DocumentPiece& document, std::span<const double> p_k) const {
    constexpr size_t kColumns = 80, kLeastText = 20;
    Json object = {{"text", document.text}, {"class", nullptr}, {"label", nullptr}, {"probabilities", Json::object()}};
    std::string line;
    if (p_k.empty()) {
      std::fprintf(stderr, "warning: %s: has no tokens, and so no class\n", one_line(document.place).c_str());
    } else {
      const auto k = static_cast<size_t>(std::max_element(p_k.begin(), p_k.end()) - p_k.begin());
      object["class"] = k;
      object["label"] = classes_[k];
      line = one_line(classes_[k]);
      line.resize(width_, ' ');
    }
    for (size_t k = 0; k < p_k.size(); ++k) {
      object["probabilities"][classes_[k]] = p_k[k];
      line += format_message("  {} {:.4f}", {one_line(classes_[k]), p_k[k]});
    }
    if (options_.json_lines) apps::print(to_text(object));
    else if (!line.empty())
      apps::print(line + "  " + one_line(document.text, std::max(kLeastText, kColumns - std::min(kColumns, line.size() + 2))));
  }

  const Options& options_;
  OpenModel open_;
  std::vector<std::string> classes_;
  size_t width_ = 0;  // bytes of the longest name
  int64_t cut_ = 0;   // documents
  std::vector<DocumentPiece> waiting_;
};

int predict(const Options& options) {
  Predictor predictor(options);
  for (size_t i = 0; i < options.texts.size(); ++i) predictor.add(options.texts[i], format_message("text {}", {i + 1}));
  if (options.texts.empty()) predictor.add_lines();
  predictor.finish();
  return 0;
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("run", options.run, "A classifier by its folder or name: runs/reviews or reviews")->required();
  keep_brackets(app.add_option("texts", options.texts, "Documents; by default the lines of stdin"));
  app.add_flag("--jsonl", options.json_lines, "Lines of JSON in and out; the document is the run's text_field, or \"text\"");
  app.add_option("--batch", options.batch, "Documents per batch; 1 answers each line at once")->check(at_least_one)->capture_default_str();
  add_model_options(app, options.model, "Tokens of a document that are read");
}

}  // namespace

int main(int argc, char** argv) {
  return run_app<Options>(argc, argv,
      {.name = "ricci-predict",
          .summary = "Predicts the classes of documents with a trained classifier.",
          .examples = "ricci-predict reviews 'a touching film' 'a dull one'\n"
                      "ricci-predict reviews <reviews.txt"},
      add_options, predict);
}
