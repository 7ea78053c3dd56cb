#include "models/training/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "autograd/gradient_layout.h"
#include "autograd/random.h"
#include "core/dims.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci {
namespace {

constexpr int kAttempts = 1000;  // to open a checkpoint before a training at work removes it

// A number of the metadata of a file. Error: it is missing or not a number.
template <class Number> Number number_of(const Metadata& metadata, const std::string& path, const char* key) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) fail("{}: its metadata has no {}", {path, key});
  const std::string& text = found->second;
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    fail("{}: its metadata has {} = '{}', expected a number", {path, key, text});
  return value;
}

PartedTensor whole(const std::string& name, const Tensor& tensor) {
  return {name, tensor.shape(), tensor.dtype(), {{{0, tensor.size()}, tensor}}, {}};
}

// The elements of each trained parameter that each rank has, by the path of the parameter. One rank: none, as it has all.
using Hands = std::map<std::string, std::vector<std::vector<Range>>>;
Hands hands_of(Model& model, const Ranks& ranks) {
  Hands hands;
  if (ranks.count() == 1) return hands;
  const std::vector<Parameter*> trained = model.trained_parameters();
  const GradientLayout layout(trained, ranks.count());
  for (const Parameter* p : trained) hands[p->path].resize(static_cast<size_t>(ranks.count()));
  for (int r = 0; r < ranks.count(); ++r)
    for (const ParameterBlock& block : layout.blocks_of(r))
      hands[trained[block.parameter]->path][static_cast<size_t>(r)].push_back(block.elements);
  return hands;
}

PartedTensor parted(const std::string& name, const Shape& shape, Dtype dtype, const std::vector<StateBlock>& blocks, const Hands& hands,
    const std::string& path) {
  const auto found = hands.find(path);
  PartedTensor tensor{name, shape, dtype, {}, found == hands.end() ? std::vector<std::vector<Range>>() : found->second};
  for (const StateBlock& block : blocks) tensor.mine.emplace_back(block.elements, block.values);
  return tensor;
}

// The parameters. A bf16 value is saved as its f32 master.
std::vector<PartedTensor> unrounded(Model& model, const Optimizer& optimizer, const Hands& hands) {
  std::vector<PartedTensor> all;
  model.each_parameter([&](const std::string& path, Parameter& p) {
    if (p.master_in_blocks) all.push_back(parted(path, p.value.shape(), p.sum_dtype(), optimizer.master_blocks(p), hands, path));
    else all.push_back(whole(path, p.unrounded()));
  });
  return all;
}

// Every tensor of a checkpoint.
std::vector<PartedTensor> tensors_of(Model& model, const Optimizer& optimizer, const Ranks& ranks) {
  const Hands hands = hands_of(model, ranks);
  std::vector<PartedTensor> all = unrounded(model, optimizer, hands);
  std::map<std::string, Dtype> dtypes;
  model.each_parameter([&](const std::string& path, Parameter& p) { dtypes[path] = sums_of(p.value.dtype()); });
  optimizer.each_state_block([&](const std::string& name, const Shape& shape, const std::vector<StateBlock>& blocks) {
    const std::string path = name.substr(0, name.rfind('.'));  // blocks.0.fc.weight of blocks.0.fc.weight.m
    all.push_back(parted(kOptimizerPrefix + name, shape, dtypes.at(path), blocks, hands, path));
  });
  return all;
}

std::vector<TensorSource> sources_of(Ranks& ranks, const std::vector<PartedTensor>& tensors) {
  std::vector<TensorSource> sources;
  for (const PartedTensor& tensor : tensors) sources.push_back(source_of(ranks, tensor));
  return sources;
}

void check_shape(const SafetensorsFile& file, const std::string& name, const Shape& shape) {
  if (!file.contains(name)) fail("{}: tensor {} {} is missing", {file.path(), name, show(shape)});
  if (!(file.shape(name) == shape)) fail("{}: tensor {} is {}, expected {}", {file.path(), name, show(file.shape(name)), show(shape)});
}

Tensor load_tensor(const SafetensorsFile& file, const PartedTensor& t) {
  check_shape(file, t.name, t.shape);
  if (file.dtype(t.name) != t.dtype)
    fail("{}: tensor {} is {}, expected {}", {file.path(), t.name, name_of(file.dtype(t.name)), name_of(t.dtype)});
  return file.load(t.name);
}

// The metadata of a checkpoint beside the state of the training.
struct Counters {
  int64_t optimizer_steps = 0;
  RandomState random = {};
};

// Gives every rank the tensors and the counters. Rank 0 has the file; on the others it is null.
void spread(Ranks& ranks, const SafetensorsFile* file, Model& model, Optimizer& optimizer, const Counters& of_first) {
  std::map<std::string, Tensor> values;  // which are roundings of masters
  model.each_parameter([&](const std::string& path, Parameter& p) {
    if (p.master || p.master_in_blocks) values[path] = p.value;
  });
  for (const PartedTensor& tensor : tensors_of(model, optimizer, ranks)) {
    const Tensor all = scatter(ranks, tensor, file ? load_tensor(*file, tensor) : Tensor());
    if (const auto found = values.find(tensor.name); found != values.end()) copy(found->second, convert(all, found->second.dtype()));
  }
  const Tensor counters({4}, Dtype::i64);
  int64_t* const numbers = counters.data<int64_t>();
  const auto [seed, next_stream, micro_batch, in_memory] = of_first.random;
  const int64_t given[] = {
      of_first.optimizer_steps, static_cast<int64_t>(seed), static_cast<int64_t>(next_stream), static_cast<int64_t>(micro_batch)};
  std::copy(std::begin(given), std::end(given), numbers);
  ranks.from_first(counters);
  ranks.wait_for_first();
  optimizer.set_steps(numbers[0]);
  set_random_state({static_cast<uint64_t>(numbers[1]), static_cast<uint64_t>(numbers[2]), static_cast<uint64_t>(numbers[3])});
}

// The numbers about steps and evaluations, as metadata, and back.
Metadata metadata_of(const TrainState& state) {
  Metadata metadata = {{"step", std::to_string(state.step)}, {"best_step", std::to_string(state.best_step)},
      {"best_loss", fmt::format("{}", state.best_loss)}, {"text_hash", std::to_string(state.text_hash)}};
  if (state.schedule_steps > 0) metadata["schedule_steps"] = std::to_string(state.schedule_steps);
  if (state.awaits_evaluation) metadata["awaits_evaluation"] = "true";
  if (!state.data_place.empty()) metadata["data_place"] = state.data_place;
  return metadata;
}

TrainState state_of(const Metadata& metadata, const std::string& path) {
  TrainState state = {number_of<int64_t>(metadata, path, "step"), number_of<int64_t>(metadata, path, "best_step"),
      number_of<double>(metadata, path, "best_loss"), number_of<uint64_t>(metadata, path, "text_hash")};
  if (state.step < 0 || state.step > kMaxSteps || state.best_step > state.step)
    fail("{}: its metadata has step = {} and best_step = {}, which cannot be", {path, state.step, state.best_step});
  if (metadata.contains("schedule_steps")) state.schedule_steps = number_of<int64_t>(metadata, path, "schedule_steps");
  // Older files have the loss of the step instead.
  state.awaits_evaluation = metadata.contains("awaits_evaluation") || metadata.contains("unrecorded_loss");
  if (const auto place = metadata.find("data_place"); place != metadata.end()) state.data_place = place->second;
  return state;
}

}  // namespace

bool TrainState::improves(double val_loss) {
  if (!(val_loss < best_loss)) return false;
  best_loss = val_loss;
  best_step = step;
  return true;
}

void save_checkpoint(
    const FilePlace& place, Model& model, Optimizer& optimizer, const TrainState& state, const Metadata& more, Ranks& ranks) {
  const RandomState random = random_state();
  Metadata metadata = metadata_of(state);
  metadata.insert({{"format", "ricci checkpoint"}, {"optimizer_steps", std::to_string(optimizer.steps())},
      {"random_seed", std::to_string(random.seed)}, {"random_stream", std::to_string(random.next_stream)},
      {"random_part", std::to_string(random.micro_batch)}});  // the file's name for it
  metadata.insert(more.begin(), more.end());
  save_checked_safetensors_from(place, sources_of(ranks, tensors_of(model, optimizer, ranks)), metadata);
}

void hand_over_checkpoint(Model& model, Optimizer& optimizer, Ranks& ranks) {
  hand_over(sources_of(ranks, tensors_of(model, optimizer, ranks)));
}

void take_checkpoint(Model& model, Optimizer& optimizer, Ranks& ranks) { spread(ranks, nullptr, model, optimizer, {}); }

std::vector<TensorSource> weights_of(Model& model) {
  std::vector<TensorSource> sources;
  model.each_parameter([&](const std::string& path, Parameter& p) { sources.push_back(source_of(path, p.unrounded())); });
  return sources;
}

std::vector<TensorSource> weights_of(Model& model, Optimizer& optimizer, Ranks& ranks) {
  return sources_of(ranks, unrounded(model, optimizer, hands_of(model, ranks)));
}

TrainState read_train_state(const SafetensorsFile& file) { return state_of(file.metadata(), file.path()); }

TrainState state_from_first(Ranks& ranks, const TrainState& state) {
  std::string text;
  for (const auto& [key, value] : metadata_of(state)) text += key + "=" + value + "\n";
  std::istringstream lines(ranks.from_first(text));
  Metadata told;
  for (std::string line; std::getline(lines, line);) told[line.substr(0, line.find('='))] = line.substr(line.find('=') + 1);
  return state_of(told, ranks.name(0));
}

TrainState load_checkpoint(const SafetensorsFile& file, Model& model, Optimizer& optimizer, Ranks& ranks) {
  std::set<std::string> known;
  for (const PartedTensor& tensor : tensors_of(model, optimizer, ranks)) {
    known.insert(tensor.name);
    check_shape(file, tensor.name, tensor.shape);
  }
  for (const std::string& name : file.names())
    if (!known.count(name)) fail("{}: tensor {} {} belongs to no part of this training", {file.path(), name, show(file.shape(name))});
  const auto number = [&](const char* key) { return number_of<uint64_t>(file.metadata(), file.path(), key); };
  const auto steps = number_of<int64_t>(file.metadata(), file.path(), "optimizer_steps");
  spread(ranks, &file, model, optimizer, {steps, {number("random_seed"), number("random_stream"), number("random_part")}});
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

std::optional<SafetensorsFile> Checkpoints::open(int64_t step) const { return folder_ ? SafetensorsFile::find(place(step)) : std::nullopt; }

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
    if (step == all.rend() && !fault.empty())
      fail("{}; no sound checkpoint is left among {}; give the run another name, or remove its folder", {fault, all.size()});
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
