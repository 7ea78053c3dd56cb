// A training run as a struct: the keys of a run file, with their defaults.
#pragma once
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/config.h"
#include "models/decoding/sampling.h"
#include "models/training/optimizer.h"
#include "models/training/schedule.h"
#include "models/training/train_step.h"

namespace ricci::apps {

// The text that a run writes of itself.
struct SampleConfig {
  std::string prompt = "\n";
  int64_t tokens = 200;
  Sampling sampling;
};

struct TrainConfig {
  std::string name = "run";
  ModelConfig model;

  std::vector<std::string> data = {"embedded"};
  std::vector<std::string> validation;
  double train_fraction = 0.9;
  std::string tokenizer = "char";

  int64_t batch = 12;
  int64_t accumulation = 1;
  bool batch_invariant = false;
  std::string recompute = "none";
  std::optional<int64_t> context;
  int64_t steps = 2000;
  double lr = 1e-3;
  double min_lr = 1e-4;
  int64_t warmup = 100;
  std::string schedule = "cosine";
  double decay_fraction = 0.2;
  std::string optimizer = "adamw";
  double beta1 = 0.9;
  double beta2 = 0.99;
  double eps = 1e-8;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0.1;
  bool decay_embeddings = true;
  double clip = 1;

  uint64_t seed = 1337;
  std::string device = "cpu";
  std::string precision = "f32";
  bool cuda_graph = false;
  int64_t threads = 0;

  int64_t eval_every = 250;
  int64_t eval_batches = 0;
  int64_t log_every = 10;
  int64_t checkpoint_every = 250;
  int64_t keep_checkpoints = 2;
  SampleConfig sample;
};

template <std::same_as<SampleConfig> Config, class Field> void visit_fields(Config& c, Field&& field) {
  field("prompt", c.prompt, "text to continue");
  field("tokens", c.tokens, "tokens to write; 0: no sample");
  field("temperature", c.sampling.temperature, "logits are divided by it; 0: always the most probable token");
  field("top_k", c.sampling.top_k, "draw from the k most probable tokens; 0: from all");
  field("top_p", c.sampling.top_p, "draw from the most probable tokens that together have this probability");
  field("seed", c.sampling.seed, "of the draws");
}

template <std::same_as<TrainConfig> Config, class Field> void visit_fields(Config& c, Field&& field) {
  field("name", c.name, "of the run; its folder is runs/NAME");
  field("model", c.model, "");
  field("data", c.data, "files or folders with the text, plain or compressed; embedded: the built-in corpus");
  field("validation", c.validation, "files or folders; [] for the end of data");
  field("train_fraction", c.train_fraction, "part of data that trains when validation is not given");
  field("tokenizer", c.tokenizer, "a token is a Unicode character, or a byte", {"char", "byte"});
  field("batch", c.batch, "sequences that are computed together");
  field("accumulation", c.accumulation, "batches per step, whose gradients are added up");
  field("recompute", c.recompute, "activations that are computed again in the backward instead of kept: less memory, more time",
        {"none", "blocks"});
  field("batch_invariant", c.batch_invariant, "the same bits however a step is cut into batches: one sequence at a time");
  field("context", c.context, "tokens per sequence; null: model.ctx");
  field("steps", c.steps, "optimizer steps");
  field("lr", c.lr, "highest learning rate");
  field("min_lr", c.min_lr, "learning rate where the schedule ends");
  field("warmup", c.warmup, "steps of linear growth up to lr");
  field("schedule", c.schedule, "from lr to min_lr after the warm-up; constant stays at lr, wsd falls at the end only",
        {"cosine", "linear", "constant", "inverse_sqrt", "wsd"});
  field("decay_fraction", c.decay_fraction, "wsd: part of all steps in which the learning rate falls");
  field("optimizer", c.optimizer, "adamw decays weights apart from the gradient, adam and sgd as a part of it",
        {"adamw", "adam", "sgd"});
  field("beta1", c.beta1, "adamw, adam: decay of the mean gradient");
  field("beta2", c.beta2, "adamw, adam: decay of the mean squared gradient");
  field("eps", c.eps, "adamw, adam: added to the root of the mean squared gradient");
  field("momentum", c.momentum, "sgd: decay of the sum of gradients; 0: none");
  field("nesterov", c.nesterov, "sgd: Nesterov's momentum");
  field("weight_decay", c.weight_decay, "of matrices and embeddings; biases and the gains of norms never decay");
  field("decay_embeddings", c.decay_embeddings, "the tables of tokens and positions decay too");
  field("clip", c.clip, "largest norm of the gradient; 0: any");
  field("seed", c.seed, "of weights, batches and dropout");
  field("device", c.device, "where tensors live", {"cpu", "cuda", "cuda_emulated"});
  field("precision", c.precision, "of weights and activations; bf16: sums, the optimizer and the saved weights stay f32", {"f32", "bf16"});
  field("cuda_graph", c.cuda_graph, "record the work of a step once and launch it as a whole; for small batches");
  field("threads", c.threads, "CPU threads; 0: all");
  field("eval_every", c.eval_every, "steps between evaluations; 0: only after the last step");
  field("eval_batches", c.eval_batches, "batches per evaluation, always the same; 0: the whole validation text");
  field("log_every", c.log_every, "steps between records of metrics");
  field("checkpoint_every", c.checkpoint_every, "steps between checkpoints; 0: at the end and at the best evaluations only");
  field("keep_checkpoints", c.keep_checkpoints, "newest checkpoints that are kept, beside the best");
  field("sample", c.sample, "");
}

// The optimizer, the training step and the learning rate that the config describes.
OptimizerConfig optimizer_config(const TrainConfig& config);
TrainStepOptions step_options(const TrainConfig& config);
Schedule schedule_of(const TrainConfig& config);

// Whether a run that goes on may have another value of this key than it had before, because what is trained does not
// depend on it.
bool may_change(const std::string& key);

// Hooks of load_config (apps/config/config.h). check lets vocab be 0: the tokenizer gives it later.
inline void apply_preset(TrainConfig& config) { apply_preset(config.model); }
void check(const TrainConfig& config);  // error: the first value that cannot be, as "lr: -1, expected more than 0"
void resolve(TrainConfig& config);      // fills in what follows from other keys: context, model.ff, model.levels

}  // namespace ricci::apps
