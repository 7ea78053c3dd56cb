#include "models/training/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "autograd/random.h"
#include "core/dims.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {
namespace {

constexpr int kAttempts = 1000;  // to open a checkpoint before a training at work removes it

// A number of the metadata. Error: it is missing or not a number.
template <class Number> Number number_of(const SafetensorsFile& file, const char* key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) fail("{}: its metadata has no {}", {file.path(), key});
  const std::string& text = found->second;
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    fail("{}: its metadata has {} = '{}', expected a number", {file.path(), key, text});
  return value;
}

// f(name, tensor) for every tensor of a checkpoint: the f32 master stands for a bf16 value, which is its rounding.
void each_tensor(Model& model, Optimizer& optimizer, const std::function<void(const std::string& name, Tensor& tensor)>& f) {
  model.each_parameter([&](const std::string& path, Parameter& p) { f(path, p.master ? p.master : p.value); });
  optimizer.each_state([&](const std::string& name, Tensor& t) { f(kOptimizerPrefix + name, t); });
}

void check_shape(const SafetensorsFile& file, const std::string& name, const Shape& shape) {
  if (!file.contains(name)) fail("{}: tensor {} {} is missing", {file.path(), name, show(shape)});
  if (!(file.shape(name) == shape)) fail("{}: tensor {} is {}, expected {}", {file.path(), name, show(file.shape(name)), show(shape)});
}

void load_tensor(const SafetensorsFile& file, const std::string& name, const Tensor& into) {
  check_shape(file, name, into.shape());
  if (file.dtype(name) != into.dtype())
    fail("{}: tensor {} is {}, expected {}", {file.path(), name, name_of(file.dtype(name)), name_of(into.dtype())});
  copy(into, file.load(name));
}

}  // namespace

bool TrainState::improves(double val_loss) {
  if (!(val_loss < best_loss)) return false;
  best_loss = val_loss;
  best_step = step;
  return true;
}

TensorSource source_of(const std::string& name, const Tensor& tensor) {
  return {name, tensor.shape(), tensor.dtype(), [tensor] { return to(tensor, Device::cpu); }};
}

void save_checkpoint(const FilePlace& place, Model& model, Optimizer& optimizer, const TrainState& state, const Metadata& more) {
  std::vector<TensorSource> tensors;
  each_tensor(model, optimizer, [&](const std::string& name, Tensor& t) { tensors.push_back(source_of(name, t)); });
  const RandomState random = random_state();
  Metadata metadata = {{"format", "ricci checkpoint"}, {"step", std::to_string(state.step)}, {"best_step", std::to_string(state.best_step)},
      {"best_loss", fmt::format("{}", state.best_loss)}, {"text_hash", std::to_string(state.text_hash)},
      {"optimizer_steps", std::to_string(optimizer.steps())}, {"random_seed", std::to_string(random.seed)},
      {"random_stream", std::to_string(random.next_stream)},
      {"random_part", std::to_string(random.micro_batch)}};  // the file's name for it
  if (state.schedule_steps > 0) metadata["schedule_steps"] = std::to_string(state.schedule_steps);
  if (state.awaits_evaluation) metadata["awaits_evaluation"] = "true";
  if (!state.data_place.empty()) metadata["data_place"] = state.data_place;
  metadata.insert(more.begin(), more.end());
  save_checked_safetensors_from(place, std::move(tensors), metadata);
}

TrainState read_train_state(const SafetensorsFile& file) {
  TrainState state = {number_of<int64_t>(file, "step"), number_of<int64_t>(file, "best_step"), number_of<double>(file, "best_loss"),
      number_of<uint64_t>(file, "text_hash")};
  if (state.step < 0 || state.step > kMaxSteps || state.best_step > state.step)
    fail("{}: its metadata has step = {} and best_step = {}, which cannot be", {file.path(), state.step, state.best_step});
  if (file.metadata().contains("schedule_steps")) state.schedule_steps = number_of<int64_t>(file, "schedule_steps");
  // Older files told it by the loss of the step.
  state.awaits_evaluation = file.metadata().contains("awaits_evaluation") || file.metadata().contains("unrecorded_loss");
  if (const auto place = file.metadata().find("data_place"); place != file.metadata().end()) state.data_place = place->second;
  return state;
}

TrainState load_checkpoint(const SafetensorsFile& file, Model& model, Optimizer& optimizer) {
  std::set<std::string> known;
  each_tensor(model, optimizer, [&](const std::string& name, Tensor& t) {
    known.insert(name);
    load_tensor(file, name, t);
  });
  model.each_parameter([](const std::string&, Parameter& p) {
    if (p.master) copy(p.value, convert(p.master, p.value.dtype()));
  });
  for (const std::string& name : file.names())
    if (!known.count(name)) fail("{}: tensor {} {} belongs to no part of this training", {file.path(), name, show(file.shape(name))});
  optimizer.set_steps(number_of<int64_t>(file, "optimizer_steps"));
  set_random_state(
      {number_of<uint64_t>(file, "random_seed"), number_of<uint64_t>(file, "random_stream"), number_of<uint64_t>(file, "random_part")});
  return read_train_state(file);
}

void load_weights(Model& model, const SafetensorsFile& file) {
  std::set<std::string> known;
  model.load([&](const std::string& name, const Shape& shape) {
    known.insert(name);
    check_shape(file, name, shape);
    return file.load(name);
  });
  for (const std::string& name : file.names())
    if (!known.count(name) && !name.starts_with(kOptimizerPrefix))
      fail("{}: tensor {} {} is no parameter of this model", {file.path(), name, show(file.shape(name))});
}

std::string Checkpoints::name_of(int64_t step) { return fmt::format("step-{:08}.safetensors", step); }

FilePlace Checkpoints::place(int64_t step) const {
  if (!folder_) fail("{}: there is no such folder", {path_});
  return {*folder_, name_of(step)};
}

std::vector<int64_t> Checkpoints::steps() const {
  std::vector<int64_t> found;
  if (!folder_) return found;
  for (const std::string& name : folder_->names()) {
    int64_t step = -1;
    if (name.starts_with("step-")) std::from_chars(name.data() + 5, name.data() + name.size(), step);
    if (step >= 0 && name == name_of(step)) found.push_back(step);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<SafetensorsFile> Checkpoints::open(int64_t step) const {
  const std::optional<OpenFile> file = folder_ ? OpenFile::find(place(step)) : std::nullopt;
  return file ? std::optional<SafetensorsFile>(MappedFile(*file)) : std::nullopt;
}

std::optional<SafetensorsFile> Checkpoints::newest_sound(const std::function<void(const std::string&)>& warn) const {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::vector<int64_t> all = steps();
    std::string fault;
    auto step = all.rbegin();
    for (; step != all.rend(); ++step) {
      try {
        std::optional<SafetensorsFile> found = open(*step);
        if (!found) break;  // removed since the folder was listed
        found->verify();
        if (!fault.empty()) warn(fault + "; the checkpoint of step " + std::to_string(*step) + " is used");
        return found;
      } catch (const Error& error) {
        if (fault.empty()) fault = error.what();
      }
    }
    if (step == all.rend() && !fault.empty()) fail("{}; no sound checkpoint is left among {}", {fault, all.size()});
    if (step == all.rend()) return {};
  }
  fail("{}: checkpoints are removed faster than they can be opened", {path_});
}

void Checkpoints::prune(const TrainState& state, int64_t count) const {
  std::vector<int64_t> all = steps();
  std::reverse(all.begin(), all.end());
  for (const int64_t step : all) {
    const bool kept = step <= state.step && count-- > 0;
    if (kept || step == state.best_step) continue;
    try {
      remove_file(place(step));
    } catch (const Error&) {  // what cannot be removed now is tried again after the next save
    }
  }
}

}  // namespace ricci
