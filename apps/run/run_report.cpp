#include "apps/run/run_report.h"

#include <algorithm>
#include <cstdio>

#include "apps/run/evaluation.h"
#include "apps/run/micro_batches.h"
#include "apps/terminal/progress.h"
#include "apps/terminal/signals.h"
#include "core/cpu/available.h"
#include "core/cpu/clock.h"
#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/error.h"
#include "core/memory/memory.h"
#include "cuda/device/device_memory.h"
#include "data/feeds/conversations.h"
#include "data/tokenizers/chat.h"
#include "models/inference/sampling.h"
#include "models/planning/plan.h"
#include "ops/products/products.h"

namespace ricci::apps {
namespace {

// Why a model with this tokenizer cannot continue the prompt; empty if it can.
std::string fault_of_prompt(const std::string& prompt, const Tokenizer& tokenizer) {
  if (prompt.empty()) return "is empty";
  try {
    return tokenizer.encode_start(prompt).empty() ? format_message("has no tokens for the {} tokenizer", {tokenizer.name()}) : "";
  } catch (const Error& error) {
    return error.what();
  }
}

constexpr double kLongStep = 60;  // seconds

// The speed of f32 products on this machine's CPU, measured with a small one.
double flops_per_second() {
  constexpr int64_t size = 512, rounds = 4;
  const Tensor a = zeros({size, size}, Dtype::f32, Device::cpu);
  contract("ab,bc->ac", a, a);  // touches the memory
  const double started = seconds_now();
  for (int64_t i = 0; i < rounds; ++i) contract("ab,bc->ac", a, a);
  return static_cast<double>(2 * size * size * size * rounds) / std::max(seconds_now() - started, 1e-6);
}

// Unless the user gave a prompt, a sample follows the first question of a conversation, or the token that ends a document:
// a model that learned them has never seen the line end of the default prompt.
bool has_own_start(const TrainConfig& config) {
  return (is_chat(config) || config.eos == Eos::document) && config.sample.prompt == SampleConfig().prompt;
}

// The first conversation of the validation text up to its first answer.
std::vector<int64_t> first_question(const TrainConfig& config, const Corpus& corpus) {
  const Conversations conversations(corpus.validation, *config.context);
  const TokenSpan span = conversations.document(0, 0);
  std::vector<int64_t> ids(static_cast<size_t>(span.size()));
  conversations.read(span.first, ids);
  const int64_t vocab = corpus.tokenizer->vocab_size();  // ids from here on are of answers
  ids.erase(std::find_if(ids.begin(), ids.end(), [vocab](int64_t id) { return id >= vocab; }), ids.end());
  return ids;
}

std::vector<int64_t> start_of_sample(const TrainConfig& config, const Corpus& corpus) {
  if (!has_own_start(config)) return corpus.tokenizer->encode_start(config.sample.prompt);
  if (is_chat(config)) return first_question(config, corpus);
  const Marks marks = corpus.tokenizer->marks();
  return {marks.first >= 0 ? marks.first : marks.ends.front()};
}

}  // namespace

int64_t memory_of(Device device) { return device == Device::cuda ? device_memory(device).total_bytes() : available_memory(); }

std::string check_step(const TrainConfig& config, int64_t memory, int64_t ranks) {
  constexpr int64_t few_sequences = 1024, few_batches = 4;  // a plan takes longer for more, and its work is in proportion
  constexpr double fast = 1e9;                              // FLOPs per second of any machine
  const StepShape asked = step_shape_of(config);
  StepShape shape = asked;
  shape.ranks = ranks;
  shape.micro_batches = std::min(asked.micro_batches, few_batches * ranks);
  shape.sequences = 1;
  const double flops = plan_step(config.model, config.optimizer, shape, false).flops() * static_cast<double>(asked.sequences) *
                       static_cast<double>(asked.micro_batches) / static_cast<double>(shape.micro_batches);
  shape.sequences = asked.sequences;
  if (asked.sequences > few_sequences || !fits(config.model, config.optimizer, shape, memory)) {
    const int64_t most = most_sequences(config.model, config.optimizer, shape, memory);
    if (most == 0)
      fail("a step of one sequence of {} tokens needs more than the {} of memory here; a smaller model or context needs less",
          {shape.context, show_bytes(memory)});
    if (most < asked.sequences)  // other programs need memory, too: without a rest for them the advice would end this one
      fail("batch: {} sequences of {} tokens need more than the {} of memory here; the largest batch that leaves a tenth of it free is {}",
          {with_commas(asked.sequences), shape.context, show_bytes(memory),
              std::max<int64_t>(1, most_sequences(config.model, config.optimizer, shape, memory - memory / 10))});
  }
  const double seconds = config.device == Device::cpu && flops > kLongStep * fast ? flops / flops_per_second() : 0;
  reset_peak(config.device);  // the tensors of a plan hold no memory
  std::string warning;
  if (config.device == Device::cpu && config.precision == Precision::bf16 && cpu_isa() < Isa::avx512_bf16)
    warning = "precision: f32 is faster than bf16 on this CPU, which has no instruction for bf16; bf16 halves the memory of activations\n";
  if (seconds >= kLongStep) warning += format_message("a step takes about {}; Ctrl-C saves what was before it\n", {clock_time(seconds)});
  return warning;
}

std::string opening_line(const RunFolder& run, const Corpus& corpus, Model& model, const TrainState& state) {
  int64_t frozen = 0;
  model.each_parameter([&](const std::string&, const Parameter& p) { frozen += p.frozen ? p.value.size() : 0; });
  const std::string line = format_message("{}: {} parameters{}, vocabulary {}, {} on {}\n{} tokens to train, {} to validate",
      {run.path(), with_commas(model.parameter_count()), frozen ? " (" + with_commas(frozen) + " frozen)" : "",
          with_commas(corpus.tokenizer->vocab_size()), name_of(run.config().device), counted(thread_count(), "thread"),
          with_commas(corpus.train.size()), with_commas(corpus.validation.size())});
  if (state.step == 0) return line;
  return line + format_message("; continues after step {} of {}", {with_commas(state.step), with_commas(run.config().steps)});
}

std::string expected_line(const TrainConfig& config, int64_t done, double seconds_per_step, int64_t evaluation_tokens) {
  constexpr double worth_telling = 60, share_of_forward = 1.0 / 3;
  const int64_t left = config.steps - done, every = config.eval_every > 0 ? config.eval_every : config.steps;
  const int64_t to_next = std::min(every - done % every, left),
                evaluations = config.steps / every - done / every + (config.steps % every != 0);
  const double step_tokens = static_cast<double>(config.accumulation * config.batch * *config.context);
  const double evaluating =
      static_cast<double>(evaluations) * seconds_per_step * static_cast<double>(evaluation_tokens) / step_tokens * share_of_forward;
  const double all = static_cast<double>(left) * seconds_per_step + evaluating;
  if (all < worth_telling) return "";
  return "about " + clock_time(all) + ", of which " + clock_time(evaluating) + " for " + counted(evaluations, "evaluation") + "; " +
         clock_time(static_cast<double>(to_next) * seconds_per_step) + " to the next one";
}

std::string evaluation_line(int64_t step, double train_loss, const Evaluation& e) {
  const std::string line = format_message("step {}: train {:.4f}, validation {:.4f}", {with_commas(step), train_loss, e.nats_per_token});
  if (e.confusion) return line + format_message(", accuracy {:.4f} ({})", {e.confusion->accuracy(), counted(e.tokens, "document")});
  const std::string predictions = e.predictions ? "\n" + predictions_note(*e.predictions).substr(2) : "";
  return line + format_message(", perplexity {:.2f} ({})", {e.perplexity(), counted(e.tokens, "token")}) + predictions;
}

void print_warnings(const TrainConfig& config) {
  ModelConfig as_trained = config.model;
  as_trained.ctx = *config.context;
  for (const std::string& line : warnings(as_trained)) std::fprintf(stderr, "warning: %s\n", line.c_str());
  if (config.patience > 0 && config.eval_every == 0)
    std::fputs("warning: patience: it ends no training, as eval_every: 0 evaluates at the end alone\n", stderr);
}

std::optional<int64_t> reserved_bytes(Device device) {
  return device == Device::cuda ? std::optional(device_memory(device).reserved_bytes()) : std::nullopt;
}

std::string closing_line(const RunFolder& run, const TrainState& state, double seconds) {
  const bool all_done = state.step == run.config().steps && !state.awaits_evaluation, early = !all_done && ended_early(run.config(), state);
  std::string what = all_done ? "saved" : "interrupted, saved";
  if (early) what = format_message("no better validation loss since step {}, saved", {state.best_step});
  const Device device = run.config().device;
  const std::optional<int64_t> reserved = reserved_bytes(device);
  const std::string memory = reserved ? ", " + memory_line(memory_use(device).peak, *reserved) : "";
  return format_message(
      "{} after {} steps, {:.1f} s of training{}: {}", {what, state.step, seconds, memory, run.place("model.safetensors").path});
}

std::string memory_line(int64_t peak_bytes, int64_t reserved_bytes) {
  return format_message("at most {} of tensors, {} reserved", {show_bytes(peak_bytes), show_bytes(reserved_bytes)});
}

std::string follow_schedule(TrainConfig& config, const TrainState& state) {
  Schedule& schedule = config.schedule;
  if (!schedule.ends()) return "";
  const int64_t end = state.schedule_steps;
  schedule.steps = end;
  if (end != config.steps) config.following.erase("schedule_steps");
  if (state.step == 0 || config.steps <= end) return "";
  return format_message("the schedule ends at step {}: after it the learning rate is {:.4g}; schedule_steps={} would end it later\n",
      {with_commas(end), schedule.rate(config.steps, end), config.steps});
}

std::string ready_prompt(TrainConfig& config, const Corpus& corpus) {
  SampleConfig& sample = config.sample;
  if (!writes_samples(config) || has_own_start(config)) return "";
  const std::string fault = fault_of_prompt(sample.prompt, *corpus.tokenizer);
  if (fault.empty()) return "";
  std::vector<int64_t> first(1);
  corpus.validation.read(0, first);
  const std::string text = corpus.tokenizer->decode(first);
  if (sample.prompt != SampleConfig().prompt || !fault_of_prompt(text, *corpus.tokenizer).empty())
    fail("sample.prompt: {}; sample.tokens=0 writes no sample", {fault});
  sample.prompt = text;
  return format_message("sample.prompt: {}; samples continue from '{}', the first token of the validation text\n", {fault, one_line(text)});
}

std::string sample_block(const RunFolder& run, const Corpus& corpus, const Model& model, int64_t step) {
  const SampleConfig& sample = run.config().sample;
  const Tokenizer& tokenizer = *corpus.tokenizer;
  const std::vector<int64_t> prompt = start_of_sample(run.config(), corpus),
                             ends = with_answer_end(tokenizer.marks().ends, run.config(), tokenizer);
  const bool has_prompt = !has_own_start(run.config()), asks = !has_prompt && is_chat(run.config());
  std::optional<ChatTokenizer> chat;
  if (asks) chat.emplace(corpus.tokenizer, chat_template(run.config().chat));
  DecodeState written;
  if (has_prompt || asks) written = tokenizer.state_after(prompt);
  std::string text = format_message("\nsample after step {}:\n", {with_commas(step)});
  if (has_prompt) text += sample.prompt;
  if (asks) text += tokenizer.decode(prompt);
  generate(
      model, prompt, sample.tokens, sample.sampling.among(tokenizer.vocab_size()), run.config().device,
      [&](int64_t token) {
        if ((chat && chat->ends_answer(token)) || std::find(ends.begin(), ends.end(), token) != ends.end()) return false;
        text += tokenizer.decode_next(token, written);
        return !Interrupt::requested();
      },
      run.context());
  text += tokenizer.decode_end(written);
  return text + "\n";
}

}  // namespace ricci::apps
