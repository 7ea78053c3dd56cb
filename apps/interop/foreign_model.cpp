#include "apps/interop/foreign_model.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>

#include "apps/run/run.h"
#include "apps/terminal/progress.h"
#include "core/dims.h"
#include "core/error.h"
#include "core/json.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "ops/shapes/shape_ops.h"

namespace ricci::apps {
namespace {

std::string with_block(std::string pattern, int64_t block) {
  constexpr std::string_view number = "{i}";
  if (const size_t place = pattern.find(number); place != pattern.npos) pattern.replace(place, number.size(), std::to_string(block));
  return pattern;
}

// "{q,k,v}_proj.weight": the three names of the parts; a name without braces is the only one.
std::vector<std::string> parts_of(const std::string& name) {
  const size_t open = name.find('{'), close = name.find('}');
  if (open == name.npos) return {name};
  std::vector<std::string> names;
  for (size_t begin = open; begin < close;) {
    const size_t end = std::min(close, name.find(',', begin + 1));
    names.push_back(name.substr(0, open) + name.substr(begin + 1, end - begin - 1) + name.substr(close + 1));
    begin = end;
  }
  return names;
}

struct Theirs {
  std::vector<std::string> names;
  bool transposed;
};

// Their names for each parameter of ours, for a model with this number of blocks.
std::map<std::string, Theirs> names_of(const Architecture& architecture, int64_t blocks) {
  std::map<std::string, Theirs> names;
  for (const Row& row : architecture.rows)
    for (int64_t i = 0; i < blocks; ++i) {
      const bool bare = std::string_view(row.theirs) == architecture.without_prefix;
      names[with_block(row.ours, i)] = {parts_of((bare ? "" : architecture.prefix) + with_block(row.theirs, i)), row.transposed};
    }
  return names;
}

// The rows of each part of a parameter with `rows` rows.
std::vector<int64_t> rows_of_parts(const Architecture& architecture, int64_t rows, size_t parts) {
  if (parts == 3) return {rows - 2 * architecture.key_rows, architecture.key_rows, architecture.key_rows};
  return std::vector<int64_t>(parts, rows / static_cast<int64_t>(parts));
}

Tensor transpose(const Tensor& x_mn) {
  const int64_t rows = x_mn.shape()[0], columns = x_mn.shape()[1];
  const Tensor y_nm({columns, rows}, Dtype::f32);
  const float* const x = x_mn.data<float>();
  float* const y = y_nm.data<float>();
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) y[j * rows + i] = x[i * columns + j];
  return y_nm;
}

void add(WeightFiles& all, const std::string& path) {
  const auto file = std::make_shared<const SafetensorsFile>(path);
  file->verify_if_checked();
  for (const std::string& name : file->names())
    if (const auto [place, is_new] = all.files.emplace(name, file); !is_new)
      fail("{}: tensor {} is in {} already", {path, one_line(name), place->second->path()});
}

Tensor load_part(const WeightFiles& files, const std::string& name, const Shape& expected) {
  if (!files.contains(name)) fail("{}: tensor {} {} is missing", {files.path, name, show(expected)});
  const SafetensorsFile& file = files.file_of(name);
  if (!(file.shape(name) == expected))
    fail("{}: tensor {} is {}, expected {}", {file.path(), name, show(file.shape(name)), show(expected)});
  return file.load_f32(name);
}

}  // namespace

WeightFiles open_weights(const std::string& path) {
  WeightFiles all{path};
  const std::string single = path + "/model.safetensors", index = single + ".index.json";
  if (!is_folder(path) || !is_there(index)) {
    add(all, is_folder(path) ? single : path);
    return all;
  }
  const auto file_of_tensor = read_member<std::map<std::string, std::string>>(read_json(index), "weight_map", index);
  if (!file_of_tensor) fail("{}: has no weight_map", {index});
  std::set<std::string> files;
  for (const auto& [name, file] : *file_of_tensor) files.insert(file);
  for (const std::string& file : files) {
    if (file.find('/') != file.npos || file.starts_with('.')) fail("{}: '{}' is no file of this folder", {index, one_line(file)});
    add(all, path + "/" + file);
  }
  for (const auto& [name, file] : *file_of_tensor)
    if (!all.contains(name)) fail("{}: tensor {} is not in {}", {index, one_line(name), one_line(file)});
  return all;
}

void load_theirs(Model& model, const Architecture& architecture, const WeightFiles& files) {
  const int64_t blocks = model.config().layers;
  const std::map<std::string, Theirs> names = names_of(architecture, blocks);
  std::set<std::string> known;
  model.load([&](const std::string& path, const Shape& shape) {
    const auto theirs = names.find(path);
    if (theirs == names.end()) fail("{}: a {} model has no parameter {}", {files.path, architecture.name, path});
    const auto& [parts, transposed] = theirs->second;
    const std::vector<int64_t> rows = rows_of_parts(architecture, shape[0], parts.size());
    std::vector<Arg> tensors;
    for (size_t i = 0; i < rows.size(); ++i) {
      Shape part = shape;
      part.set(0, rows[i]);
      const Tensor loaded = load_part(files, parts[i], transposed ? Shape{part[1], part[0]} : part);
      tensors.emplace_back(transposed ? transpose(loaded) : loaded);
      known.insert(parts[i]);
    }
    return tensors.size() == 1 ? Tensor(tensors[0]) : concatenate(tensors, 0);
  });
  for (const char* pattern : architecture.not_read)
    for (int64_t i = 0; i < blocks; ++i)
      for (const std::string& prefix : {std::string(), architecture.prefix}) known.insert(prefix + with_block(pattern, i));
  for (const auto& [name, file] : files.files)
    if (!known.contains(name))
      fail("{}: tensor {} {} has no place in this {} model", {files.path, one_line(name), show(file->shape(name)), architecture.name});
}

NamedTensors as_theirs(Model& model, const Architecture& architecture) {
  const std::map<std::string, Theirs> names = names_of(architecture, model.config().layers);
  NamedTensors tensors;
  model.each_parameter([&](const std::string& path, Parameter& p) {
    const auto theirs = names.find(path);
    if (theirs == names.end()) fail("parameter {} has no place in a {} model", {path, architecture.name});
    const auto& [parts, transposed] = theirs->second;
    const Tensor value = convert(to(p.unrounded(), Device::cpu), Dtype::f32);
    const std::vector<int64_t> rows = rows_of_parts(architecture, value.shape()[0], parts.size());
    int64_t first = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      const Tensor part = value.rows(first, rows[i]);
      tensors.emplace_back(parts[i], transposed ? transpose(part) : part);
      first += rows[i];
    }
  });
  return tensors;
}

std::string write_imported_run(
    const std::string& path, Model& model, const Tokenizer* tokenizer, const std::string& origin, const TheirChat& chat) {
  std::string folder = path;
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  TrainConfig config;
  config.name = std::filesystem::path(folder).filename();
  config.model = model.config();
  BlockConfig block = config.model.block;
  block.ff.reset();
  if (block.feed_forward(config.model.d) == config.model.block.feed_forward(config.model.d)) config.model.block = block;  // it follows
  config.data.clear();
  config.chat = chat.named;
  // Models that turn by positions take contexts that no machine trains with.
  if (model.config().embedding.positions == PositionKind::rope) config.context = std::min<int64_t>(model.config().ctx, 2048);
  if (tokenizer) config.tokenizer = folder + "/tokenizer.json";
  check(config);
  give_differing(config);
  RunFolder run = RunFolder::to_train({folder, config});
  if (!run.checkpoints().steps().empty()) fail("{}: holds a run already", {folder});
  run.begin(config, tokenizer, chat.kept);
  run.save_model(model, 0);
  return format_message("{}: {} parameters from {}\n{}, vocabulary {}, context {}{}",
      {folder, with_commas(model.parameter_count()), origin, tokenizer ? tokenizer->name() + " tokenizer" : "no tokenizer",
          config.model.vocab, config.model.ctx, chat.note});
}

}  // namespace ricci::apps
