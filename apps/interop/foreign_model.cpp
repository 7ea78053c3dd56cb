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
#include "core/json/file.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"
#include "ops/shapes/shape_ops.h"

namespace ricci::apps {
namespace {

constexpr std::string_view kBlock = "{i}";

// The part of a name at the {i} of a pattern, empty if the pattern has none; nullopt if the name does not fit.
std::optional<std::string> block_in(std::string_view pattern, std::string_view name) {
  const size_t place = pattern.find(kBlock);
  if (place == pattern.npos) return pattern == name ? std::optional<std::string>("") : std::nullopt;
  const std::string_view head = pattern.substr(0, place), tail = pattern.substr(place + kBlock.size());
  if (name.size() <= head.size() + tail.size() || !name.starts_with(head) || !name.ends_with(tail)) return {};
  const std::string_view number = name.substr(head.size(), name.size() - head.size() - tail.size());
  if (!std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; })) return {};
  return std::string(number);
}

std::string with_block(std::string pattern, const std::string& number) {
  if (const size_t place = pattern.find(kBlock); place != pattern.npos) pattern.replace(place, kBlock.size(), number);
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

std::optional<Theirs> find(const Architecture& architecture, const std::string& ours) {
  for (const Row& row : architecture.rows)
    if (const auto number = block_in(row.ours, ours)) {
      const bool bare = std::string_view(row.theirs) == architecture.without_prefix;
      return Theirs{parts_of((bare ? "" : architecture.prefix) + with_block(row.theirs, *number)), row.transposed};
    }
  return {};
}

// The rows of each part of a parameter with `rows` rows.
std::vector<int64_t> rows_of_parts(const Architecture& architecture, int64_t rows, size_t parts) {
  if (parts == 3) return {rows - 2 * architecture.key_rows, architecture.key_rows, architecture.key_rows};
  return std::vector<int64_t>(parts, rows / static_cast<int64_t>(parts));
}

bool is_read(const Architecture& architecture, std::string_view theirs) {
  if (theirs.starts_with(architecture.prefix)) theirs.remove_prefix(architecture.prefix.size());
  return std::none_of(architecture.not_read.begin(), architecture.not_read.end(),
      [&](const char* pattern) { return block_in(pattern, theirs).has_value(); });
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

}  // namespace

void WeightFiles::add(const std::string& file) {
  files_.emplace_back(file);
  files_.back().verify_if_checked();
  for (const std::string& name : files_.back().names()) {
    if (!where_.emplace(name, files_.size() - 1).second)
      fail("{}: tensor {} is in {} already", {file, one_line(name), file_of(name).path()});
    names_.push_back(name);
  }
}

WeightFiles::WeightFiles(const std::string& file) : path_(file) { add(file); }

WeightFiles WeightFiles::in_folder(const std::string& folder) {
  WeightFiles all;
  all.path_ = folder;
  const std::string single = folder + "/model.safetensors", index = single + ".index.json";
  if (!is_there(index)) {
    all.add(single);
    return all;
  }
  const auto file_of_tensor = JsonFile(index).texts_by_name("weight_map");
  if (!file_of_tensor) fail("{}: has no weight_map", {index});
  std::set<std::string> files;
  for (const auto& [name, file] : *file_of_tensor) files.insert(file);
  for (const std::string& file : files) {
    if (file.find('/') != file.npos || file.starts_with('.')) fail("{}: '{}' is no file of this folder", {index, one_line(file)});
    all.add(folder + "/" + file);
  }
  for (const auto& [name, file] : *file_of_tensor)
    if (!all.contains(name)) fail("{}: tensor {} is not in {}", {index, one_line(name), one_line(file)});
  return all;
}

const SafetensorsFile& WeightFiles::file_of(const std::string& name) const {
  const auto found = where_.find(name);
  if (found == where_.end()) fail("{}: no tensor '{}'", {path_, one_line(name)});
  return files_[found->second];
}

namespace {

Tensor load_part(const WeightFiles& files, const std::string& name, const Shape& expected) {
  if (!files.contains(name)) fail("{}: tensor {} {} is missing", {files.path(), name, show(expected)});
  const SafetensorsFile& file = files.file_of(name);
  if (!(file.shape(name) == expected))
    fail("{}: tensor {} is {}, expected {}", {file.path(), name, show(file.shape(name)), show(expected)});
  return file.load_f32(name);
}

}  // namespace

void load_theirs(Model& model, const Architecture& architecture, const WeightFiles& files) {
  std::set<std::string> known;
  model.load([&](const std::string& path, const Shape& shape) {
    const std::optional<Theirs> theirs = find(architecture, path);
    if (!theirs) fail("{}: a {} model has no parameter {}", {files.path(), architecture.name, path});
    const std::vector<int64_t> rows = rows_of_parts(architecture, shape[0], theirs->names.size());
    std::vector<Arg> parts;
    for (size_t i = 0; i < rows.size(); ++i) {
      Shape part = shape;
      part.set(0, rows[i]);
      const Tensor loaded = load_part(files, theirs->names[i], theirs->transposed ? Shape{part[1], part[0]} : part);
      parts.emplace_back(theirs->transposed ? transpose(loaded) : loaded);
      known.insert(theirs->names[i]);
    }
    return parts.size() == 1 ? Tensor(parts[0]) : concatenate(parts, 0);
  });
  for (const std::string& name : files.names())
    if (!known.contains(name) && is_read(architecture, name))
      fail("{}: tensor {} {} has no place in this {} model",
          {files.path(), one_line(name), show(files.file_of(name).shape(name)), architecture.name});
}

std::vector<std::pair<std::string, Tensor>> as_theirs(Model& model, const Architecture& architecture) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  model.each_parameter([&](const std::string& path, Parameter& p) {
    const std::optional<Theirs> theirs = find(architecture, path);
    if (!theirs) fail("parameter {} has no place in a {} model", {path, architecture.name});
    const Tensor value = convert(to(p.unrounded(), Device::cpu), Dtype::f32);
    int64_t first = 0;
    for (size_t i = 0; i < theirs->names.size(); ++i) {
      const int64_t rows = rows_of_parts(architecture, value.shape()[0], theirs->names.size())[i];
      const Tensor part = value.rows(first, rows);
      tensors.emplace_back(theirs->names[i], theirs->transposed ? transpose(part) : part);
      first += rows;
    }
  });
  return tensors;
}

std::string write_imported_run(
    const std::string& path, Model& model, const Tokenizer* tokenizer, const std::string& origin, const TheirTalks& talks) {
  std::string folder = path;
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  TrainConfig config;
  config.name = std::filesystem::path(folder).filename();
  config.model = model.config();
  BlockConfig block = config.model.block;
  block.ff.reset();
  if (block.feed_forward(config.model.d) == config.model.block.feed_forward(config.model.d)) config.model.block = block;  // it follows
  config.data.clear();
  config.chat = talks.chat;
  // Models that turn by positions take contexts that no machine trains with.
  if (model.config().embedding.positions == PositionKind::rope) config.context = std::min<int64_t>(model.config().ctx, 2048);
  if (tokenizer) config.tokenizer = folder + "/tokenizer.json";
  check(config);
  give_differing(config);
  RunFolder run = RunFolder::to_train({folder, config});
  if (!run.checkpoints().steps().empty()) fail("{}: holds a run already", {folder});
  run.begin(config, tokenizer, talks.kept);
  run.save_model(model, 0);
  return format_message("{}: {} parameters from {}, {}, vocabulary {}, context {}{}",
      {folder, with_commas(model.parameter_count()), origin, tokenizer ? tokenizer->name() + " tokenizer" : "no tokenizer",
          config.model.vocab, config.model.ctx, talks.note});
}

}  // namespace ricci::apps
