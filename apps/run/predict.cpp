// ricci predict: predicts the class of each document with a trained classifier, and all class probabilities.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "apps/run/commands.h"
#include "apps/run/options.h"
#include "apps/run/writer.h"
#include "apps/terminal/streams.h"
#include "apps/terminal/table.h"
#include "core/error.h"
#include "core/json.h"
#include "cuda/device/device.h"
#include "data/formats/documents.h"
#include "models/inference/evaluation.h"

using namespace ricci;
using namespace ricci::apps;

namespace {

struct Options {
  std::string run;
  std::vector<std::string> documents;
  TextOptions text;  // in files
  bool json_lines = false;
  int64_t batch = 32;
  ModelOptions model;
};

// Converts the documents to a batch, padded with id 0 to the longest document.
Batch padded_batch(const std::vector<std::vector<int64_t>>& documents) {
  const auto rows = std::ssize(documents);
  size_t width = 0;
  for (const std::vector<int64_t>& ids : documents) width = std::max(width, ids.size());
  std::vector<int64_t> ids_bc, lengths_b;
  for (const std::vector<int64_t>& ids : documents) {
    ids_bc.insert(ids_bc.end(), ids.begin(), ids.end());
    lengths_b.push_back(std::ssize(ids));
    ids_bc.resize(lengths_b.size() * width);
  }
  return {.ids_bc = tensor_of(ids_bc, {rows, static_cast<int64_t>(width)}), .lengths_b = tensor_of(lengths_b, {rows})};
}

struct Document {
  std::string text, place;               // place: for messages
  const FormatTraits* format = nullptr;  // by default, the text is the document
  Json members = Json::object();         // members of the line
  std::string error = {};                // the reason why no class is predicted
};

class Predictor {
 public:
  explicit Predictor(const Options& options)
      : options_(options), open_(open_model(options.run, options.model)), config_(with_text(open_.run.config(), options.text)) {
    if (!is_classifier(open_.run.config()))
      fail("{}: is a language model, not a classifier; ricci generate continues a text", {open_.run.path()});
    classes_ = open_.run.labels();
    while (std::ssize(classes_) < open_.model.config().settings<Classifier>().classes) classes_.push_back(std::to_string(classes_.size()));
    for (const std::string& name : classes_) width_ = std::max(width_, one_line(name).size());
  }

  // Predicts --batch documents at a time, in their order.
  void add(const Document& document) {
    waiting_.push_back(document);
    if (std::ssize(waiting_) == options_.batch) print_waiting();
  }

  // Predicts each line of stdin as a document, even a blank line. If the run learned TSV, tabs separate the columns of a line.
  void add_lines() {
    const FormatTraits& format = traits_of(config_.format);
    const bool is_given = !options_.text.format.empty();
    if (is_given && format.read_header) fail("--format: {} cannot be read from stdin; name a file with --data", {format.name});
    int64_t number = 0;
    for (std::string line; next_line(std::cin, line, number);) {
      const std::string place = format_message("stdin:{}", {number});
      const bool has_format = format.read && (is_given || (&format == &kTsv && line.find('\t') != line.npos));
      if (!has_format) add({line, place});
      else add(is_blank(line) ? Document{"", place} : Document{line, place, &format});
    }
    if (std::cin.bad()) fail("cannot read from stdin: {}", {system_reason()});
  }

  void add_files() {
    const bool is_text = traits_of(config_.format).is_text();
    const DocumentOptions options{
        .format = config_.format, .documents = is_text ? "line" : "file", .keep_line_ends = false, .text_field = config_.text_field};
    DocumentReader reader({.files = TextSource(options_.text.paths).read_as(config_.encoding), .options = options}, complete_utf8_prefix);
    std::string text;
    for (DocumentPiece piece; reader.next(piece);) {
      text += piece.text;
      if (piece.ends) add({std::exchange(text, {}), piece.place});
    }
  }

  void finish() {
    print_waiting();
    if (cut_) std::fputs(format_message("warning: {} longer documents were cut after {} tokens\n", {cut_, open_.context}).c_str(), stderr);
    if (!first_error_.empty()) fail("{}", {first_error_});
  }

 private:
  // The document's ids; empty if it has no tokens or has an error.
  std::vector<int64_t> encode_one(Document& document) const {
    try {
      if (document.format == &kJsonl)
        if (const Json line = parse_json(document.text, document.place, {.depth = 64}); line.is_object()) document.members = line;
      if (document.format)
        document.text = document.format->read({document.text, {}, document.place}, {.text_field = config_.text_field}).text;
      const DocumentPiece piece{.text = document.text, .starts = true, .ends = true, .place = document.place};
      return encode(*open_.run.tokenizer(), {&piece, 1})[0];
    } catch (const Error& error) {
      document.error = error.what();
      return {};
    }
  }

  void print_waiting() {
    std::vector<std::vector<int64_t>> all, read;
    for (Document& document : waiting_) {
      std::vector<int64_t>& ids = all.emplace_back(encode_one(document));
      cut_ += std::ssize(ids) > open_.context;
      ids.resize(std::min(ids.size(), static_cast<size_t>(open_.context)));
      if (!ids.empty()) read.push_back(ids);
    }
    const Tensor probabilities_bk = read.empty() ? Tensor() : class_probabilities(open_.model, to(padded_batch(read), open_.device));
    const double* next = read.empty() ? nullptr : probabilities_bk.data<double>();
    for (size_t i = 0; i < all.size(); ++i) {
      const size_t count = all[i].empty() ? 0 : classes_.size();
      print(waiting_[i], {next, count});
      next += count;
    }
    std::fflush(stdout);
    waiting_.clear();
  }

  // p_k: the class probabilities; empty if the document has no tokens or has an error.
  void print(const Document& document, std::span<const double> p_k) {
    constexpr size_t kColumns = 80, kLeastText = 20;
    Json object{{"text", document.text}, {"class", nullptr}, {"label", nullptr}, {"probabilities", Json::object()}};
    std::string line = "-";
    if (!document.error.empty()) {
      if (first_error_.empty()) first_error_ = document.error;
      object["error"] = document.error;
    } else if (p_k.empty()) {
      std::fprintf(stderr, "warning: %s: has no tokens, and so no class\n", one_line(document.place).c_str());
    } else {
      const auto k = static_cast<size_t>(std::max_element(p_k.begin(), p_k.end()) - p_k.begin());
      object["class"] = k;
      object["label"] = classes_[k];
      line = one_line(classes_[k]);
    }
    line.resize(std::max(width_, line.size()), ' ');
    for (size_t k = 0; k < p_k.size(); ++k) {
      object["probabilities"][classes_[k]] = p_k[k];
      line += format_message("  {} {:.4f}", {one_line(classes_[k]), p_k[k]});
    }
    if (options_.json_lines) apps::print(to_text(with_results(document.members, object)));
    else apps::print(line + "  " + one_line(document.text, std::max(kLeastText, kColumns - std::min(kColumns, line.size() + 2))));
  }

  const Options& options_;
  OpenModel open_;
  TrainConfig config_;  // the run's config, changed by the text options
  std::vector<std::string> classes_;
  size_t width_ = 0;  // bytes of the longest class name
  int64_t cut_ = 0;   // documents
  std::vector<Document> waiting_;
  std::string first_error_;
};

int predict(Options& options) {
  const std::vector<std::string>& given = options.documents;
  const bool reads_files = !options.text.paths.empty();
  if (options.json_lines && !reads_files && options.text.format.empty()) options.text.format = kJsonl.name;
  Predictor predictor(options);
  for (size_t i = 0; i < given.size(); ++i) predictor.add({given[i], format_message("text {}", {i + 1})});
  if (reads_files) predictor.add_files();
  else if (given.empty()) predictor.add_lines();
  predictor.finish();
  return 0;
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("run", options.run, kWeightsHelp)->required();
  CLI::Option* const documents = app.add_option("texts", options.documents, "Documents to classify; by default the lines of stdin");
  keep_brackets(documents);
  CLI::Option* const data =
      app.add_option("--data", options.text.paths, "Files or folders with documents (plain text: one per line)")->excludes(documents);
  add_text_options(app, options.text, true);
  app.get_option("--encoding")->needs(data);
  app.add_flag("--jsonl", options.json_lines, "Read and write JSON lines; the document is in the run's text_field, or \"text\"");
  app.add_option("--batch", options.batch, "Documents per batch (1: immediate answers)")->check(at_least_one)->capture_default_str();
  add_model_options(app, options.model, "Tokens of a document that are read");
}

}  // namespace

const Command ricci::apps::predict_command{{.name = "ricci predict",
                                               .summary = "Predicts the classes of documents with a trained classifier.",
                                               .examples = "ricci predict reviews 'a touching film' 'a dull one'\n"
                                                           "ricci predict reviews <reviews.txt"},
    with_options<Options, add_options, predict>};
