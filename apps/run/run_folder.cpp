#include "apps/run/run_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "apps/run/init.h"
#include "apps/terminal/cli.h"
#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/error.h"
#include "core/json.h"
#include "data/text/text.h"
#include "data/tokenizers/kinds.h"

namespace ricci::apps {
namespace {

constexpr const char *kTokenizerFile = "tokenizer.json", *kInitHash = "init", *kLabels = "labels";

void warn(const std::string& line) { std::fprintf(stderr, "warning: %s\n", line.c_str()); }

[[noreturn]] void fail_taken(const std::string& folder) { fail("{}: a different ricci train process is using it", {folder}); }

// Retries for a moment: `ricci runs` briefly locks each run.
FolderLock lock(const std::string& folder) {
  for (int tries = 0; tries < 10; ++tries) {
    if (auto lock = FolderLock::take(folder)) return std::move(*lock);
    ::usleep(10'000);
  }
  fail_taken(folder);
}

int64_t step_of(const SafetensorsFile& file) { return std::strtoll(find_in(file.metadata(), "step").c_str(), nullptr, 10); }

// The class names from the data.
std::vector<std::string> labels_in(const SafetensorsFile& file) {
  const std::string names = find_in(file.metadata(), kLabels);
  if (names.empty()) return {};
  return as<std::vector<std::string>>(parse_json(names, file.path())).value_or(std::vector<std::string>());
}

// True if the file contains the run's tokenizer, apart from an end token that the run added.
bool is_same(std::shared_ptr<const Tokenizer> file, const Tokenizer& run) {
  if (file->name() == run.name() && file->eos() == Eos::none) file = with_eos(file, run.eos(), run.eos_piece());
  return file->hash() == run.hash();
}

// The text of config.yaml. If no key changed, the old text after its first line is kept, with the user's comments.
std::string config_file_text(const TrainConfig& config, const std::string& old_text, const std::string& old_keys) {
  const std::string keys = to_yaml(config);
  return format_message("# {}, device {} ({}), threads {}, seed {}\n",
             {build_info(), name_of(config.device), name_of(cpu_isa()), thread_count(), std::to_string(config.seed)}) +
         (keys == old_keys ? old_text.substr(old_text.find('\n') + 1) : keys);
}

}  // namespace

TrainConfig load_run_file(const std::string& path, const std::vector<std::string>& overrides) {
  TrainConfig choices;
  Settings settings = settings_of(path, overrides, fields_of(choices));
  store_choices(settings, fields_of(choices));
  if (!choices.init.empty()) settings = with_init_keys(settings, choices);
  return config_of<TrainConfig>(settings);
}

RunRequest request_run(const std::string& file_or_run, const std::vector<std::string>& overrides) {
  const NamedWeights named = find_weights(file_or_run);
  const std::string run = named.run, file = find_run_file(named);
  const bool is_run = !run.empty();
  const TrainConfig config = with_found_files(is_run ? load_config<TrainConfig>(file, overrides) : load_run_file(file, overrides));
  const auto names_run = [](const std::string& word) { return word.starts_with("name="); };
  const bool is_renamed = std::any_of(overrides.begin(), overrides.end(), names_run) && config.name != folder_name(run);
  return {is_run && !is_renamed ? run : folder_of_runs(config) + "/" + config.name, config, named};
}

bool ended_early(const TrainConfig& c, const TrainState& state) {
  const bool is_evaluated = !state.awaits_evaluation && c.eval_every > 0 && state.step % c.eval_every == 0;
  return is_evaluated && c.patience > 0 && state.best_step >= 0 && state.step - state.best_step >= c.patience;
}

RunFolder RunFolder::to_train(const RunRequest& request) {
  if (const NamedWeights& named = request.named; !named.run.empty() && !named.is_last())
    fail("{0}: training continues from the last step; init={0} name=... starts a new run from these weights", {named.text()});
  RunFolder run({.run = request.folder});
  if (is_folder(run.path())) run.lock_ = lock(run.path());
  if (!run.checkpoints().steps().empty()) run.continue_with(request.config);
  else if (is_there(run.path_of(kModelFile)))
    fail("{0}: contains a trained model but no checkpoint to continue from; init={0} name=... trains it further in a new folder",
        {run.path()});
  else run.config_ = request.config;
  return run;
}

void RunFolder::continue_with(const TrainConfig& asked) {
  newest_ = checkpoints().newest_sound(warn);
  read();
  if (!tokenizer_) tokenizer_ = open_tokenizer(path_of(kTokenizerFile));  // error: it is missing
  old_keys_ = to_yaml(with_found_files(config_));
  labels_ = labels_in(*newest_);
  init_ = find_in(newest_->metadata(), kInitHash);
  std::string other = difference(newest_->metadata(), asked, tokenizer_.get(), Compare::training);
  if (other.empty()) other = other_files(asked);
  if (!other.empty())
    fail("{0}: contains a run with {1}; name=... starts a new run, and init={0} name=... trains this model further", {path(), other});
  if (const int64_t done = step_of(*newest_); asked.steps < done)
    fail("{}: has already done {} steps, more than steps = {}", {path(), done, asked.steps});
  config_ = asked;
}

// Describes the config's tokenizer or init if it differs from the run's; else empty. A missing file is not compared: the run has a copy.
std::string RunFolder::other_files(const TrainConfig& asked) const {
  const Settings before = settings_in(newest_->metadata(), kConfigKeys);
  if (find_tokenizer_kind(asked.tokenizer)) {
    if (!find_setting(before, "tokenizer")) return "tokenizer: a file, not " + asked.tokenizer;
  } else if (asked.tokenizer != config_.tokenizer || look_for_data(asked.tokenizer)) {
    if (!is_same(open_tokenizer(find_data(asked.tokenizer, "tokenizer")), *tokenizer_))
      return "a different tokenizer than tokenizer: " + asked.tokenizer;
  }
  if (asked.init == config_.init) return "";
  if (init_.empty() || asked.init.empty())
    return format_message("init: {}, not {}", {init_.empty() ? "none" : config_.init, asked.init.empty() ? "none" : asked.init});
  return hash_of_init(asked.init) == init_ ? "" : "different initial weights than init: " + asked.init;
}

void RunFolder::read() {
  config_ = load_config<TrainConfig>(path_of(kConfigFile));
  if (is_there(path_of(kTokenizerFile))) tokenizer_ = open_tokenizer(path_of(kTokenizerFile));
}

RunFolder RunFolder::open(const std::string& name, Vocabulary vocabulary) {
  RunFolder run(find_weights(name));
  if (!is_folder(run.path())) fail("{}: no such run folder{}", {run.path().empty() ? name : run.path(), runs_note(run.path())});
  run.read();
  if (is_classifier(run.config_))
    if (const auto file = run.find_file()) run.labels_ = labels_in(*file);
  const std::string tokenizer = run.path_of(kTokenizerFile);
  const int64_t vocab = run.model_config().vocab;
  if (!run.tokenizer_ && vocab == 0) fail("{}: is missing, but it determines the vocabulary size", {tokenizer});
  if (!run.tokenizer_ && vocabulary == Vocabulary::needed)
    fail("{}: is missing; a model that was imported without a tokenizer reads and writes no text", {tokenizer});
  if (run.tokenizer_ && run.tokenizer_->vocab_size() > vocab)
    fail("{}: has {} tokens, but {} has model.vocab = {}", {tokenizer, run.tokenizer_->vocab_size(), run.path_of(kConfigFile), vocab});
  return run;
}

int64_t RunFolder::context(int64_t asked) const {
  const int64_t most = config_.model.ctx;
  if (asked > most) fail("context: {} exceeds model.ctx = {}", {asked, most});
  return asked ? asked : config_.sequence_length();
}

std::string RunFolder::context_note(int64_t context) const {
  const int64_t trained = config_.sequence_length();
  return context == trained ? "" : format_message(" (trained with {})", {trained});
}

std::optional<int64_t> RunFolder::finished() const {
  if (!newest_) return {};
  const TrainState state = read_train_state(*newest_);
  if (state.awaits_evaluation || !(state.step == config_.steps || ended_early(config_, state))) return {};
  try {
    const std::optional<SafetensorsFile> model = SafetensorsFile::find(path_of(kModelFile));
    if (!model) return {};
    model->verify();
    return step_of(*model) == state.step ? std::optional<int64_t>(state.step) : std::nullopt;
  } catch (const Error& error) {
    warn(format_message("{}; it is written again", {error.what()}));
    return {};
  }
}

TrainState RunFolder::resume(Model& model, Optimizer& optimizer, uint64_t text_hash) const {
  if (!newest_) return {.text_hash = text_hash, .schedule_steps = config_.schedule.steps.value_or(config_.steps)};
  TrainState state = load_checkpoint(*newest_, model, optimizer);
  if (config_.schedule.ends()) state.schedule_steps = config_.schedule.steps.value_or(state.schedule_steps);
  if (state.text_hash != text_hash)
    fail("{}: the text changed since step {}; name=... starts a new run on the new text", {path(), state.step});
  return state;
}

void RunFolder::check_place() const {
  if (!lock_->holds(path())) fail("{}: the folder was removed or replaced since training began", {path()});
}

void RunFolder::begin(const RunParts& parts) {
  make_folders(checkpoints().folder);
  if (!lock_) {  // a different process may have made the folder after to_train(), and even ended
    lock_ = lock(path());
    if (!checkpoints().steps().empty() || is_there(path_of(kModelFile))) fail_taken(path());
  }
  check_place();
  for (const std::string& folder : {path(), checkpoints().folder}) remove_temporaries(folder);
  remove_file(path_of(kFailureFile));
  const auto write = [&](const char* name, const std::string& text) {
    if (text.empty()) remove_file(path_of(name));  // a killed import may have left this file
    else write_atomically(path_of(name), text);
  };
  labels_ = parts.labels;
  if (!newest_) {
    init_ = parts.init;
    write(kTemplateFile, parts.chat.file);
    write(kMemberFile, parts.chat.member.empty() ? "" : "{\"chat_template\": " + parts.chat.member + "}\n");
    write(kTokenizerFile, parts.tokenizer ? parts.tokenizer->to_json() : "");
    if (parts.tokenizer) tokenizer_ = tokenizer_from_json(parts.tokenizer->to_json());
  }
  const std::string old_text = newest_ ? read_text(path_of(kConfigFile)) : "";
  if (const std::string text = config_file_text(config_, old_text, old_keys_); text != old_text)
    write_atomically(path_of(kConfigFile), text);
}

Metadata RunFolder::metadata(Compare keys) const {
  Metadata all = provenance(config_, tokenizer_.get(), keys);
  if (!labels().empty()) all[kLabels] = to_text(labels());
  if (!init_.empty()) all[kInitHash] = init_;
  return all;
}

void RunFolder::save(Model& model, Optimizer& optimizer, const TrainState& state) const {
  check_place();
  const Checkpoints all = checkpoints();
  try {
    save_checkpoint(all.path(state.step), model, optimizer, state, metadata(Compare::training));
  } catch (const Error&) {
    check_place();  // throws its own error if the folder is missing
    throw;
  }
  all.prune(state, config_.keep_checkpoints);
}

void RunFolder::save_model(Model& model, int64_t step) const {
  check_place();
  Metadata all = metadata(Compare::model);
  all.insert({{"format", "ricci"}, {"step", std::to_string(step)}});
  save_safetensors(path_of(kModelFile), weights_of(model), all, to_host);
}

void RunFolder::note_failure(const std::string& where) const {
  try {
    check_place();
    write_atomically(path_of(kFailureFile), (where.empty() ? "the start" : where) + "\n");
  } catch (const std::exception&) {  // such as a full disk
  }
}

void RunFolder::prune() const {
  const Checkpoints all = checkpoints();
  if (std::ssize(all.steps()) <= config_.keep_checkpoints) return;
  if (const auto newest = all.newest_sound(warn)) all.prune(read_train_state(*newest), config_.keep_checkpoints);
}

// Empty if the run has no weights, or none of this step.
std::optional<SafetensorsFile> RunFolder::find_file() const {
  if (!weights_.file.empty()) return SafetensorsFile::find(weights_.file);
  const Checkpoints all = checkpoints();
  const std::vector<int64_t> steps = all.steps();
  if (weights_.which == "last") {
    std::optional<SafetensorsFile> model = SafetensorsFile::find(path_of(kModelFile));
    return model && (steps.empty() || step_of(*model) >= steps.back()) ? std::move(model) : all.newest_sound(warn);
  }
  std::string wanted = weights_.which;
  if (wanted == "best") {
    const std::optional<SafetensorsFile> newest = all.newest_sound(warn);
    const int64_t best = newest ? read_train_state(*newest).best_step : -1;
    if (best < 0) fail("{}: no checkpoint contains an evaluation", {path()});
    wanted = std::to_string(best);
  }
  for (const int64_t step : steps)
    if (std::to_string(step) == wanted)
      if (auto found = SafetensorsFile::find(all.path(step))) return found;
  if (all.steps() != steps) return find_file();  // training removed it after the folder was listed
  return {};
}

SafetensorsFile RunFolder::open_weights() const {
  std::optional<SafetensorsFile> file = find_file();
  if (!file && weights_.is_last()) fail("cannot read {}: No such file or directory", {path_of(kModelFile)});
  if (!file) {
    const std::string kept = fmt::format("{}", fmt::join(checkpoints().steps(), ", "));
    fail("{}: has no checkpoint '{}', only best, last and steps {}",
        {path(), weights_.file.empty() ? weights_.which : weights_.file, kept.empty() ? "(none)" : kept});
  }
  file->verify();
  if (const std::string other = difference(file->metadata(), config_, tokenizer_.get(), Compare::model); !other.empty())
    fail("{}: was trained with {}", {file->path(), other});
  return std::move(*file);
}

Model RunFolder::load_model(Device device, Dtype dtype) const {
  const SafetensorsFile file = open_weights();
  Model model(model_config());
  load_weights(model, file);
  model.place(dtype, device);
  return model;
}

}  // namespace ricci::apps
