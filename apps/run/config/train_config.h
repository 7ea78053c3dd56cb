// A training run as a struct: the keys of a run file, with their defaults.
#pragma once
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/names.h"
#include "data/shards/records.h"
#include "data/tokenizers/eos_tokenizer.h"
#include "models/config.h"
#include "models/decoding/sampling.h"
#include "models/training/optimizer.h"
#include "models/training/schedule.h"
#include "models/training/train_step.h"

namespace ricci::apps {

enum class Recompute : uint8_t { none, blocks };
constexpr auto choices(Recompute) { return std::array{"none", "blocks"}; }

enum class Precision : uint8_t { f32, bf16 };
constexpr auto choices(Precision) { return std::array{"f32", "bf16"}; }
inline Dtype storage_dtype(Precision precision) { return precision == Precision::bf16 ? Dtype::bf16 : Dtype::f32; }

// How training sequences are drawn (data/feeds/text_batches.h, data/feeds/sequence_stream.h).
enum class Order : uint8_t { crops, columns, shuffled };
constexpr auto choices(Order) { return std::array{"crops", "columns", "shuffled"}; }

// The text that a run writes of itself.
struct SampleConfig {
  int64_t tokens = 200;
  int64_t every = 0;  // steps; 0: only at the end
  std::string prompt = "\n";
  Sampling sampling;
};

// The rows of data: sorter (data/feeds/sorter.h).
struct SortingConfig {
  int64_t symbols = 3;
  int64_t length = 11;
};

struct TrainConfig {
  std::string name = "run", runs;
  ModelConfig model;

  std::vector<std::string> data = {"embedded"};
  std::vector<std::string> validation;
  double train_fraction = 0.9;
  SortingConfig sorting;
  DocumentFormat format = DocumentFormat::text;
  std::string text_field, label_field;
  Order order = Order::crops;
  std::vector<double> weights;
  int64_t shuffle_buffer = 1024;
  std::string tokenizer = "char";
  Eos eos = Eos::none;

  std::string init;
  std::vector<std::string> init_changes;
  std::vector<std::string> freeze;

  int64_t batch = 12;
  int64_t accumulation = 1;
  bool batch_invariant = false;
  Recompute recompute = Recompute::none;
  std::optional<int64_t> context;
  int64_t steps = 2000;
  Schedule schedule;
  OptimizerConfig optimizer;
  double clip = 1;

  uint64_t seed = 1337;
  Device device = Device::cpu;
  Precision precision = Precision::f32;
  bool cuda_graph = false;
  int64_t threads = 0;

  int64_t eval_every = 250;
  int64_t eval_batches = 0;
  int64_t eval_from = 0;
  int64_t patience = 0;
  int64_t log_every = 10;
  int64_t checkpoint_every = 250;
  int64_t keep_checkpoints = 2;
  SampleConfig sample;
};

// Whether the tokenizer has a vocabulary of written pieces, to which <eos> can be added.
bool has_pieces(const TrainConfig& config);

// Whether the data is generated.
inline bool is_sorting(const TrainConfig& config) { return config.data == std::vector<std::string>{"sorter"}; }

inline bool is_classifier(const TrainConfig& config) { return config.model.family == Family::classifier; }
// Whether training goes through the documents in a random order; a classifier always does.
inline bool is_shuffled(const TrainConfig& config) { return config.order == Order::shuffled || is_classifier(config); }

// A sample does not change what is trained.
template <class Field> auto free_to_change(Field& field) {
  return [&field](const char* key, auto& member, const char* description, KeyInfo info = {}) {
    info.may_change = true;
    field(key, member, description, info);
  };
}

template <std::same_as<SampleConfig> Config, class Field> void visit_fields(Config& c, Field&& field) {
  auto free = free_to_change(field);
  free("tokens", c.tokens, "tokens to write; 0: no sample (family: 0 for classifier and coarse)");
  free("every", c.every, "steps between samples; 0: only after the last step");
  free("prompt", c.prompt, "text to continue");
  visit_fields(c.sampling, free);
}

template <std::same_as<SortingConfig> Config, class Field> void visit_fields(Config& c, Field&& field) {
  field("sort_symbols", c.symbols, "how many different ones there are: a, b, c ...");
  field("sort_length", c.length, "symbols of a sequence");
}

// Whether a value is a path. Data and tokenizers have names of their own beside it, such as embedded and char.
inline bool names_data_file(const std::string& text) { return text != "embedded" && text != "sorter"; }
bool names_vocabulary_file(const std::string& text);
inline bool names_any_file(const std::string&) { return true; }

// The text, and what a token is. A run that goes on may find its text elsewhere: it is compared by its contents.
template <class Field> void visit_text_fields(TrainConfig& c, Field& field) {
  field("data", c.data,
      "files or folders with the text, plain or compressed, or with shards of tokens; embedded: the built-in corpus; sorter: generated "
      "sequences to sort",
      {.decides = true, .may_change = true, .names_file = names_data_file});
  visit_fields(c.sorting, read_when(field, is_sorting(c), "data: sorter"));
  auto given = read_when(field, !is_sorting(c), "data that is not generated");
  given("validation", c.validation, "files or folders; [] for the end of data",
      {.decides = true, .may_change = true, .names_file = names_data_file});
  auto splitting = read_when(given, c.validation.empty(), "validation: []");
  splitting("train_fraction", c.train_fraction, "part of data that trains, the rest is validation");
  given("format", c.format, "of both; jsonl: an object per line; tsv: columns between tabs", decides());
  auto fields = read_when(field, c.format != DocumentFormat::text, "format: tsv or jsonl");
  fields("text_field", c.text_field, "with the text of a document; jsonl: a name, empty: text; tsv: a column from 1, empty: the last");
  auto labels = read_when(field, is_classifier(c), "family: classifier");
  labels("label_field", c.label_field, "the same of the label, an integer from 0 to model.classes - 1; shards have theirs");
  given("tokenizer", c.tokenizer,
      "char or byte; word, bpe or wordpiece: made from the training text, of model.vocab tokens; or a file, such as tokenizer.json",
      {.decides = true, .names_file = names_vocabulary_file});
  auto ending = read_when(field, has_pieces(c), "tokenizer: word, bpe, wordpiece or a file");
  ending("eos", c.eos, "put <eos> behind every line or document; none: as a tokenizer file says");
}

// In which order training goes through the data.
template <class Field> void visit_order_fields(TrainConfig& c, Field& field) {
  auto given = read_when(field, !is_sorting(c), "data that is not generated");
  auto packing = read_of(given, c.model, kLanguageModels);
  packing("order", c.order,
      "crops: from anywhere in the data, drawn each time; columns: the data in as many columns as a step has sequences, read in "
      "consecutive windows; shuffled: the documents in a random order, each once per epoch",
      decides());
  auto streaming = read_when(field, is_shuffled(c), "order: shuffled");
  streaming("weights", c.weights, "of the entries of data, to mix them: sequences in proportion; []: their numbers of tokens");
  streaming("shuffle_buffer", c.shuffle_buffer, "sequences that are mixed with each other; 1: they stay in the order of their documents");
}

// A training step, and where it is computed.
template <class Field> void visit_step_fields(TrainConfig& c, Field& field) {
  field("batch", c.batch, "sequences that are computed together");
  field("accumulation", c.accumulation, "batches per step, whose gradients are added up");
  field("recompute", c.recompute, "activations that are computed again in the backward instead of kept: less memory, more time",
      may_change());
  field("batch_invariant", c.batch_invariant, "the same bits however a step is divided into batches: one sequence at a time");
  field("context", c.context, "tokens per sequence; null: model.ctx");
  field("steps", c.steps, "optimizer steps", may_change());
  visit_fields(c.schedule, field);
  visit_fields(c.optimizer, field);
  field("clip", c.clip, "largest norm of the gradient; 0: any");
  field("seed", c.seed, "of weights, batches and dropout");
  field("device", c.device, "where tensors live");
  field("precision", c.precision, "of weights and activations; bf16: sums, the optimizer and the saved weights stay f32");
  field("cuda_graph", c.cuda_graph, "record the work of a step once and launch it as a whole; for small batches", may_change());
  field("threads", c.threads, "CPU threads; 0: all", may_change());
}

template <std::same_as<TrainConfig> Config, class Field> void visit_fields(Config& c, Field&& field) {
  field("name", c.name, "of the run; its folder is NAME in `runs`", may_change());
  field("runs", c.runs, "folder of the runs' folders; empty: $RICCI_RUNS, or runs where that is not set", may_change());
  field("model", c.model, "");
  visit_text_fields(c, field);
  field("init", c.init,
      "a run folder, one of its checkpoints or another file of weights to start from; it gives the keys of model and tokenizer their "
      "defaults",
      {.decides = true, .names_file = names_any_file});
  field("init_changes", c.init_changes, "keys of model, and tokenizer, in which this run may differ from init", decides());
  field("freeze", c.freeze, "parameters that stay as they are: paths or beginnings of them, * for one part, as in tok or blocks.*.mixer");
  visit_order_fields(c, field);
  visit_step_fields(c, field);
  field("eval_every", c.eval_every, "steps between evaluations; 0: only after the last step", may_change());
  field("eval_batches", c.eval_batches, "batches per evaluation, always the same; 0: the whole validation text", may_change());
  auto scoring =
      read_when(field, !is_sorting(c) && writes_text(c.model.family), "data that is not generated and a family that writes text");
  scoring("eval_from", c.eval_from, "first position of a window that evaluations score; 0: they score all that the loss counts");
  field("patience", c.patience, "training ends at the evaluation that comes so many steps after the best one, or more; 0: never",
      may_change());
  field("log_every", c.log_every, "steps between records of metrics", may_change());
  field("checkpoint_every", c.checkpoint_every, "steps between checkpoints; 0: at the end and at the best evaluations only", may_change());
  field("keep_checkpoints", c.keep_checkpoints, "newest checkpoints that are kept, beside the best", may_change());
  field("sample", c.sample, "");
}

// The training step that the config describes.
TrainStepOptions step_options(const TrainConfig& config);

// Hooks of load_config (apps/run/config/config.h). check lets vocab be 0: the tokenizer gives it later.
inline void apply_preset(TrainConfig& config) {
  apply_preset(config.model);
  if (!writes_text(config.model.family)) config.sample.tokens = 0;
}
void check(const TrainConfig& config);  // error: the first value that cannot be, as "lr: -1, expected more than 0"
void resolve(TrainConfig& config);      // fills in what follows from other keys: context, model.ff

}  // namespace ricci::apps
