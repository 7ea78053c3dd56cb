#include "apps/run/output.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "apps/run/batches.h"
#include "apps/run/writer.h"
#include "apps/terminal/numbers.h"
#include "apps/terminal/streams.h"
#include "apps/terminal/table.h"
#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/error.h"
#include "core/memory/memory.h"
#include "cuda/device/device.h"
#include "cuda/device/device_memory.h"
#include "data/tokenizers/chat.h"
#include "models/inference/sampling.h"

namespace ricci::apps {
namespace {

// The first document of the validation text, up to its answer.
std::vector<int64_t> first_prompt(const TrainConfig& config, const Tokens& validation) {
  const Batch document = EvaluationBatches::documents(validation, 1, config.sequence_length()).at(0);
  const auto *const ids = document.ids_bc.data<int64_t>(), *const targets = document.targets.data<int64_t>();
  const auto before_answer = std::find_if(targets, targets + document.targets.size(), [](int64_t target) { return target != kNoTarget; });
  return {ids, ids + (before_answer - targets) + 1};
}

// The start of a sample. The default is a line end; the first prompt of the validation text, if only answers are scored; or the start of a
// document, if an end token separates documents. If the vocabulary contains no line end, the sample starts with the first token of the
// validation text, and `note` mentions this. Error: the prompt is empty or contains characters outside the vocabulary.
struct SampleStart {
  std::vector<int64_t> ids;
  std::string text = {};  // printed before the text that the model writes
  DecodeState decoded = {};
  std::string note = {};
};
SampleStart start_of_sample(const TrainConfig& config, const Corpus& corpus) {
  const Tokenizer& tokenizer = *corpus.tokenizer;
  const std::string& prompt = config.sample.prompt;
  const bool is_default = prompt == SampleConfig().prompt;
  if (!writes_samples(config)) return {};
  if (is_default && has_mask(config)) {
    const std::vector<int64_t> ids = first_prompt(config, corpus.validation.tokens);
    return {ids, tokenizer.decode(ids), tokenizer.state_after(ids)};
  }
  if (is_default && tokenizer.eos() == Eos::document)
    return {{tokenizer.marks().first >= 0 ? tokenizer.marks().first : tokenizer.marks().ends.front()}};
  const auto start = [&](const std::string& text) -> SampleStart {
    if (text.empty()) fail("sample.prompt: is empty");
    const std::vector<int64_t> ids = about("sample.prompt", [&] { return tokenizer.encode_start(text); });
    if (ids.empty()) fail("sample.prompt: has no tokens for the {} tokenizer", {tokenizer.name()});
    return {ids, text, tokenizer.state_after(ids)};
  };
  try {
    return start(prompt);
  } catch (const Error& error) {
    if (!is_default) fail("{}; sample.tokens=0 writes no sample", {error.what()});
    std::vector<int64_t> first(1);
    corpus.validation.tokens.read(0, first);
    SampleStart sample = start(tokenizer.decode(first));
    sample.note =
        format_message("{};\nsamples continue from '{}', the first token of the validation text\n", {error.what(), one_line(sample.text)});
    return sample;
  }
}

}  // namespace

void print_warnings(const TrainConfig& config) {
  ModelConfig as_trained = config.model;
  as_trained.ctx = config.sequence_length();
  for (const std::string& line : warnings(as_trained)) std::fprintf(stderr, "warning: %s\n", line.c_str());
  if (config.patience > 0 && config.eval_every == 0)
    std::fputs("warning: patience: has no effect with eval_every: 0 (evaluates only after the last step)\n", stderr);
}

std::string schedule_note(const Schedule& schedule, int64_t steps, const TrainState& state) {
  const int64_t end = state.schedule_steps, warmup = schedule.warmup;
  const double last = schedule.rate(steps - 1, end);
  if (warmup >= steps)
    return format_message("warmup: {} steps, but the run has {};\nthe learning rate ends at {:.4g}, below lr: {}\n",
        {with_commas(warmup), with_commas(steps), last, schedule.lr});
  if (schedule.ends() && warmup >= end)
    return format_message("warmup: {} steps, but the schedule ends at step {};\nafter the warm-up the learning rate is {:.4g}\n",
        {with_commas(warmup), with_commas(end), last});
  if (!schedule.ends() || state.step == 0 || steps <= end) return "";
  return format_message("the schedule ends at step {}: after it the learning rate is {:.4g};\nschedule_steps={} would end it later\n",
      {with_commas(end), last, steps});
}

std::string opening_lines(const RunFolder& run, const Corpus& corpus, Model& model, const TrainState& state, const Ranks& ranks) {
  const TrainConfig& config = run.config();
  std::string lines = schedule_note(config.schedule, config.steps, state);
  if (config.device == Device::cpu && config.precision == Precision::bf16 && cpu_isa() < Isa::avx512_bf16)
    lines += "precision: f32 is faster on this CPU (no bf16 instructions);\nbf16 halves the memory of activations\n";
  int64_t frozen = 0;
  model.each_parameter([&](const std::string&, const Parameter& p) { frozen += p.frozen ? p.value.size() : 0; });
  lines += format_message("{}: {} parameters{}, vocabulary {}, {} on {}\n{} tokens to train, {} to validate",
      {run.path(), with_commas(model.parameter_count()), frozen ? " (" + with_commas(frozen) + " frozen)" : "",
          with_commas(corpus.tokenizer->vocab_size()), name_of(config.device), counted(thread_count(), "thread"),
          with_commas(corpus.train.size()), with_commas(corpus.validation.tokens.size())});
  if (state.step > 0) lines += format_message("\ncontinues after step {} of {}", {with_commas(state.step), with_commas(config.steps)});
  if (ranks.count() > 1)
    lines += format_message("\n{} ranks on {}, {} by {}",
        {ranks.count(), counted(ranks.machine_count(), "machine"), name_of(config.device), ranks.carrier(config.device)});
  return lines + "\n";
}

std::string evaluation_line(int64_t step, double train_loss, const Evaluation& e, double unknown) {
  const std::string line = format_message("step {}: train {:.4f}, validation {:.4f}", {with_commas(step), train_loss, e.nats_per_token});
  if (e.confusion) return line + format_message(", accuracy {:.4f} ({})", {e.confusion->accuracy(), counted(e.tokens, "document")});
  const std::string predictions = e.predictions ? "\n" + predictions_note(*e.predictions) : "";
  return line +
         format_message(
             ", perplexity {} ({}{})", {show_number("{:.2f}", e.perplexity()), counted(e.tokens, "token"), unknown_note(unknown)}) +
         predictions;
}

std::optional<int64_t> reserved_bytes(Device device) {
  return device == Device::cuda ? std::optional(device_memory(device).reserved_bytes()) : std::nullopt;
}

std::string closing_line(const RunFolder& run, const TrainState& state, double seconds) {
  const bool all_done = state.step == run.config().steps && !state.awaits_evaluation, early = !all_done && ended_early(run.config(), state);
  std::string line = all_done ? "saved" : "interrupted, saved";
  if (early) line = format_message("no better validation loss since step {}, saved", {with_commas(state.best_step)});
  line += format_message(" after {} steps, {:.1f} s of training", {with_commas(state.step), seconds});
  const Device device = run.config().device;
  if (const std::optional<int64_t> reserved = reserved_bytes(device))
    line += format_message(",\nat most {} of tensors, {} reserved", {show_bytes(memory_use(device).peak), show_bytes(*reserved)});
  const std::string path = run.path_of(kModelFile);
  return line + (line.size() + path.size() > 78 ? ":\n" : ": ") + path;
}

std::string sample_note(const TrainConfig& config, const Corpus& corpus) { return start_of_sample(config, corpus).note; }

std::string sample_block(const TrainConfig& config, const Corpus& corpus, const Model& model, int64_t step) {
  const Tokenizer& tokenizer = *corpus.tokenizer;
  SampleStart start = start_of_sample(config, corpus);
  const std::vector<int64_t> ends = with_answer_end(tokenizer.marks().ends, config, tokenizer);
  std::optional<ChatEncoder> chat;
  if (is_chat(config) && config.sample.prompt == SampleConfig().prompt) chat.emplace(corpus.tokenizer, chat_template(config.chat));
  std::string text = format_message("\nsample after step {}:\n", {with_commas(step)}) + start.text;
  generate(
      model, start.ids, config.sample.tokens, config.sample.sampling.among(tokenizer.vocab_size()), config.device,
      [&](int64_t token) {
        if ((chat && chat->ends_answer(token)) || std::find(ends.begin(), ends.end(), token) != ends.end()) return false;
        text += tokenizer.decode_next(token, start.decoded);
        return !Interrupt::requested();
      },
      config.sequence_length());
  return for_stdout(text + tokenizer.decode_end(start.decoded)) + "\n";
}

}  // namespace ricci::apps
