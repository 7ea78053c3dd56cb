#include "apps/run/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "apps/run/init.h"
#include "apps/terminal/cli.h"
#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/dims.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/json.h"
#include "cuda/device/device.h"
#include "data/tokenizers/chat.h"
#include "data/tokenizers/kinds.h"

namespace ricci::apps {
namespace {

constexpr const char *kConfigFile = "config.yaml", *kTokenizerFile = "tokenizer.json", *kMemberFile = "chat_template.json";

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

void warn(const std::string& line) { std::fprintf(stderr, "warning: %s\n", line.c_str()); }

int64_t step_of(const SafetensorsFile& file) {
  const auto found = file.metadata().find("step");
  return found == file.metadata().end() ? 0 : std::strtoll(found->second.c_str(), nullptr, 10);
}

// A list of runs has the lock of each for a moment, and so one try is not enough.
FolderLock lock(const std::string& folder) {
  for (int tries = 0; tries < 10; ++tries) {
    if (auto lock = FolderLock::take(folder)) return std::move(*lock);
    ::usleep(10'000);
  }
  fail("{}: another ricci-train is at work in it", {folder});
}

// The metadata about the training of a file. An old file has none; then the config and the tokenizer next to it count, with a warning.
Metadata origin_of(const SafetensorsFile& file, const TrainConfig& config, const Tokenizer* tokenizer, Compare what) {
  if (file.metadata().contains("config") && file.metadata().contains("tokenizer")) return file.metadata();
  warn(format_message("{}: it does not name its config and tokenizer; the config and the tokenizer next to it are used", {file.path()}));
  return provenance(config, tokenizer, what);
}

// The names of classes that came from the data.
void take_labels(TrainConfig& config, const SafetensorsFile& file) {
  const auto names = file.metadata().find("labels");
  if (!config.labels.empty() || names == file.metadata().end()) return;
  if (const auto labels = as<std::vector<std::string>>(parse_json(names->second, file.path()))) config.labels = *labels;
}

// ---- The record
constexpr const char *kConfigLines = "config", *kFollowing = "following", *kTokenizerHash = "tokenizer", *kLabels = "labels";
constexpr const char* kAnyTokenizer = "any";  // the model came without one, and so every tokenizer fits it

bool shapes_model(const std::string& key) { return key.starts_with("model.") || key == "context"; }

// Metadata are UTF-8, paths may not be.
std::string ascii(const std::string& text) {
  std::string result;
  for (const char c : text)
    result += static_cast<unsigned char>(c) < 128 ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return result;
}

// The keys that count with their values, in the order of visit_fields. The tokenizer may give the size of the vocabulary.
std::vector<std::pair<std::string, std::string>> values_of(TrainConfig config, const Tokenizer* tokenizer, Compare what) {
  if (tokenizer) config.model.vocab = std::max(config.model.vocab, tokenizer->vocab_size());
  std::vector<std::pair<std::string, std::string>> values;
  for (const Field& field : fields_of(config))
    if (field.is_read && !field.is_free && (what == Compare::training || shapes_model(field.key)))
      values.emplace_back(field.key, ascii(value_text(field)));
  return values;
}

std::string hash_of(const Tokenizer* tokenizer) { return tokenizer ? fmt::format("{:016x}", tokenizer->hash()) : kAnyTokenizer; }

}  // namespace

std::string config_file_text(const TrainConfig& config, const std::string& old_text, const std::string& old_keys) {
  const std::string keys = to_yaml(config);
  const bool stays = keys == old_keys && old_text.starts_with("# ricci ");  // a file of an older version may have keys that nothing reads
  return format_message("# {}, device {} ({}), threads {}, seed {}\n",
             {build_info(), name_of(config.device), name_of(cpu_isa()), thread_count(), std::to_string(config.seed)}) +
         (stays ? old_text.substr(old_text.find('\n') + 1) : keys);
}

Metadata provenance(const TrainConfig& config, const Tokenizer* tokenizer, Compare what) {
  TrainConfig said = config;
  if (!config.given.contains("model.vocab")) said.model.vocab = 0;
  TextsByKey values;
  for (const auto& [key, value] : values_of(resolved(config), tokenizer, what)) values[key] = value;
  Metadata metadata = {{kTokenizerHash, hash_of(tokenizer)}};
  for (const auto& [key, value] : values) metadata[kConfigLines] += key + ": " + value + "\n";
  for (const auto& [key, value] : values_of(said, nullptr, Compare::model))
    if (values.at(key) != value) metadata[kFollowing] += key + ": " + value + "\n";
  for (const std::string& name : config.labels) metadata[kLabels] += (metadata[kLabels].empty() ? "[" : ", ") + quoted_json(name);
  if (!config.labels.empty()) metadata[kLabels] += "]";
  return metadata;
}

TextsByKey lines_in(const Metadata& metadata, const char* name) {
  TextsByKey all;
  const auto found = metadata.find(name);
  std::istringstream lines(found == metadata.end() ? "" : found->second);
  for (std::string line; std::getline(lines, line);)
    if (const size_t colon = line.find(": "); colon != line.npos) all[line.substr(0, colon)] = line.substr(colon + 2);
  return all;
}

bool fits_tokenizer(const Metadata& metadata, const Tokenizer& tokenizer) {
  const auto was = metadata.find(kTokenizerHash);
  return was == metadata.end() || was->second == kAnyTokenizer || was->second == hash_of(&tokenizer);
}

std::string difference(const Metadata& was, const TrainConfig& config, const Tokenizer* tokenizer, Compare what) {
  const TextsByKey before = lines_in(was, kConfigLines);
  for (const auto& [key, value] : values_of(resolved(config), tokenizer, what))
    if (const auto found = before.find(key); found != before.end() && found->second != value)
      return format_message("{}: {}, not {}", {key, found->second, value});
  return !tokenizer || fits_tokenizer(was, *tokenizer) ? "" : "another tokenizer than the one next to it";
}

// ---- The folder

RunRequest request_run(const std::string& file_or_run, const std::vector<std::string>& overrides) {
  const std::string found = find_run(file_or_run);
  check_run_file(found);
  const bool is_run = is_folder(found);
  const std::string folder = without_slashes(found), file = is_run ? folder + "/" + kConfigFile : found;
  const TrainConfig config = with_found_files(is_run ? load_config<TrainConfig>(file, overrides) : load_run_file(file, overrides));
  const bool keeps_name = is_run && config.name == load_config<TrainConfig>(file).name;
  return {keeps_name ? folder : folder_of_runs(config) + "/" + config.name, config};
}

bool ended_early(const TrainConfig& c, const TrainState& state) {
  const bool is_evaluated = !state.awaits_evaluation && c.eval_every > 0 && state.step % c.eval_every == 0;
  return is_evaluated && c.patience > 0 && state.best_step >= 0 && state.step - state.best_step >= c.patience;
}

std::vector<int64_t> with_answer_end(std::vector<int64_t> ends, const TrainConfig& config, const Tokenizer& tokenizer) {
  const int64_t end = has_chat(config) ? tokenizer.find(chat_template(config.chat).end) : -1;
  if (end < 0) return ends;
  std::erase(ends, end);
  ends.insert(ends.begin() + !ends.empty(), end);
  return ends;
}

ImportedTemplate read_template(const std::string& run_folder) {
  const std::string path = run_folder + "/" + kMemberFile;
  ImportedTemplate kept = {.file = find_text(run_folder + "/" + kTemplateFile).value_or("")};
  if (const auto text = find_text(path)) kept.member = to_text(member(parse_json(*text, path), kTemplateMember));
  return kept;
}

RunFolder RunFolder::to_train(const RunRequest& request) {
  const std::vector<std::string> made = make_folders(request.folder);
  RunFolder run(request.folder);
  run.lock_ = lock(run.path_);
  run.made_ = {nullptr, [made](void*) {
                 for (auto path = made.rbegin(); path != made.rend(); ++path) ::rmdir(path->c_str());
               }};
  // Only files are replaced: an error now, and not after the training.
  for (const char* name : {kModelFile, "metrics.jsonl"}) File::find(run.path_of(name));
  if (run.checkpoints().steps().empty()) run.config_ = request.config;
  else run.continue_with(request.config);
  if (run.newest_) return run;
  if (const std::string link = run.path_of("checkpoints"); std::filesystem::is_symlink(link) && !is_there(link))
    fail("{}: is a link to {}, which is not there", {link, one_line(std::filesystem::read_symlink(link).string())});
  if (is_there(run.path_of(kModelFile)))
    fail("{0}: holds a trained model but no checkpoint to continue from; init={0} name=... trains it further in another folder",
        {run.path()});
  return run;
}

// Takes the config for a run that continues; error: the run is another one.
void RunFolder::continue_with(TrainConfig asked) {
  read();
  if (!tokenizer_) tokenizer_ = open_tokenizer(path_of(kTokenizerFile));  // an error: it is missing
  newest_ = checkpoints().newest_sound(warn);
  take_labels(config_, *newest_);
  before_ = with_found_files(config_);
  if (asked.labels.empty()) asked.labels = config_.labels;
  if (follows_tokenizer_eos(asked)) asked.eos = config_.eos;
  // A vocabulary that is made from texts can come out smaller than it was asked for.
  if (find_tokenizer_kind(asked.tokenizer) || asked.tokenizer == kFormerKind)
    asked.model.vocab = std::min(asked.model.vocab, config_.model.vocab);
  const Metadata was = origin_of(*newest_, *before_, tokenizer_.get(), Compare::training);
  if (const std::string other = difference(was, asked, tokenizer_.get(), Compare::training); !other.empty())
    fail("{}: holds a run with {}; give the new run another name with name=..., or remove the folder", {path(), other});
  if (const int64_t done = step_of(*newest_); asked.steps < done)
    fail("{}: has done {} steps; steps: {} would be fewer", {path(), done, asked.steps});
  names_other_texts_ = before_->data != asked.data || before_->validation != asked.validation;
  config_ = asked;
}

// Reads the config and, if there is one, the tokenizer.
void RunFolder::read() {
  config_ = load_config<TrainConfig>(path_of(kConfigFile));
  if (!is_there(path_of(kTokenizerFile))) return;
  tokenizer_ = open_tokenizer(path_of(kTokenizerFile));
  resolve_vocab(config_, tokenizer_->vocab_size());
  resolve_eos(config_, *tokenizer_);
}

RunFolder RunFolder::open(const std::string& path_or_name, Vocabulary vocabulary) {
  const std::string path = find_run(path_or_name);
  if (!is_folder(path)) fail("{}: no such run folder{}", {path, runs_note(path)});
  RunFolder run(without_slashes(path));
  run.read();
  if (is_classifier(run.config_))
    if (const auto file = run.find_weights("last")) take_labels(run.config_, *file);
  const std::string tokenizer = run.path_of(kTokenizerFile);
  const int64_t vocab = run.config_.model.vocab;
  if (!run.tokenizer_ && vocab == 0) fail("{}: is missing; the size of the vocabulary follows from it", {tokenizer});
  if (!run.tokenizer_ && vocabulary == Vocabulary::needed)
    fail("{}: there is none; a model that was imported without a tokenizer reads and writes no text", {tokenizer});
  if (run.tokenizer_ && run.tokenizer_->vocab_size() > vocab)
    fail("{}: has {} tokens, but {} has model.vocab: {}", {tokenizer, run.tokenizer_->vocab_size(), run.path_of(kConfigFile), vocab});
  return run;
}

int64_t RunFolder::context(int64_t asked) const {
  const int64_t most = config_.model.ctx;
  if (asked > most) fail("context: {} is longer than the {} tokens that the model takes (model.ctx)", {asked, most});
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

TrainState RunFolder::resume(Model& model, Optimizer& optimizer, uint64_t text_hash, const std::function<uint64_t()>& former_hash) const {
  if (!newest_) return {.text_hash = text_hash, .schedule_steps = config_.schedule.steps.value_or(config_.steps)};
  const TextsByKey keys = lines_in(newest_->metadata(), "config");
  if (const auto ranks = keys.find("max_ranks"); ranks != keys.end() && ranks->second != "1")
    warn(format_message("{}: was trained with max_ranks: {}, which was removed; from here on gradients are added up in another order, and "
                        "its bits depend on the number of processes",
        {path(), ranks->second}));
  TrainState state = load_checkpoint(*newest_, model, optimizer);
  if (state.schedule_steps == 0) state.schedule_steps = before_->steps;  // a checkpoint from before version 0.1.0
  if (config_.schedule.ends()) state.schedule_steps = config_.schedule.steps.value_or(state.schedule_steps);
  if (state.text_hash != text_hash && !(former_hash && state.text_hash == former_hash()))
    fail("{}: the text changed since step {}; give a run on the new text another name with name=...", {path(), state.step});
  return state;
}

void RunFolder::check_place() const {
  if (!lock_->holds(path_)) fail("{}: the folder was removed or replaced since the training began", {path_});
}

void RunFolder::in_place(const std::function<void()>& write) const {
  check_place();
  try {
    write();
  } catch (const Error&) {
    check_place();  // it may have been removed while it was written to
    throw;
  }
}

// Looks again while the temporary file is open, because the folder may be replaced just before: after that, renaming the file fails.
ToHost RunFolder::to_host_in_place() const {
  return [this](const Tensor& tensor) {
    check_place();
    return to_host(tensor);
  };
}

void RunFolder::begin(const TrainConfig& config, const Tokenizer* tokenizer, const ImportedTemplate& kept) {
  in_place([&] { make_folders(checkpoints().folder); });
  for (const std::string& folder : {path_, checkpoints().folder}) remove_temporaries(folder);
  config_ = config;
  // An import that was killed here before it wrote its config may have left one of these files.
  const auto write = [&](const char* name, const std::string& text) {
    if (text.empty()) remove_file(path_of(name));
    else write_atomically(path_of(name), text);
  };
  if (!tokenizer_) {
    write(kTemplateFile, kept.file);
    write(kMemberFile, kept.member.empty() ? "" : "{\"chat_template\": " + kept.member + "}\n");
    write(kTokenizerFile, tokenizer ? tokenizer->to_json() : "");
  }
  if (!tokenizer_ && tokenizer) tokenizer_ = tokenizer_from_json(tokenizer->to_json());
  const std::string old_text = before_ ? read_text(path_of(kConfigFile)) : "", old_keys = before_ ? to_yaml(*before_) : "";
  if (const std::string text = config_file_text(config, old_text, old_keys); text != old_text) write_atomically(path_of(kConfigFile), text);
}

void RunFolder::save(Model& model, Optimizer& optimizer, const TrainState& state) const {
  in_place([&] {
    const Checkpoints all = checkpoints();
    make_folders(all.folder);
    save_checkpoint(
        all.path(state.step), model, optimizer, state, provenance(config_, tokenizer_.get(), Compare::training), to_host_in_place());
    all.prune(state, config_.keep_checkpoints);
  });
}

void RunFolder::save_model(Model& model, int64_t step) const {
  Metadata metadata = provenance(config_, tokenizer_.get(), Compare::model);
  metadata.insert({{"format", "ricci"}, {"step", std::to_string(step)}});
  in_place([&] { save_safetensors(path_of(kModelFile), weights_of(model), metadata, to_host_in_place()); });
}

void RunFolder::prune() const {
  const Checkpoints all = checkpoints();
  if (std::ssize(all.steps()) <= config_.keep_checkpoints) return;
  if (const auto newest = all.newest_sound(warn)) all.prune(read_train_state(*newest), config_.keep_checkpoints);
}

// Empty if the run has no weights, or no weights of this step.
std::optional<SafetensorsFile> RunFolder::find_weights(const std::string& which) const {
  const Checkpoints all = checkpoints();
  const std::vector<int64_t> steps = all.steps();
  if (which == "last") {
    std::optional<SafetensorsFile> model = SafetensorsFile::find(path_of(kModelFile));
    return model && (steps.empty() || step_of(*model) >= steps.back()) ? std::move(model) : all.newest_sound(warn);
  }
  std::string wanted = which;
  if (which == "best") {
    const std::optional<SafetensorsFile> newest = all.newest_sound(warn);
    const int64_t best = newest ? read_train_state(*newest).best_step : -1;
    if (best < 0) fail("{}: no checkpoint holds an evaluation", {path()});
    wanted = std::to_string(best);
  }
  for (const int64_t step : steps)
    if (std::to_string(step) == wanted)
      if (auto found = SafetensorsFile::find(all.path(step))) return found;
  if (all.steps() != steps) return find_weights(which);  // a training at work has removed it since the folder was listed
  return {};
}

SafetensorsFile RunFolder::open_weights(const std::string& which) const {
  std::optional<SafetensorsFile> file = find_weights(which);
  if (!file && which == "last") fail("cannot read {}: No such file or directory", {path_of(kModelFile)});
  if (!file) {
    std::string kept;
    for (const int64_t step : checkpoints().steps()) kept += (kept.empty() ? "" : ", ") + std::to_string(step);
    fail("{}: no checkpoint '{}'; there are best, last and steps {}", {path(), which, kept.empty() ? "(none)" : kept});
  }
  file->verify();
  const Metadata was = origin_of(*file, config_, tokenizer_.get(), Compare::model);
  if (const std::string other = difference(was, config_, tokenizer_.get(), Compare::model); !other.empty())
    fail("{}: it was trained with {}", {file->path(), other});
  return std::move(*file);
}

Model RunFolder::load_model(Device device, const std::string& which, Dtype dtype) const {
  const SafetensorsFile file = open_weights(which);
  Model model(config_.model);
  load_weights(model, file);
  model.place(dtype, device);
  return model;
}

}  // namespace ricci::apps
