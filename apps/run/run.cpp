#include "apps/run/run.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "apps/run/config.h"
#include "apps/run/init.h"
#include "apps/run/places.h"
#include "apps/run/record.h"
#include "core/dims.h"
#include "core/error.h"
#include "core/files/file.h"
#include "cuda/device/device.h"
#include "data/text/text.h"
#include "data/tokenizers/chat.h"
#include "data/tokenizers/kinds.h"

namespace ricci::apps {
namespace {

namespace fs = std::filesystem;
constexpr int kAttempts = 1000;  // to open a checkpoint before a training at work removes it

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

std::shared_ptr<const Tokenizer> read_tokenizer(const FilePlace& place) {
  const std::string json = read_text(place, kMaxTokenizer);
  try {
    return tokenizer_from_json(json);
  } catch (const Error& error) {
    fail("{}: {}", {place.path, error.what()});
  }
}

// True if a run of the text `was` may be given another path: the text is no longer where it was. Its contents are compared when it is read.
bool has_moved(const std::vector<std::string>& was) {
  const auto is_there = [](const std::string& path) {
    try {
      return path == "embedded" || look_for_data(path).has_value();
    } catch (const Error&) {  // it cannot be looked at
      return false;
    }
  };
  return !std::all_of(was.begin(), was.end(), is_there);
}

// Error where a run of the config `before` cannot go on with the config `now`.
void check_same_run(const std::string& path, TrainConfig before, TrainConfig now) {
  now.model.vocab = before.model.vocab;  // the tokenizer's, whatever the run file has
  before = with_found_files(before, FilesOf::old_run);
  const std::vector<Field> old_fields = fields_of(before), fields = fields_of(now);
  for (size_t i = 0; i < fields.size(); ++i) {
    const Field& field = fields[i];
    const bool names_text = field.names_file == names_data_file;
    if ((field.is_free && !names_text) || !field.is_read) continue;
    if (names_text && has_moved(*std::get<std::vector<std::string>*>(old_fields[i].value))) continue;
    const std::string was = value_text(old_fields[i]), is = value_text(field);
    if (was != is)
      fail("{}: holds a run with {}: {}, not {}; give the new run another name with name=..., or remove the folder",
          {path, field.key, was, is});
  }
  if (now.steps < before.steps) fail("{}: holds a run of {} steps; steps: {} would be fewer", {path, before.steps, now.steps});
}

void warn(const std::string& line) { std::fprintf(stderr, "warning: %s\n", line.c_str()); }

int64_t step_of(const SafetensorsFile& file) {
  const auto found = file.metadata().find("step");
  return found == file.metadata().end() ? 0 : std::strtoll(found->second.c_str(), nullptr, 10);
}

}  // namespace

RunRequest request_run(const std::string& file_or_run, const std::vector<std::string>& overrides) {
  const std::string found = find_run(file_or_run);
  check_run_file(found);
  if (!is_folder(found)) {
    const TrainConfig config = with_found_files(load_config<TrainConfig>(found, overrides, keys_of_init));
    const auto run_file = found.empty() ? std::nullopt : std::optional(read_text(found, kMaxYaml));
    return {folder_of_runs(config) + "/" + config.name, config, {run_file, overrides}};
  }
  const std::string folder = without_slashes(found), file = folder + "/config.yaml";
  const TrainConfig config = with_found_files(load_config<TrainConfig>(file, overrides));
  if (config.name == load_config<TrainConfig>(file).name) return {folder, config, {{}, overrides, true}};
  return {folder_of_runs(config) + "/" + config.name, config, {read_text(file, kMaxYaml), overrides}};
}

std::vector<int64_t> with_answer_end(std::vector<int64_t> ends, const TrainConfig& config, const Tokenizer& tokenizer) {
  const int64_t end = has_chat(config) ? tokenizer.find(chat_template(config.chat).end) : -1;
  if (end < 0) return ends;
  std::erase(ends, end);
  ends.insert(ends.begin() + !ends.empty(), end);
  return ends;
}

RunFolder RunFolder::to_train(const RunRequest& request) {
  const auto lock = std::make_shared<RunLock>(request.folder);
  RunFolder run(lock->folder());
  run.lock_ = lock;
  for (const char* name :
      {"config.yaml", "run.yaml", "overrides.yaml", "config.edited.yaml", "tokenizer.json", "metrics.jsonl", "model.safetensors"})
    OpenFile::find(run.place(name));  // no link, no pipe
  TrainConfig asked = request.config;
  if (run.checkpoints().steps().empty()) {
    const std::string checkpoints = run.path() + "/checkpoints";
    if (fs::is_symlink(checkpoints) && !is_there(checkpoints))
      fail("{}: is a link to {}, which is not there", {checkpoints, one_line(fs::read_symlink(checkpoints).string())});
    if (OpenFile::find(run.place("model.safetensors")))
      fail("{0}: holds a trained model but no checkpoint to continue from; init={0} name=... trains it further in another folder",
          {run.path()});
  } else {
    run.read();
    if (!run.tokenizer_) run.tokenizer_ = read_tokenizer(run.place("tokenizer.json"));  // an error: it is missing
    run.config_before_ = to_yaml(run.config_);
    if (asked.labels.empty()) asked.labels = run.config_.labels;
    if (follows_tokenizer_eos(asked)) asked.eos = run.config_.eos;
    // A vocabulary that is made from texts can come out smaller than it was asked for.
    if (find_tokenizer_kind(asked.tokenizer) || asked.tokenizer == kFormerKind)
      asked.model.vocab = std::min(asked.model.vocab, run.config_.model.vocab);
    check_same_run(run.path(), run.config_, asked);
    run.steps_before_ = run.config_.steps;
    const TrainConfig before = with_found_files(run.config_, FilesOf::old_run);
    run.names_other_texts_ = before.data != request.config.data || before.validation != request.config.validation;
  }
  run.config_ = asked;
  run.said_ = request.said;
  return run;
}

// Reads the config and, where there is one, the tokenizer.
void RunFolder::read() {
  const OpenFile no_link(place("config.yaml"));
  config_ = load_config<TrainConfig>(no_link.path());
  if (!OpenFile::find(place("tokenizer.json"))) return;
  tokenizer_ = read_tokenizer(place("tokenizer.json"));
  resolve_vocab(config_, tokenizer_->vocab_size());
  resolve_eos(config_, *tokenizer_);
}

RunFolder RunFolder::open(const std::string& path_or_name, Vocabulary vocabulary) {
  const std::string path = find_run(path_or_name);
  if (!is_folder(path)) fail("{}: no such run folder{}", {path, runs_note(path)});
  RunFolder run{Folder(without_slashes(path))};
  run.read();
  const std::string tokenizer = run.place("tokenizer.json").path;
  const int64_t vocab = run.config_.model.vocab;
  if (!run.tokenizer_ && vocab == 0) fail("{}: is missing; the size of the vocabulary follows from it", {tokenizer});
  if (!run.tokenizer_ && vocabulary == Vocabulary::needed)
    fail("{}: there is none; a model that was imported without a tokenizer reads and writes no text", {tokenizer});
  if (run.tokenizer_ && run.tokenizer_->vocab_size() > vocab)
    fail("{}: has {} tokens, but {} has model.vocab: {}", {tokenizer, run.tokenizer_->vocab_size(), run.place("config.yaml").path, vocab});
  return run;
}

int64_t RunFolder::context(int64_t asked) const {
  const int64_t most = config_.model.ctx;
  if (asked > most) fail("context: {} is longer than the {} tokens that the model takes (model.ctx)", {asked, most});
  return asked ? asked : *config_.context;
}

std::string RunFolder::context_note(int64_t context) const {
  const int64_t trained = *config_.context;
  return context == trained ? "" : format_message(" (trained with {})", {trained});
}

std::optional<SafetensorsFile> RunFolder::newest_checkpoint() const {
  std::optional<SafetensorsFile> newest = checkpoints().newest_sound(warn);
  if (!newest) return newest;
  check_provenance(*newest, config_, tokenizer_.get(), Compare::training, warn);
  const TextsByKey keys = lines_in(newest->metadata(), "config");
  if (const auto ranks = keys.find(kRemovedKey); ranks != keys.end() && ranks->second != "1")
    warn(format_message("{}: was trained with {}: {}, which was removed; from here on gradients are added up in another order, and "
                        "its bits depend on the number of processes",
        {path(), kRemovedKey, ranks->second}));
  return newest;
}

TrainState RunFolder::resume(const std::optional<SafetensorsFile>& newest, Model& model, Optimizer& optimizer, uint64_t text_hash) const {
  const int64_t asked_steps = config_.schedule.steps.value_or(config_.steps);
  if (!newest) return {.text_hash = text_hash, .schedule_steps = asked_steps};
  TrainState state = load_checkpoint(*newest, model, optimizer);
  if (state.schedule_steps == 0) state.schedule_steps = steps_before_;
  if (config_.schedule.ends() && !config_.following.contains("schedule_steps")) state.schedule_steps = asked_steps;
  if (state.text_hash != text_hash)
    fail("{}: the text changed since step {}; give a run on the new text another name with name=...", {path(), state.step});
  return state;
}

void RunFolder::begin(const TrainConfig& config, const Tokenizer* tokenizer, int64_t step, const ImportedTemplate& talks) {
  lock_->begin();
  remove_abandoned_files(folder_);
  remove_abandoned_files(folder_.make("checkpoints"));
  remove_file(place(kNonfiniteFile));
  config_ = config;
  if (!tokenizer_) write_template(folder_, talks);
  if (!tokenizer_ && tokenizer) {
    write_file_atomically(place("tokenizer.json"), tokenizer->to_json());
    tokenizer_ = tokenizer_from_json(tokenizer->to_json());
  }
  if (!tokenizer_) remove_file(place("tokenizer.json"));  // another import was killed here before it wrote its config
  write_said(folder_, said_);
  write_config(folder_, config, config_before_, step);
}

// Writes or removes files of the run, while the folder is its own. A write that fails because the folder was just taken away is
// reported as that.
void RunFolder::replace(const std::function<void()>& write) const {
  lock_->check();
  try {
    write();
  } catch (const Error&) {
    lock_->check();
    throw;
  }
}

void RunFolder::save(Model& model, Optimizer& optimizer, const TrainState& state) const {
  replace([&] {
    const Metadata origin = provenance(config_, tokenizer_.get(), Compare::training);
    const Checkpoints all{folder_.make("checkpoints")};
    save_checkpoint(all.place(state.step), model, optimizer, state, origin);
  });
  replace([&] { checkpoints().prune(state, config_.keep_checkpoints); });
}

void RunFolder::prune() const {
  const Checkpoints all = checkpoints();
  const std::vector<int64_t> steps = all.steps();
  if (steps.size() <= static_cast<size_t>(config_.keep_checkpoints)) return;
  try {
    const std::optional<SafetensorsFile> newest = SafetensorsFile::find(all.place(steps.back()));
    newest->verify();
    all.prune(read_train_state(*newest), config_.keep_checkpoints);
  } catch (const Error&) {  // without a sound newest checkpoint none is known to be superfluous
  }
}

void RunFolder::save_weights(const std::string& name, const NamedTensors& tensors, int64_t step) const {
  Metadata metadata = provenance(config_, tokenizer_.get(), Compare::model);
  metadata.insert({{"format", "ricci"}, {"step", std::to_string(step)}});
  replace([&] { save_checked_safetensors(place(name), tensors, metadata, to_host); });
}

// Returns nullopt if a training at work has removed the chosen checkpoint.
std::optional<SafetensorsFile> RunFolder::find_weights(const std::string& which) const {
  const Checkpoints all = checkpoints();
  const std::vector<int64_t> steps = all.steps();
  if (which == "last") {
    std::optional<SafetensorsFile> model = SafetensorsFile::find(place("model.safetensors"));
    if (model && (steps.empty() || step_of(*model) >= steps.back())) return model;
    if (steps.empty()) fail("cannot read {}: No such file or directory", {place("model.safetensors").path});
    return all.newest_sound(warn);
  }
  std::string wanted = which;
  if (which == "best") {
    const std::optional<SafetensorsFile> newest = all.newest_sound(warn);
    const int64_t best = newest ? read_train_state(*newest).best_step : -1;
    if (best < 0) fail("{}: no checkpoint holds an evaluation", {path()});
    wanted = std::to_string(best);
  }
  std::string kept;
  for (const int64_t step : steps) {
    if (std::to_string(step) == wanted) return SafetensorsFile::find(all.place(step));
    kept += (kept.empty() ? "" : ", ") + std::to_string(step);
  }
  if (which == "best" && all.steps() != steps) return {};
  fail("{}: no checkpoint '{}'; there are best, last and steps {}", {path(), wanted, kept.empty() ? "(none)" : kept});
}

SafetensorsFile RunFolder::weights(const std::string& which) const {
  for (int attempt = 0; attempt < kAttempts; ++attempt)
    if (std::optional<SafetensorsFile> found = find_weights(which)) return std::move(*found);
  fail("{}: checkpoints are removed faster than they can be opened", {path()});
}

std::optional<int64_t> RunFolder::finished() const {
  const Checkpoints all = checkpoints();
  const std::vector<int64_t> steps = all.steps();
  if (steps.empty()) return {};
  const bool all_done = steps.back() == config_.steps;
  try {
    const std::optional<SafetensorsFile> newest = SafetensorsFile::find(all.place(steps.back()));
    if (!newest) return {};
    const TrainState state = read_train_state(*newest);
    if (state.awaits_evaluation || !(all_done || ended_early(config_, state))) return {};
  } catch (const Error&) {  // a damaged checkpoint is passed over when the run goes on
    if (!all_done) return {};
  }
  try {
    const std::optional<SafetensorsFile> model = SafetensorsFile::find(place("model.safetensors"));
    if (!model) return {};
    model->verify();
    return step_of(*model) == steps.back() ? std::optional<int64_t>(steps.back()) : std::nullopt;
  } catch (const Error& error) {
    warn(format_message("{}; it is written again", {error.what()}));
    return {};
  }
}

SafetensorsFile RunFolder::open_weights(const std::string& which) const {
  SafetensorsFile file = weights(which);
  file.verify();
  check_provenance(file, config_, tokenizer_.get(), Compare::model, warn);
  return file;
}

Model RunFolder::load_model(Device device, const std::string& which, Dtype dtype) const {
  const SafetensorsFile file = open_weights(which);
  Model model(config_.model);
  load_weights(model, file);
  model.place(dtype, device);
  return model;
}

}  // namespace ricci::apps
