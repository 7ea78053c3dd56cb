#include "models/training/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "autograd/random.h"
#include "core/dims.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {
namespace {

namespace fs = std::filesystem;

// A number of the metadata. Error: it is missing or not a number.
template <class Number> Number number_of(const SafetensorsFile& file, const char* key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) fail("{}: its metadata has no {}", {file.path(), key});
  const std::string& text = found->second;
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) fail("{}: its metadata has {} = '{}', expected a number", {file.path(), key, text});
  return value;
}

// f(name, tensor) for every tensor of a checkpoint: of bf16 values their masters, of which they are the rounding.
void each_tensor(Model& model, Optimizer& optimizer, const std::function<void(const std::string& name, Tensor& tensor)>& f) {
  model.each_parameter([&](const std::string& path, Parameter& p) { f(path, p.master ? p.master : p.value); });
  optimizer.each_state([&](const std::string& name, Tensor& t) { f(kOptimizerPrefix + name, t); });
}

void load_tensor(const SafetensorsFile& file, const std::string& name, const Tensor& into) {
  if (!file.contains(name)) fail("{}: tensor {} {} is missing", {file.path(), name, show(into.shape())});
  if (!(file.shape(name) == into.shape())) fail("{}: tensor {} is {}, expected {}", {file.path(), name, show(file.shape(name)), show(into.shape())});
  if (file.dtype(name) != into.dtype()) fail("{}: tensor {} is {}, expected {}", {file.path(), name, name_of(file.dtype(name)), name_of(into.dtype())});
  copy(into, file.load(name));
}

}  // namespace

bool TrainState::improves(double val_loss) {
  if (!(val_loss < best_loss)) return false;
  best_loss = val_loss, best_step = step;
  return true;
}

void save_checkpoint(const std::string& path, Model& model, Optimizer& optimizer, const TrainState& state) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  each_tensor(model, optimizer, [&](const std::string& name, Tensor& t) { tensors.emplace_back(name, to(t, Device::cpu)); });
  const RandomState random = random_state();
  save_checked_safetensors(path, tensors,
                           {{"format", "ricci checkpoint"},
                            {"step", std::to_string(state.step)},
                            {"best_step", std::to_string(state.best_step)},
                            {"best_loss", fmt::format("{}", state.best_loss)},
                            {"text_hash", std::to_string(state.text_hash)},
                            {"optimizer_steps", std::to_string(optimizer.steps())},
                            {"random_seed", std::to_string(random.seed)},
                            {"random_stream", std::to_string(random.next_stream)},
                            {"random_part", std::to_string(random.part)}});
}

TrainState read_train_state(const SafetensorsFile& file) {
  return {number_of<int64_t>(file, "step"), number_of<int64_t>(file, "best_step"), number_of<double>(file, "best_loss"),
          number_of<uint64_t>(file, "text_hash")};
}

TrainState load_checkpoint(const std::string& path, Model& model, Optimizer& optimizer) {
  const SafetensorsFile file(path);
  std::set<std::string> known;
  each_tensor(model, optimizer, [&](const std::string& name, Tensor& t) {
    known.insert(name);
    load_tensor(file, name, t);
  });
  model.each_parameter([](const std::string&, Parameter& p) {
    if (p.master) copy(p.value, convert(p.master, p.value.dtype()));
  });
  for (const std::string& name : file.names())
    if (!known.count(name)) fail("{}: tensor {} {} belongs to no part of this training", {path, name, show(file.shape(name))});
  optimizer.set_steps(number_of<int64_t>(file, "optimizer_steps"));
  set_random_state({number_of<uint64_t>(file, "random_seed"), number_of<uint64_t>(file, "random_stream"), number_of<uint64_t>(file, "random_part")});
  return read_train_state(file);
}

void load_weights(Model& model, const std::string& path) {
  const SafetensorsFile file(path);
  std::set<std::string> known;
  model.load([&](const std::string& name, const Shape& shape) {
    known.insert(name);
    if (!file.contains(name)) fail("{}: tensor {} {} is missing", {path, name, show(shape)});
    if (!(file.shape(name) == shape)) fail("{}: tensor {} is {}, expected {}", {path, name, show(file.shape(name)), show(shape)});
    return file.load(name);
  });
  for (const std::string& name : file.names())
    if (!known.count(name) && !name.starts_with(kOptimizerPrefix))
      fail("{}: tensor {} {} is no parameter of this model", {path, name, show(file.shape(name))});
}

std::string Checkpoints::path(int64_t step) const { return fmt::format("{}/step-{:08}.safetensors", folder_, step); }

std::vector<int64_t> Checkpoints::steps() const {
  std::vector<int64_t> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    int64_t step = -1;
    if (name.starts_with("step-")) std::from_chars(name.data() + 5, name.data() + name.size(), step);
    if (step >= 0 && folder_ + "/" + name == path(step)) found.push_back(step);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string Checkpoints::newest_sound(const std::function<void(const std::string&)>& warn) const {
  const std::vector<int64_t> all = steps();
  std::string fault;
  for (auto step = all.rbegin(); step != all.rend(); ++step) {
    try {
      SafetensorsFile(path(*step)).verify();
      if (!fault.empty()) warn(fault + "; the checkpoint of step " + std::to_string(*step) + " is used");
      return path(*step);
    } catch (const Error& error) {
      if (fault.empty()) fault = error.what();
    }
  }
  if (!fault.empty()) fail("{}; no sound checkpoint is left among {}", {fault, all.size()});
  return "";
}

void Checkpoints::prune(const TrainState& state, int64_t count) const {
  std::vector<int64_t> all = steps();
  std::reverse(all.begin(), all.end());
  for (const int64_t step : all) {
    const bool kept = step <= state.step && count-- > 0;
    std::error_code ignored;  // what cannot be removed now is tried again after the next save
    if (!kept && step != state.best_step) fs::remove(path(step), ignored);
  }
}

}  // namespace ricci
