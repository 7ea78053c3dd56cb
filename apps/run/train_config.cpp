// Lists the keys of a training run, and checks their combinations.
#include "apps/run/train_config.h"

#include <algorithm>
#include <cmath>

#include "apps/run/config.h"
#include "core/error.h"
#include "data/tokenizers/chat.h"
#include "data/tokenizers/kinds.h"

namespace ricci::apps {
namespace {

bool names_any_file(const std::string&) { return true; }
bool names_data_file(const std::string& text) { return text != "embedded"; }
bool names_vocabulary_file(const std::string& text) { return !find_tokenizer_kind(text); }
std::string with_mask() { return list_of_formats(&FormatTraits::has_mask, " or "); }
std::string without_mask() { return list_of_formats(&FormatTraits::is_documents, " or "); }

void visit_fields(SampleConfig& c, const Fields& all) {
  const Fields field = all.free_to_change();
  field("tokens", c.tokens, "tokens to write (0: no sample, the default for classifier and coarse models)").at_least(0).follows();
  field("every", c.every, "steps between samples (0: only after the last step)").at_least(0);
  field("prompt", c.prompt,
      "text to continue (by default a newline, for data with answers the first question, or with eos=document the start of a document)");
  visit_fields(c.sampling, field);
}

// The path of a text can change while a run continues: texts are compared by content.
void visit_text_fields(TrainConfig& c, const Fields& field) {
  field("data", c.data, "files or folders with the text, plain or compressed, or token shards (embedded: the built-in text)")
      .decides()
      .may_change()
      .file(names_data_file);
  field("validation", c.validation, "files or folders ([]: the last part of data)").decides().may_change().file(names_data_file);
  const Fields splitting = field.when(c.validation.empty(), "validation: []");
  splitting("train_fraction", c.train_fraction, "share of data for training; the rest is for validation").within({0, 1, false, false});
  static const std::string format_help = "format of data and validation; " + describe_formats(&FormatTraits::lines) + " (" +
                                         list_of_formats(&FormatTraits::has_suffix, " or ") + " if data is named so, else text)";
  field("format", c.format, format_help.c_str()).decides();
  field("encoding", c.encoding, "encoding of data and validation, unless they are shards (bytes: any file, unchanged)").may_change();
  const Fields talking = field.when(is_chat(c) || has_chat(c), "init, or format: messages");
  talking("chat", c.chat,
      "chat template: chatml, llama3, or the strings start, system, user, assistant, end, answer, with {content} for a text; by default "
      "init's template, or chatml for messages")
      .decides();
  static const std::string field_help = "field or column of the text; " + describe_formats(&FormatTraits::fields);
  const Fields fields = field.when(traits_of(c.format).has_fields(), "format: " + list_of_formats(&FormatTraits::has_fields, " or "));
  fields("text_field", c.text_field, field_help.c_str());
  const Fields labels = field.when(is_classifier(c), "family: classifier");
  labels("label_field", c.label_field, "field or column of the label (a word, or 0 .. model.classes - 1); shards contain labels");
  labels("labels", c.labels, "names of the classes 0, 1, ..., if labels are words ([]: the shards' names, else the words in data, sorted)")
      .may_change();
  field("tokenizer", c.tokenizer,
      "char, byte, word or bpe, or a file such as tokenizer.json; word and bpe are made from the training text, with model.vocab tokens")
      .decides()
      .file(names_vocabulary_file);
  const Fields ending = field.when(!is_chat(c), "a format without a template: text, jsonl, tsv, csv or pairs");
  ending("eos", c.eos,
      "put <eos>, or the tokenizer's own end of text, after each line or document (none: as in the tokenizer file; default: document for "
      "jsonl, tsv, csv and pairs without labels)")
      .follows();
}

void visit_order_fields(TrainConfig& c, const Fields& field) {
  const Fields packing = field.when(!has_mask(c) && c.model.traits().is_language_model(),
      "a format without answers (" + without_mask() + "), and a family other than classifier");
  packing("order", c.order,
      "crops are random windows of the data; with columns, each sequence of a step reads its own part of the data, window after window; "
      "shuffled reads documents in random order, each once per epoch")
      .decides();
  const Fields streaming = field.when(is_shuffled(c), "order: shuffled");
  streaming("weights", c.weights, "share of the sequences for each entry of data ([]: in proportion to its tokens)").positive();
  streaming("shuffle_buffer", c.shuffle_buffer,
      "sequences that are shuffled together (1: in document order); with pack: best, documents among which the best fit is chosen")
      .in(1, 1 << 24);
  const Fields sharing = field.when(is_shuffled(c) && !is_classifier(c), "order: shuffled, or format: " + with_mask());
  static const std::string pack_help = "how documents become sequences: stream (one after the other, cut at sequence ends), none (one "
                                       "each, the default for " +
                                       with_mask() + ") or best (documents that fit together share one and attend to each other)";
  sharing("pack", c.pack, pack_help.c_str()).follows();
}

void visit_step_fields(TrainConfig& c, const Fields& all) {
  const Fields batch = all.group("batch");
  batch("batch", c.batch, "sequences computed together").at_least(1);
  batch("accumulation", c.accumulation, "batches per step; their gradients are added").at_least(1);
  batch("recompute", c.recompute, "activations that the backward pass recomputes, to save memory at the cost of time").may_change();
  batch("batch_invariant", c.batch_invariant, "compute one sequence at a time, for equal bits with any division of a step into batches");
  batch("context", c.context, "tokens per sequence (null: model.ctx)").at_least(1);
  const Fields schedule = all.group("schedule");
  schedule("steps", c.steps, "optimizer steps").at_least(1).may_change();
  visit_fields(c.schedule, schedule);
  const Fields optimizer = all.group("optimizer");
  visit_fields(c.optimizer, optimizer);
  optimizer("clip", c.clip, "largest gradient norm (0: no limit)").at_least(0);
}

void visit_device_fields(TrainConfig& c, const Fields& all) {
  const Fields field = all.group("device");
  field("seed", c.seed, "seed for weights, batches and dropout");
  field("device", c.device, "device for the tensors");
  field("precision", c.precision, "type of weights and activations; with bf16, sums, optimizer state and saved weights stay f32");
  field("cuda_graph", c.cuda_graph, "record a step once and launch it as one CUDA graph; faster for small batches").may_change();
  field("threads", c.threads, "CPU threads (0: all)").in(0, 1024).may_change();
  field("reduce_dtype", c.reduce_dtype, "type of gradients sent between processes; bf16 halves the bytes");
  field(
      "rank_timeout", c.rank_timeout, "seconds that a process waits for the others before it ends all processes and lists the missing ones")
      .at_least(1)
      .may_change();
}

void visit_watch_fields(TrainConfig& c, const Fields& of_run) {
  const Fields all = of_run.group("evaluation"), field = all.free_to_change();
  field("eval_every", c.eval_every, "steps between evaluations (0: only after the last step)").at_least(0);
  field("eval_batches", c.eval_batches, "batches per evaluation, always the same (0: all of the validation text)").at_least(0);
  const Fields scoring = all.when(
      !has_mask(c) && c.model.traits().writes_text(), "a format without answers (" + without_mask() + "), and a family that writes text");
  scoring("eval_from", c.eval_from, "first position of a window that evaluations score (0: all that training scores)").at_least(0);
  field("patience", c.patience, "training ends at the first evaluation at least this many steps after the best one (0: never)").at_least(0);
  field("log_every", c.log_every, "steps between metrics records").at_least(1);
  field("norms_every", c.norms_every,
      "steps between records of the gradient and weight norms of each part, such as grad_norm.blocks.0 (0: never)")
      .at_least(0);
  field("checkpoint_every", c.checkpoint_every, "steps between checkpoints (0: only at the end and at the best evaluations)").at_least(0);
  field("keep_checkpoints", c.keep_checkpoints, "number of newest checkpoints to keep, in addition to the best").at_least(1);
}

void check_data(const TrainConfig& c) {
  for (const std::string& path : c.data)
    if (path.empty()) fail("data: a path is empty");
  if (!find_tokenizer_kind(c.tokenizer) && !names_tokenizer_file(c.tokenizer))
    fail("tokenizer: expected one of {} or a file, got '{}'{}",
        {list_of_tokenizers(), one_line(c.tokenizer),
            c.tokenizer == "gpt2" ? "; the file of GPT-2 is its tokenizer.json or vocab.bpe" : ""});
  if (!c.weights.empty() && c.weights.size() != c.data.size())
    fail("weights: has {} entries, expected {} (one for each entry of data)", {c.weights.size(), c.data.size()});
  constexpr int64_t most = INT32_MAX;  // a sequence index uses 32 of the 64 bits of its random number's index
  if (c.batch > most || c.accumulation > most || c.batch * c.accumulation > most)
    fail("batch: {} times accumulation = {} is more than {} sequences per step", {c.batch, c.accumulation, most});
  if (c.context && *c.context > c.model.ctx) fail("context: {} exceeds model.ctx = {}", {*c.context, c.model.ctx});
}

void check_classifier(const TrainConfig& c) {
  if (!traits_of(c.format).is_text() && c.label_field.empty())
    fail("label_field: is not set, but a classifier (model.family) learns from labelled documents");
  const int64_t classes = c.model.settings<Classifier>().classes;
  if (!c.labels.empty() && std::ssize(c.labels) != classes)
    fail("labels: has {} names, expected {} (model.classes)", {c.labels.size(), classes});
  for (auto label = c.labels.begin(); label != c.labels.end(); ++label)
    if (label->empty() || std::find(c.labels.begin(), label, *label) != label)
      fail("labels: '{}' is empty or a duplicate", {one_line(*label)});
  if (!traits_of(c.format).has_fields() && !c.label_field.empty())
    fail("label_field: is supported only by {}, not by {}", {list_of_formats(&FormatTraits::has_fields, " and "), name_of(c.format)});
}

void check_mask(const TrainConfig& c) {
  const std::string format = name_of(c.format);
  if (has_mask(c) && !c.model.traits().writes_text()) fail("format: {}, but a {} model writes no text", {format, name_of(c.model.family)});
  if (has_mask(c) && c.pack == Pack::stream)
    fail("pack: stream, but format {} must not cut {}, expected none or best", {format, is_chat(c) ? "conversations" : "documents"});
  if (!has_mask(c) && c.pack == Pack::none) fail("pack: none requires a format with answers, not {}; expected stream or best", {format});
}

// The run folder is runs/NAME.
void check_name(const std::string& name) {
  if (one_line(name, name.size()) != name) fail("name: contains a control character");
  if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos || name.starts_with(' ') || name.ends_with(' ') ||
      name.size() > 200)
    fail("name: '{}' cannot be the name of a folder", {name.size() > 60 ? name.substr(0, 57) + "..." : name});
}

}  // namespace

void visit_fields(TrainConfig& c, const Fields& all) {
  const Fields run = all.group("run"), data = all.group("data");
  run("name", c.name, "run name; its folder is NAME in `runs`").may_change();
  run("runs", c.runs, "folder of the runs (empty: $RICCI_RUNS, or runs if that is not set)").may_change();
  run("init", c.init,
      "initial weights: a run by its name or folder, NAME@best, NAME@250 (a step) or a file; its model and tokenizer keys are this run's "
      "defaults")
      .decides()
      .file(names_any_file);
  run("freeze", c.freeze, "parameters that are not trained: paths or starts of paths, * for one part, as in tok or blocks.*.mixer");
  visit_fields(c.model, all.group("model").section("model"));
  visit_text_fields(c, data);
  visit_order_fields(c, data);
  visit_step_fields(c, all);
  visit_device_fields(c, all);
  visit_watch_fields(c, all);
  visit_fields(c.sample, all.group("sample").section("sample"));
}

NamedFormat named_format(const TrainConfig& config) {
  if (config.given.contains("format")) return {};
  const NamedFormat named = format_of_names(config.data);
  return named.file.empty() ? format_of_names(config.validation) : named;
}

void apply_preset(TrainConfig& config) {
  apply_preset(config.model);
  if (traits_of(config.format).is_text()) config.format = named_format(config).format;
  if (!config.model.traits().writes_text()) config.sample.tokens = 0;
  if (ends_documents(config)) config.eos = Eos::document;
  if (has_mask(config)) config.pack = Pack::none;
  if (is_chat(config)) config.chat = {"chatml"};
}

void check(const TrainConfig& config) {
  TrainConfig copy = config;
  if (copy.model.vocab == 0) copy.model.vocab = 1;
  check(copy.model);
  check_bounds(fields_of(copy));
  if (is_classifier(config)) check_classifier(config);
  if (!is_classifier(config) && !config.model.causal)
    fail("model.causal: false, but a language model must not attend to the tokens that it predicts");
  check_name(config.name);
  check_data(config);
  check_mask(config);
  if (is_chat(config) || has_chat(config)) chat_template(config.chat);
  const Schedule& schedule = config.schedule;
  if (schedule.kind != Schedule::Kind::constant && schedule.min_lr > schedule.lr)
    fail("min_lr: {} exceeds lr = {}", {schedule.min_lr, schedule.lr});
  if (const Sgd& sgd = config.optimizer.settings<Sgd>(); config.optimizer.kind == optimizer_kind<Sgd> && sgd.nesterov && sgd.momentum == 0)
    fail("nesterov: needs a momentum above 0");
  if (config.cuda_graph && config.device == Device::cpu) fail("cuda_graph: is not supported with device: cpu, expected device: cuda");
  if (config.cuda_graph && config.norms_every > 0) fail("norms_every: is not supported with cuda_graph");
  const int64_t context = config.sequence_length();
  if (config.eval_from >= context) fail("eval_from: {}, expected less than the {} positions of a window", {config.eval_from, context});
  if (int64_t tokens = 0;
      __builtin_mul_overflow(config.batch * config.accumulation, context, &tokens) || __builtin_mul_overflow(tokens, config.steps, &tokens))
    fail("steps: {} steps of batch {} and context {} have more tokens than 64 bits can count", {config.steps, config.batch, context});
  check(config.sample.sampling);
}

void check_shared(const TrainConfig& c, int64_t ranks) {
  if (ranks > 1 && c.cuda_graph) fail("cuda_graph: is not supported with multiple ranks");
  const int64_t sequences = c.batch * c.accumulation, micro_batches = c.micro_batches();
  if (ranks <= micro_batches) return;
  std::string way_out;
  if (sequences % ranks == 0)
    way_out = format_message("; a new run with accumulation={} batch={} reads the same sequences per step", {ranks, sequences / ranks});
  fail("accumulation: a step of {} micro-batch{} cannot be shared by {} ranks{}",
      {micro_batches, micro_batches == 1 ? "" : "es", ranks, way_out});
}

TrainStepOptions step_options(const TrainConfig& c, int64_t first_micro_batch) {
  return {c.seed, c.clip, c.cuda_graph, first_micro_batch, storage_dtype(c.reduce_dtype), c.norms_every};
}

ModelConfig model_config(const TrainConfig& config, const Tokenizer* tokenizer) {
  ModelConfig model = config.model;
  if (!tokenizer) return model;
  const int64_t size = tokenizer->vocab_size();
  if (model.vocab == 0) model.vocab = size;
  else if (find_tokenizer_kind(config.tokenizer)) model.vocab = std::min(model.vocab, size);
  return model;
}

TrainConfig resolved(TrainConfig config, const Tokenizer* tokenizer) {
  config.context = config.sequence_length();
  config.model = resolved(model_config(config, tokenizer));
  if (tokenizer && follows_tokenizer_eos(config)) config.eos = tokenizer->eos();
  return config;
}

std::vector<int64_t> with_answer_end(std::vector<int64_t> ends, const TrainConfig& config, const Tokenizer& tokenizer) {
  const int64_t end = has_chat(config) ? tokenizer.find(chat_template(config.chat).end) : -1;
  if (end < 0) return ends;
  std::erase(ends, end);
  ends.insert(ends.begin() + !ends.empty(), end);
  return ends;
}

void give_differing(TrainConfig& config) {
  TrainConfig choices, plain;
  plain.model.family = config.model.family;
  plain.model.mixer = config.model.mixer;
  plain.model.preset = config.model.preset;
  apply_preset(plain);
  const std::vector<Field> defaults = fields_of(plain), chosen = fields_of(choices), fields = fields_of(config);
  for (const Field& field : fields) {
    const bool is_choice = field.key == "model.family" || field.key == "model.mixer" || field.key == "model.preset";
    if (field.is_read && value_text(fields, field.key) != value_text(is_choice ? chosen : defaults, field.key))
      config.given.insert(field.key);
  }
}

}  // namespace ricci::apps
