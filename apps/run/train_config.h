// A training run as a struct: the keys of a run file, with their defaults.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/choice.h"
#include "data/formats/formats.h"
#include "data/text/utf8.h"
#include "data/tokenizers/tokenizer.h"
#include "models/config.h"
#include "models/inference/sampling.h"
#include "models/training/optimizer.h"
#include "models/training/schedule.h"
#include "models/training/train_step.h"

namespace ricci::apps {

enum class Recompute : uint8_t { none, blocks };
constexpr auto choices(Recompute) { return std::array{"none", "blocks"}; }

enum class Precision : uint8_t { f32, bf16 };
constexpr auto choices(Precision) { return std::array{"f32", "bf16"}; }
inline Dtype storage_dtype(Precision precision) { return precision == Precision::bf16 ? Dtype::bf16 : Dtype::f32; }

// The order of training sequences (data/feeds).
enum class Order : uint8_t { crops, columns, shuffled };
constexpr auto choices(Order) { return std::array{"crops", "columns", "shuffled"}; }

// Divides documents into training sequences: documents one after the other, cut at sequence ends (stream), one document per sequence
// (none), or documents that fit together into one sequence (best).
enum class Pack : uint8_t { stream, none, best };
constexpr auto choices(Pack) { return std::array{"stream", "none", "best"}; }

struct SampleConfig {  // the text that a run writes
  int64_t tokens = 200, every = 0;
  std::string prompt = "\n";
  Sampling sampling;
};

struct TrainConfig {
  std::string name = "run", runs;
  ModelConfig model;

  std::vector<std::string> data = {"embedded"}, validation;
  double train_fraction = 0.9;
  DocumentFormat format = {};  // text
  Encoding encoding = Encoding::utf8;
  std::string text_field, label_field;
  std::vector<std::string> labels, chat;
  Order order = Order::crops;
  std::vector<double> weights;
  int64_t shuffle_buffer = 1024;
  Pack pack = Pack::stream;
  std::string tokenizer = "char";
  Eos eos = Eos::none;

  std::string init;
  std::vector<std::string> freeze;

  int64_t batch = 12, accumulation = 1;
  bool batch_invariant = false;
  Recompute recompute = Recompute::none;
  std::optional<int64_t> context;
  int64_t steps = 2000;
  Schedule schedule;
  OptimizerConfig optimizer;
  double clip = 1;

  uint64_t seed = 1337;
  Device device = Device::cpu;
  Precision precision = Precision::f32, reduce_dtype = Precision::f32;
  bool cuda_graph = false;
  int64_t threads = 0, rank_timeout = 300;

  int64_t eval_every = 250, eval_batches = 0, eval_from = 0, patience = 0;
  int64_t log_every = 10, norms_every = 0, checkpoint_every = 250, keep_checkpoints = 2;
  SampleConfig sample;

  // The keys set by a file, the command line or `init`. The run's config.yaml contains only these keys.
  std::set<std::string> given = {};

  int64_t sequence_length() const { return context.value_or(model.ctx); }  // tokens
  // The sequences of a micro-batch, and the micro-batches of a step. With batch_invariant, a micro-batch is one sequence, so the order of
  // sums does not depend on the batch size.
  int64_t sequences() const { return batch_invariant ? 1 : batch; }
  int64_t micro_batches() const { return batch_invariant ? batch * accumulation : accumulation; }
};

inline bool is_classifier(const TrainConfig& config) { return config.model.traits().objective == Objective::label; }
// True if the loss scores only some tokens of a document, such as answers.
inline bool has_mask(const TrainConfig& config) { return traits_of(config.format).has_mask(); }
inline bool is_chat(const TrainConfig& config) { return traits_of(config.format).has_template; }
// True if an end token separates documents, that is, a language model learns them without a template.
inline bool ends_documents(const TrainConfig& config) {
  const FormatTraits& format = traits_of(config.format);
  return !format.is_text() && !format.has_template && !is_classifier(config);
}
inline bool writes_samples(const TrainConfig& config) { return config.sample.tokens > 0 && config.model.traits().writes_text(); }
// True if the run learns conversations, starts from a model that learned them, or was imported.
inline bool has_chat(const TrainConfig& c) {
  return !c.chat.empty() && c.model.traits().writes_text() && (is_chat(c) || !c.init.empty() || c.data.empty());
}
// True if documents are read in random order (always for classifiers and data with answers).
inline bool is_shuffled(const TrainConfig& config) { return config.order == Order::shuffled || is_classifier(config) || has_mask(config); }

void visit_fields(TrainConfig& config, const Fields& field);

// The format implied by the file names; plain text and no file if the config sets a format.
NamedFormat named_format(const TrainConfig& config);

TrainStepOptions step_options(const TrainConfig& config, int64_t first_micro_batch = 0);

// Hooks of load_config (apps/run/config.h). A vocab of 0 is allowed: the tokenizer later determines the size.
void apply_preset(TrainConfig& config);
void check(const TrainConfig& config);  // error: the first invalid value, as in "lr: -1, expected more than 0"
// Errors: a step has fewer micro-batches than ranks (the message suggests keys with the same sequences, if possible); a key is
// supported only with one process.
void check_shared(const TrainConfig& config, int64_t ranks);

// ---- Derived values. The config keeps only the user's request.
// True if eos was not given. The default of eos depends on the format (apply_preset) and on the tokenizer.
inline bool follows_tokenizer_eos(const TrainConfig& config) { return !config.given.contains("eos"); }
// The model config with the tokenizer's vocabulary size, if known. model.vocab can exceed the vocabulary of a tokenizer file.
ModelConfig model_config(const TrainConfig& config, const Tokenizer* tokenizer);
// Returns a copy with all derived values, such as context, model.ff and the tokenizer's end of documents.
TrainConfig resolved(TrainConfig config, const Tokenizer* tokenizer = nullptr);

// The ids that end a text: `ends`, with the token that ends an answer in second position if the run learned conversations.
std::vector<int64_t> with_answer_end(std::vector<int64_t> ends, const TrainConfig& config, const Tokenizer& tokenizer);

// For a config that a program made: marks keys as given if they differ from the defaults of its family, mixer and preset.
void give_differing(TrainConfig& config);

}  // namespace ricci::apps
