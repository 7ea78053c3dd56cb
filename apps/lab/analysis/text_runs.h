// Trained language models and the texts that they are analysed on.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "apps/terminal/model_options.h"
#include "data/shards/tokens.h"

namespace ricci::apps {

struct TextRunOptions {
  std::vector<std::string> runs;  // folders
  std::vector<std::string> data;  // files to read in place of the validation text of each run
  ModelOptions model;
};

// --data, and those of add_model_options.
void add_text_options(CLI::App& app, TextRunOptions& options);

struct TextRun {
  std::string name;  // as in tables: that of the folder, or the path where several folders have the same name
  OpenModel open;
  Tokens tokens;  // the text
};

// A language model without a text, such as a judge of other models' texts. Errors: those of open_text_run but for the text.
OpenModel open_language_model(const std::string& run, const ModelOptions& options, const std::vector<Family>& families);

// Error: a run that learns from no text, such as a classifier; one of a family that is not among `families`.
TextRun open_text_run(const std::string& run, const TextRunOptions& options, const std::vector<Family>& families);
// All of them, with names that differ.
std::vector<TextRun> open_text_runs(const TextRunOptions& options, const std::vector<Family>& families);

// The text that the run learned from. Error: it has none, as an imported run.
Tokens training_text(const TextRun& run);

// A token, or several, so that it can be seen in one line: blanks, line ends and tabs as signs, bytes that are no character as U+FFFD.
std::string shown(const Tokenizer& tokenizer, int64_t id);
std::string shown(const Tokenizer& tokenizer, const std::vector<int64_t>& ids);

// The tokens [first, first + count) of a text.
std::vector<int64_t> ids_at(const Tokens& tokens, int64_t first, int64_t count);
// The same as sequences of a batch, [b c], on a device.
Tensor ids_tensor(const std::vector<int64_t>& ids, int64_t sequences, Device device);

}  // namespace ricci::apps
