// Trained language models and the texts that they are analysed on.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "apps/run/options.h"
#include "data/shards/tokens.h"

namespace ricci::apps {

struct TextRunOptions {
  std::vector<std::string> runs;  // folders
  std::vector<std::string> data;  // files to read in place of the validation text of each run
  ModelOptions model;
};

// --data, and the options of add_model_options.
void add_text_options(CLI::App& app, TextRunOptions& options);

struct TextRun : OpenModel {
  std::string name;  // as in tables: the name of the folder, or the path where several folders have the same name
  Tokens tokens;     // the text

  const TrainConfig& config() const { return run.config(); }
  const Tokenizer& tokenizer() const { return *run.tokenizer(); }
};

// A language model without a text, such as a judge of other models' texts. Errors: a run that learns from no text, such as a classifier;
// one of a family that is not among `families`; as for open_model.
OpenModel open_language_model(const std::string& run, const ModelOptions& options, const std::vector<Family>& families);

// All of them, with names that differ. Errors: as for open_language_model; no text.
std::vector<TextRun> open_text_runs(const TextRunOptions& options, const std::vector<Family>& families);

// The text that the run learned from. Error: it has none, as an imported run.
Tokens training_text(const TextRun& run);

// Tokens so that they can be seen in one line: line ends and tabs as signs, and blanks, too, with_blanks; bytes that are no character as
// U+FFFD. A token without text is "id 5".
std::string shown(const Tokenizer& tokenizer, const std::vector<int64_t>& ids, bool with_blanks);

// The first tokens of stretches of `length` tokens, at most `max` of them, spread over a text of `size` tokens.
std::vector<int64_t> spread_over(int64_t size, int64_t length, int64_t max);

// Calls use(starts) for the windows, in groups that the model computes at a time, with a bar.
void in_batches(const TextRun& run, std::span<const int64_t> starts, const std::function<void(std::span<const int64_t> starts)>& use);

// The tokens [first, first + count) of a text.
std::vector<int64_t> ids_at(const Tokens& tokens, int64_t first, int64_t count);
// The same as sequences of a batch, [b c], on a device.
Tensor ids_tensor(const std::vector<int64_t>& ids, int64_t sequences, Device device);

}  // namespace ricci::apps
