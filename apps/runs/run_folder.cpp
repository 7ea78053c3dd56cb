#include "apps/runs/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>

#include "apps/config/config.h"
#include "apps/runs/build_info.h"
#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/dims.h"
#include "core/error.h"
#include "core/files/file.h"
#include "cuda/device/device.h"

namespace ricci::apps {
namespace {

namespace fs = std::filesystem;

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

std::shared_ptr<const Tokenizer> read_tokenizer(const std::string& path) {
  const std::string json = read_text(path);
  try {
    return tokenizer_from_json(json);
  } catch (const Error& error) {
    fail("{}: {}", {path, error.what()});
  }
}

// Error where a run of the config `before` cannot go on with the config `now`.
void check_same_run(const std::string& path, TrainConfig before, TrainConfig now) {
  now.model.vocab = before.model.vocab;  // the tokenizer's, whatever the run file says
  const std::vector<Field> old_fields = fields_of(before), fields = fields_of(now);
  for (size_t i = 0; i < fields.size(); ++i) {
    const auto& [key, value, description, info] = fields[i];
    if (info.may_change || !info.is_read) continue;
    const std::string was = value_text(old_fields[i]), is = value_text(fields[i]);
    if (was != is) fail("{}: holds a run with {}: {}, not {}; give the new run another name with name=..., or remove the folder", {path, key, was, is});
  }
  if (now.steps < before.steps) fail("{}: holds a run of {} steps; steps: {} would be fewer", {path, before.steps, now.steps});
}

// config.yaml: a line about this build on top, one more for every other build or device that went on with the run.
std::string config_text(const TrainConfig& config, const std::string& old_text, int64_t step) {
  std::string head;
  for (size_t at = 0; at < old_text.size() && old_text[at] == '#'; at = head.size()) head += old_text.substr(at, old_text.find('\n', at) + 1 - at);
  const std::string line = format_message("{}, device {} ({}), threads {}, seed {}",
                                          {build_info(), name_of(config.device), name_of(cpu_isa()), thread_count(), config.seed});
  if (head.empty()) head = "# " + line + "\n";
  if (!head.ends_with(" " + line + "\n")) head += format_message("# after step {}: {}\n", {step, line});
  return head + to_yaml(config);
}

// Files that a killed write left: .NAME.tmp-PID.
void remove_leftovers(const std::string& folder) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.') && name.find(".tmp-") != name.npos) fs::remove(entry.path(), ignored);
  }
}

void warn(const std::string& line) { std::fprintf(stderr, "warning: %s\n", line.c_str()); }

int64_t step_of(const SafetensorsFile& file) {
  const auto found = file.metadata().find("step");
  return found == file.metadata().end() ? 0 : std::atoll(found->second.c_str());
}

}  // namespace

RunRequest request_run(const std::string& file_or_folder, const std::vector<std::string>& overrides) {
  if (!fs::is_directory(file_or_folder)) {
    const TrainConfig config = load_config<TrainConfig>(file_or_folder, overrides);
    return {"runs/" + config.name, config};
  }
  const std::string folder = without_slashes(file_or_folder), file = folder + "/config.yaml";
  const TrainConfig config = load_config<TrainConfig>(file, overrides);
  return {config.name == load_config<TrainConfig>(file).name ? folder : "runs/" + config.name, config};
}

RunFolder RunFolder::to_train(const RunRequest& request) {
  RunFolder run;
  run.path_ = request.folder;
  run.config_ = request.config;
  if (run.checkpoints().steps().empty()) {
    if (fs::exists(run.file("model.safetensors")))
      fail("{}: holds a trained model but no checkpoint to go on from; remove the folder, or give the run another name with name=...", {run.path_});
    return run;
  }
  run.lock();
  check_same_run(run.path_, load_config<TrainConfig>(run.file("config.yaml")), request.config);
  run.tokenizer_ = read_tokenizer(run.file("tokenizer.json"));
  return run;
}

RunFolder RunFolder::open(const std::string& path) {
  if (!fs::is_directory(path)) fail("{}: no such run folder", {path});
  RunFolder run;
  run.path_ = without_slashes(path);
  run.config_ = load_config<TrainConfig>(run.file("config.yaml"));
  run.tokenizer_ = read_tokenizer(run.file("tokenizer.json"));
  if (const int64_t tokens = run.tokenizer_->vocab_size(), vocab = run.config_.model.vocab; tokens != vocab)
    fail("{}: has {} tokens, but {} has model.vocab: {}", {run.file("tokenizer.json"), tokens, run.file("config.yaml"), vocab});
  return run;
}

void RunFolder::lock() {
  if (lock_) return;
  const int descriptor = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail("{}: {}", {path_, std::generic_category().message(errno)});
  lock_ = std::shared_ptr<void>(nullptr, [descriptor](void*) { ::close(descriptor); });
  // Some file systems have no locks.
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) fail("{}: another ricci-train is at work in it", {path_});
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

TrainState RunFolder::resume(Model& model, Optimizer& optimizer, uint64_t text_hash) const {
  const std::string newest = checkpoints().newest_sound(warn);
  if (newest.empty()) return {.text_hash = text_hash};
  const TrainState state = load_checkpoint(newest, model, optimizer);
  if (state.text_hash != text_hash)
    fail("{}: the text changed since step {}; give a run on the new text another name with name=...", {path_, state.step});
  return state;
}

void RunFolder::begin(const TrainConfig& config, const Tokenizer& tokenizer, int64_t step) {
  make_folders(file("checkpoints"));
  lock();
  for (const std::string& folder : {path_, file("checkpoints")}) remove_leftovers(folder);
  config_ = config;
  const bool is_new = !tokenizer_;
  if (is_new) {
    if (!checkpoints().steps().empty()) fail("{}: another ricci-train has begun this run just now", {path_});
    write_file_atomically(file("tokenizer.json"), tokenizer.to_json());
    tokenizer_ = tokenizer_from_json(tokenizer.to_json());
  }
  const std::string old_text = is_new ? "" : read_text(file("config.yaml")), text = config_text(config, old_text, step);
  if (text != old_text) write_file_atomically(file("config.yaml"), text);
}

void RunFolder::save(Model& model, Optimizer& optimizer, const TrainState& state) const {
  save_checkpoint(checkpoints().path(state.step), model, optimizer, state);
  checkpoints().prune(state, config_.keep_checkpoints);
}

void RunFolder::save_model(Model& model, int64_t step) const {
  std::vector<std::pair<std::string, Tensor>> tensors;
  model.each_parameter([&](const std::string& name, Parameter& p) { tensors.emplace_back(name, to(p.unrounded(), Device::cpu)); });
  save_checked_safetensors(file("model.safetensors"), tensors, {{"format", "ricci"}, {"step", std::to_string(step)}});
}

std::string RunFolder::weights_file(const std::string& which) const {
  const std::string model = file("model.safetensors");
  const std::vector<int64_t> steps = checkpoints().steps();
  if (which == "last") {
    const bool ended = fs::exists(model) && (steps.empty() || step_of(SafetensorsFile(model)) >= steps.back());
    return ended || steps.empty() ? model : checkpoints().newest_sound(warn);
  }
  std::string wanted = which;
  if (which == "best") {
    const std::string newest = checkpoints().newest_sound(warn);
    const int64_t best = newest.empty() ? -1 : read_train_state(SafetensorsFile(newest)).best_step;
    if (best < 0) fail("{}: no checkpoint tells of an evaluation", {path_});
    wanted = std::to_string(best);
  }
  std::string kept;
  for (const int64_t step : steps) {
    if (std::to_string(step) == wanted) return checkpoints().path(step);
    kept += (kept.empty() ? "" : ", ") + std::to_string(step);
  }
  fail("{}: no checkpoint '{}'; there are best, last and those of steps {}", {path_, wanted, kept.empty() ? "(none)" : kept});
}

bool RunFolder::finished() const {
  const std::vector<int64_t> steps = checkpoints().steps();
  const std::string path = file("model.safetensors");
  if (steps.empty() || steps.back() != config_.steps || !fs::exists(path)) return false;
  try {
    const SafetensorsFile model(path);
    model.verify();
    return step_of(model) == config_.steps;
  } catch (const Error& error) {
    warn(format_message("{}; it is written again", {error.what()}));
    return false;
  }
}

Model RunFolder::load_model(Device device, const std::string& which, Dtype dtype) const {
  const std::string path = weights_file(which);
  SafetensorsFile(path).verify();
  Model model(config_.model);
  load_weights(model, path);
  model.place(dtype, device);
  return model;
}

}  // namespace ricci::apps
