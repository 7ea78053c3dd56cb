#include "apps/interop/weight_map.h"

#include <algorithm>
#include <set>
#include <string_view>

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

// Splits "{q,k,v}_proj.weight" into three names. A name without braces stays one name.
std::vector<std::string> split_parts(const std::string& name) {
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

struct ExternalParts {
  std::vector<std::string> names;
  bool transposed;
};

// The external names of each parameter.
std::map<std::string, ExternalParts> external_names(const WeightMap& map, int64_t blocks) {
  std::map<std::string, ExternalParts> names;
  const bool gguf = map.format == WeightFormat::gguf;
  for (const MappedName& row : map.names)
    for (int64_t i = 0; i < blocks; ++i) {
      const std::string name = gguf ? row.gguf : row.hf, prefix = gguf || name == "lm_head.weight" ? "" : map.prefix;
      names[with_block(row.ours, i)] = {split_parts(prefix + with_block(name, i)), row.transposed && !gguf};
    }
  return names;
}

// The row counts of the parts of a parameter.
std::vector<int64_t> rows_of_parts(const WeightMap& map, int64_t rows, size_t parts) {
  if (parts == 3) return {rows - 2 * map.key_rows, map.key_rows, map.key_rows};
  return std::vector<int64_t>(parts, rows / static_cast<int64_t>(parts));
}

void add(WeightFiles& all, const std::string& path) {
  const auto file = std::make_shared<const SafetensorsFile>(path);
  file->verify_if_checked();
  for (const std::string& name : file->names())
    if (const auto [place, is_new] = all.files.emplace(name, file); !is_new)
      fail("{}: tensor {} is already in {}", {path, one_line(name), place->second->path()});
}

Tensor load_part(const WeightFiles& files, const std::string& name, const Shape& expected) {
  if (!files.contains(name)) fail("{}: tensor {} of shape {} is missing", {files.folder, name, show(expected)});
  const SafetensorsFile& file = *files.files.at(name);
  if (!(file.shape(name) == expected))
    fail("{}: tensor {} is {}, expected {}", {file.path(), name, show(file.shape(name)), show(expected)});
  return file.load_f32(name);
}

}  // namespace

WeightFiles open_weights(const std::string& folder) {
  WeightFiles all{folder};
  const std::string single = folder + "/model.safetensors", index = single + ".index.json";
  if (!is_there(index)) {
    add(all, single);
    return all;
  }
  const auto file_of_tensor = read_member<std::map<std::string, std::string>>(read_json(index), "weight_map", index);
  if (!file_of_tensor) fail("{}: has no weight_map", {index});
  std::set<std::string> files;
  for (const auto& [name, file] : *file_of_tensor) files.insert(file);
  for (const std::string& file : files) {
    if (file.find('/') != file.npos || file.starts_with('.')) fail("{}: '{}' is not a file in this folder", {index, one_line(file)});
    add(all, folder + "/" + file);
  }
  for (const auto& [name, file] : *file_of_tensor)
    if (!all.contains(name)) fail("{}: tensor {} is not in {}", {index, one_line(name), one_line(file)});
  return all;
}

void load_mapped(Model& model, const WeightMap& map, const WeightFiles& files) {
  const int64_t blocks = model.config().layers;
  const std::map<std::string, ExternalParts> names = external_names(map, blocks);
  std::set<std::string> known;
  model.load([&](const std::string& path, const Shape& shape) {
    const auto external = names.find(path);
    if (external == names.end()) fail("{}: a {} model has no parameter {}", {files.folder, map.name, path});
    const auto& [parts, transposed] = external->second;
    const std::vector<int64_t> rows = rows_of_parts(map, shape[0], parts.size());
    std::vector<Arg> tensors;
    for (size_t i = 0; i < rows.size(); ++i) {
      Shape part = shape;
      part.set(0, rows[i]);
      const Tensor loaded = load_part(files, parts[i], transposed ? Shape{part[1], part[0]} : part);
      tensors.emplace_back(transposed ? transpose(loaded, 0, 1) : loaded);
      known.insert(parts[i]);
    }
    return tensors.size() == 1 ? Tensor(tensors[0]) : concatenate(tensors, 0);
  });
  for (const char* pattern : map.ignored)
    for (int64_t i = 0; i < blocks; ++i)
      for (const std::string& prefix : {std::string(), map.prefix}) known.insert(prefix + with_block(pattern, i));
  for (const auto& [name, file] : files.files)
    if (!known.contains(name))
      fail("{}: tensor {} of shape {} does not belong to this {} model", {files.folder, one_line(name), show(file->shape(name)), map.name});
}

NamedTensors to_external(Model& model, const WeightMap& map) {
  const std::map<std::string, ExternalParts> names = external_names(map, model.config().layers);
  NamedTensors tensors;
  model.each_parameter([&](const std::string& path, Parameter& p) {
    const auto external = names.find(path);
    if (external == names.end()) fail("a {} model has no parameter {}", {map.name, path});
    const auto& [parts, transposed] = external->second;
    const Tensor value = convert(to(p.unrounded(), Device::cpu), Dtype::f32);
    const std::vector<int64_t> rows = rows_of_parts(map, value.shape()[0], parts.size());
    int64_t first = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      const Tensor part = value.rows(first, rows[i]);
      tensors.emplace_back(parts[i], transposed ? transpose(part, 0, 1) : part);
      first += rows[i];
    }
  });
  return tensors;
}

}  // namespace ricci::apps
