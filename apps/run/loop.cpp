#include "apps/run/loop.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "apps/run/writer.h"
#include "apps/terminal/cli.h"
#include "apps/terminal/numbers.h"
#include "apps/terminal/table.h"
#include "core/cpu/available.h"
#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/error.h"
#include "core/memory/memory.h"
#include "core/philox.h"
#include "cuda/device/device.h"
#include "cuda/device/device_memory.h"
#include "cuda/trace.h"
#include "data/tokenizers/chat.h"
#include "models/inference/sampling.h"
#include "models/planning/plan.h"
#include "models/training/checkpoint.h"

namespace ricci::apps {
namespace {

constexpr double kPatience = 1;     // seconds for the end of a step after a request to end
constexpr int64_t kFirstSteps = 2;  // slow: they touch memory for the first time
double give_up_at = 0;              // when a step is abandoned; no member: StopWhen asks a function without state

bool is_due(int64_t step, int64_t every) { return every > 0 && step % every == 0; }

// Error: a rank has another value than rank 0.
void compare(Ranks& ranks, const char* name, const std::string& mine) {
  const std::vector<std::string> all = ranks.from_all(mine);
  for (int r = 1; r < ranks.count(); ++r)
    if (const std::string& other = all[static_cast<size_t>(r)]; other != all[0])
      fail("{}: {} {}, {}: {}", {ranks.name(r), name, other, ranks.name(0), all[0]});
}

// The first document of the validation text, up to its answer.
std::vector<int64_t> first_prompt(const Tokens& documents) {
  const TokenSpan span = documents.document(0, 0);
  std::vector<int64_t> ids(static_cast<size_t>(span.size()));
  std::vector<uint8_t> counts(ids.size());
  documents.read(span.first, ids);
  documents.read_counts(span.first, counts);
  ids.resize(static_cast<size_t>(std::find(counts.begin() + 1, counts.end(), 1) - counts.begin()));
  return ids;
}

// The bytes that the GPU's memory pool holds; nothing on other devices.
std::optional<int64_t> reserved_bytes(Device device) {
  return device == Device::cuda ? std::optional(device_memory(device).reserved_bytes()) : std::nullopt;
}

// saved after 20 steps, 0.3 s of training: runs/a/model.safetensors
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

}  // namespace

// ---- Around a step
void Trainer::begin() {
  const bool awaits = state.awaits_evaluation;
  Metrics record{.step = state.step};
  if (run) {
    if (awaits) record = read_record(run->path(), state.step);  // is written again, with the evaluation
    metrics.emplace(run->path(), awaits ? state.step - 1 : state.step);
    progress.emplace(ProgressOptions{.steps = config.steps, .first_step = state.step});
  }
  record.tokens = state.step * tokens_per_step();
  if (awaits) finish_step(record);
}

std::optional<StepResult> Trainer::run_step(const std::function<StepResult()>& step) const {
  if (state.step == first_step + kFirstSteps) trace::restart();
  give_up_at = seconds_now() + kPatience;
  const RandomState before = random_state();
  std::optional<StopWhen> stop;
  if (ranks.count() == 1 && !config.cuda_graph) stop.emplace([] { return Interrupt::requested() && seconds_now() > give_up_at; });
  try {
    return step();
  } catch (const Stopped&) {
    model.each_parameter([](const std::string&, Parameter& p) { p.grad = {}; });
    set_random_state(before);
    return {};
  }
}

Metrics Trainer::measure(const StepResult& result, double lr, double step_seconds) {
  seconds += step_seconds;
  seconds_since_record += step_seconds;
  if (progress) progress->update(state.step, (state.step - first_step) * tokens_per_step(), format_message("loss {:.3f}", {result.loss}));
  return {.step = state.step,
      .tokens = state.step * tokens_per_step(),
      .train_loss = result.loss,
      .lr = lr,
      .grad_norm = result.gradient_norm,
      .tokens_per_s = static_cast<double>((state.step - recorded) * tokens_per_step()) / seconds_since_record,
      .peak_bytes = memory_use(config.device).peak,
      .reserved_bytes = reserved_bytes(config.device),
      .ranks = ranks.count()};
}

void Trainer::finish_step(Metrics record) {
  const bool was_awaited = state.awaits_evaluation;
  const bool evaluates = was_awaited || state.step == config.steps || is_due(state.step, config.eval_every);
  if (evaluates) evaluate(record);
  if (!is_over(config, state) && is_due(state.step, config.sample.every)) {
    if (run && writes_samples(config)) print(sample_block(config, corpus, model, state.step));
    ranks.barrier();
  }
  if (evaluates || is_due(state.step, config.log_every)) {
    if (metrics) metrics->append(record);
    recorded = state.step;
    seconds_since_record = 0;
  }
  const bool is_best = state.best_step == state.step;
  if (was_awaited || is_over(config, state) || is_best || is_due(state.step, config.checkpoint_every)) save();
}

void Trainer::evaluate(Metrics& record) {
  const StopWhen stop(Interrupt::requested);
  const auto after_batch = [](int64_t) {
    if (Interrupt::requested()) throw Stopped();
  };
  state.awaits_evaluation = true;
  try {
    const Evaluation result = apps::evaluate(model, validation, config.device, after_batch, ranks);
    if (!std::isfinite(result.nats_per_token))
      fail("step {}: the validation loss is {}; the last step saved is {}", {state.step, result.nats_per_token, saved});
    state.awaits_evaluation = false;
    state.note_evaluation(result.nats_per_token);
    record.val_loss = result.nats_per_token;
    record.val_accuracy = result.accuracy();
    print(evaluation_line(record.step, record.train_loss.value_or(NAN), result, unknown));
  } catch (const Stopped&) {  // the next start makes it
  }
}

void Trainer::save() {
  if (run) {
    metrics->sync();
    run->save(model, optimizer, state);
  }
  ranks.barrier();
  saved = state.step;
}

void Trainer::end() {
  if (saved < state.step || state.step == 0) save();
  if (!run) return;
  run->save_model(model, state.step);
  run->prune();
  write_output(STDOUT_FILENO, closing_line(*run, state, seconds) + "\n");
}

// ---- Multiple processes
void compare_builds(Ranks& ranks, Device device) {
  if (ranks.count() == 1) return;
  compare(ranks, "build", build_info());
  if (device == Device::cuda) check_gpus(ranks);
  else compare(ranks, "vector instructions (RICCI_ISA)", name_of(cpu_isa()));
}

Corpus open_in_turn(Ranks& ranks, const TrainConfig& config, std::shared_ptr<const Tokenizer> tokenizer) {
  if (ranks.count() == 1) return open_corpus(config, tokenizer);
  const int turn = ranks.rank() == 0 ? 0 : 1 + (ranks.local() > 0);
  std::optional<Corpus> corpus;
  const auto open = [&] { corpus = open_corpus(config, tokenizer); };
  if (turn == 0) open();
  const std::string json = ranks.from_first(turn == 0 ? corpus->tokenizer->to_json() : "");
  if (turn > 0) tokenizer = tokenizer_from_json(json);
  if (turn == 1) open();
  ranks.barrier();
  if (turn == 2) open();
  ranks.barrier();
  compare(ranks, "text", fmt::format("{:016x}", corpus->hash()));
  return std::move(*corpus);
}

// ---- Before the first step
int64_t memory_of(Device device) { return device == Device::cuda ? device_memory(device).total_bytes() : available_memory(); }

void check_step(const TrainConfig& config, const ModelConfig& model, int64_t memory, int64_t ranks) {
  constexpr int64_t few_sequences = 1024, few_batches = 4;  // a plan takes longer for more
  StepShape shape = step_shape_of(config);
  shape.ranks = ranks;
  shape.micro_batches = std::min(shape.micro_batches, few_batches * ranks);
  const int64_t asked = shape.sequences;
  if (asked > few_sequences || !fits(model, config.optimizer, shape, memory)) {
    const int64_t most = most_sequences(model, config.optimizer, shape, memory);
    if (most == 0) {
      shape.sequences = 1;
      plan_step(model, config.optimizer, shape, false);  // throws if there is another reason, such as a wrong path in freeze
      fail("a step of one sequence of {} tokens needs more than the {} of memory here; a smaller model or context needs less",
          {shape.context, show_bytes(memory)});
    }
    if (most < asked)  // the advice leaves memory to other programs
      fail("batch: {} sequences of {} tokens need more than the {} of memory here; the largest batch that leaves a tenth of it free is {}",
          {with_commas(asked), shape.context, show_bytes(memory),
              std::max<int64_t>(1, most_sequences(model, config.optimizer, shape, memory - memory / 10))});
  }
  reset_peak(config.device);  // the plan has counted its own tensors
}

void print_warnings(const TrainConfig& config) {
  ModelConfig as_trained = config.model;
  as_trained.ctx = config.sequence_length();
  for (const std::string& line : warnings(as_trained)) std::fprintf(stderr, "warning: %s\n", line.c_str());
  if (config.patience > 0 && config.eval_every == 0)
    std::fputs("warning: patience: it never ends the training, because eval_every: 0 evaluates only after the last step\n", stderr);
}

SampleStart start_of_sample(const TrainConfig& config, const Corpus& corpus) {
  const Tokenizer& tokenizer = *corpus.tokenizer;
  const std::string& prompt = config.sample.prompt;
  const bool is_default = prompt == SampleConfig().prompt;
  if (!writes_samples(config)) return {};
  if (is_default && has_mask(config)) {
    const std::vector<int64_t> ids = first_prompt(corpus.validation.tokens);
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

// ---- Lines
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
    lines += "precision: f32 is faster on this CPU, because it has no instruction for bf16;\nbf16 halves the memory of activations\n";
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

}  // namespace ricci::apps
