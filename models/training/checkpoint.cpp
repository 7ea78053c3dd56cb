#include "models/training/checkpoint.h"

#include <fmt/format.h>

#include <charconv>
#include <set>
#include <sstream>

#include "core/dims.h"
#include "core/error.h"
#include "core/philox.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {
namespace {

// Every tensor of a checkpoint, for saving, loading and sharing.
NamedTensors tensors_of(Model& model, const Optimizer& optimizer) {
  NamedTensors all = weights_of(model);
  optimizer.each_state([&](const std::string& name, const Tensor& tensor) { all.emplace_back(kOptimizerPrefix + name, tensor); });
  return all;
}

// Everything in a checkpoint that is not a tensor.
Metadata metadata_of(const TrainState& state, const Optimizer& optimizer) {
  const auto [seed, next_stream, micro_batch, in_memory] = random_state();
  Metadata metadata = {{"format", "ricci checkpoint"}, {"step", std::to_string(state.step)}, {"best_step", std::to_string(state.best_step)},
      {"best_loss", fmt::format("{}", state.best_loss)}, {"text_hash", std::to_string(state.text_hash)},
      {"optimizer_steps", std::to_string(optimizer.steps())}, {"random_seed", std::to_string(seed)},
      {"random_stream", std::to_string(next_stream)}, {"random_part", std::to_string(micro_batch)},
      {"schedule_steps", std::to_string(state.schedule_steps)}};
  if (state.awaits_evaluation) metadata["awaits_evaluation"] = "true";
  if (!state.data_place.empty()) metadata["data_place"] = state.data_place;
  return metadata;
}

template <class Number> Number number_in(const Metadata& metadata, const std::string& path, const char* key) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) fail("{}: {} is missing from its metadata", {path, key});
  const std::string& text = found->second;
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) fail("{}: metadata: {} is '{}', expected a number", {path, key, text});
  return value;
}

// The inverse of metadata_of. With an optimizer, it also sets the optimizer's step count and the random state of this thread.
TrainState state_of(const Metadata& metadata, const std::string& path, Optimizer* optimizer) {
  const auto number = [&](const char* key) { return number_in<uint64_t>(metadata, path, key); };
  if (optimizer) optimizer->set_steps(number_in<int64_t>(metadata, path, "optimizer_steps"));
  if (optimizer) set_random_state({number("random_seed"), number("random_stream"), number("random_part")});
  TrainState state = {number_in<int64_t>(metadata, path, "step"), number_in<int64_t>(metadata, path, "best_step"),
      number_in<double>(metadata, path, "best_loss"), number("text_hash"), number_in<int64_t>(metadata, path, "schedule_steps")};
  if (state.step < 0 || state.step > kMaxSteps || state.best_step > state.step)
    fail("{}: invalid metadata: step = {}, best_step = {}", {path, state.step, state.best_step});
  state.awaits_evaluation = metadata.contains("awaits_evaluation");
  if (const auto place = metadata.find("data_place"); place != metadata.end()) state.data_place = place->second;
  return state;
}

enum class Holds { training, weights };  // weights: any optimizer state is ignored

void check_tensors(const SafetensorsFile& file, const NamedTensors& expected, Holds holds) {
  std::set<std::string> known;
  for (const auto& [name, tensor] : expected) {
    known.insert(name);
    const Shape& shape = tensor.shape();
    if (!file.contains(name)) fail("{}: tensor {} {} is missing", {file.path(), name, show(shape)});
    if (!(file.shape(name) == shape)) fail("{}: tensor {} is {}, expected {}", {file.path(), name, show(file.shape(name)), show(shape)});
    if (holds == Holds::training && file.dtype(name) != tensor.dtype())
      fail("{}: tensor {} is {}, expected {}", {file.path(), name, name_of(file.dtype(name)), name_of(tensor.dtype())});
  }
  for (const std::string& name : file.names()) {
    if (known.count(name) || (holds == Holds::weights && name.starts_with(kOptimizerPrefix))) continue;
    const char* const reason = holds == Holds::weights ? "is not a parameter of this model" : "does not belong to this training run";
    fail("{}: tensor {} {} {}", {file.path(), name, show(file.shape(name)), reason});
  }
}

}  // namespace

void save_checkpoint(const std::string& path, Model& model, Optimizer& optimizer, const TrainState& state, const Metadata& more) {
  Metadata metadata = metadata_of(state, optimizer);
  metadata.insert(more.begin(), more.end());
  save_safetensors(path, tensors_of(model, optimizer), metadata, to_host);
}

TrainState read_train_state(const SafetensorsFile& file) { return state_of(file.metadata(), file.path(), nullptr); }

TrainState load_checkpoint(const SafetensorsFile& file, Model& model, Optimizer& optimizer) {
  check_tensors(file, tensors_of(model, optimizer), Holds::training);
  model.load([&](const std::string& path, const Shape&) { return file.load(path); });
  optimizer.each_state([&](const std::string& name, const Tensor& tensor) { copy(tensor, file.load(kOptimizerPrefix + name)); });
  return state_of(file.metadata(), file.path(), &optimizer);
}

void share_training(Ranks& ranks, Model& model, Optimizer& optimizer, TrainState& state) {
  if (ranks.count() == 1) return;
  for (const auto& [name, tensor] : tensors_of(model, optimizer)) {
    const Tensor on_host = to_host(tensor);
    ranks.from_first(on_host);
    if (tensor.device() != Device::cpu) copy(tensor, on_host);
  }
  model.each_parameter([](const std::string&, Parameter& p) {
    if (p.master) copy(p.value, convert(p.master, p.value.dtype()));
  });
  std::string text;
  for (const auto& [key, value] : metadata_of(state, optimizer)) text += key + "\n" + value + "\n";
  std::istringstream lines(ranks.from_first(text));
  Metadata metadata;
  for (std::string key, value; std::getline(lines, key) && std::getline(lines, value);) metadata[key] = value;
  state = state_of(metadata, ranks.name(0), &optimizer);
}

NamedTensors weights_of(Model& model) {
  NamedTensors all;
  model.each_parameter([&](const std::string& path, Parameter& p) { all.emplace_back(path, p.unrounded()); });
  return all;
}

void load_weights(Model& model, const SafetensorsFile& file) {
  check_tensors(file, weights_of(model), Holds::weights);
  model.load([&](const std::string& name, const Shape&) { return file.load(name); });
}

std::string Checkpoints::name_of(int64_t step) { return fmt::format("step-{:08}.safetensors", step); }

std::vector<int64_t> Checkpoints::steps() const {
  std::set<int64_t> found;
  for (const std::string& name : is_there(folder) ? names_in(folder) : std::vector<std::string>()) {
    int64_t step = -1;
    if (name.starts_with("step-")) std::from_chars(name.data() + 5, name.data() + name.size(), step);
    if (step >= 0 && name == name_of(step)) found.insert(step);
  }
  return {found.begin(), found.end()};
}

std::optional<SafetensorsFile> Checkpoints::newest_sound(const std::function<void(const std::string&)>& warn) const {
  std::string fault;  // the error of the newest damaged file
  std::vector<int64_t> listed = steps();
  for (std::vector<int64_t> all = listed; !all.empty();) {
    const int64_t step = all.back();
    all.pop_back();
    try {
      std::optional<SafetensorsFile> found = SafetensorsFile::find(path(step));
      if (found) found->verify();
      else if (steps() != listed) all = listed = steps();  // a running training process has removed it
      if (found && !fault.empty()) warn(fault + "; using the checkpoint of step " + std::to_string(step));
      if (found) return found;
    } catch (const Error& error) {
      if (fault.empty()) fault = error.what();
    }
  }
  if (fault.empty()) return {};
  fail("{}; all {} checkpoints are damaged; name=... starts a new run", {fault, steps().size()});
}

void Checkpoints::prune(const TrainState& state, int64_t count) const {
  const std::vector<int64_t> all = steps();
  for (auto step = all.rbegin(); step != all.rend(); ++step) {
    const bool is_recent = *step <= state.step && count-- > 0;
    try {
      if (!is_recent && *step != state.best_step) remove_file(path(*step));
    } catch (const Error&) {  // the next save tries again
    }
  }
}

}  // namespace ricci
