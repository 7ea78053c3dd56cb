#include "apps/interop/rows.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "core/dims.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "cuda/verbs/arithmetic.h"

namespace ricci::apps {
namespace {

constexpr std::string_view kBlock = "{i}";

// What stands in a name for the {i} of a pattern, empty where the pattern has none. Nothing: the name does not fit.
std::optional<std::string> block_in(std::string_view pattern, std::string_view name) {
  const size_t at = pattern.find(kBlock);
  if (at == pattern.npos) return pattern == name ? std::optional<std::string>("") : std::nullopt;
  const std::string_view head = pattern.substr(0, at), tail = pattern.substr(at + kBlock.size());
  if (name.size() <= head.size() + tail.size() || !name.starts_with(head) || !name.ends_with(tail)) return {};
  const std::string_view number = name.substr(head.size(), name.size() - head.size() - tail.size());
  if (!std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; })) return {};
  return std::string(number);
}

std::string with_block(std::string pattern, const std::string& number) {
  if (const size_t at = pattern.find(kBlock); at != pattern.npos) pattern.replace(at, kBlock.size(), number);
  return pattern;
}

struct Theirs {
  std::string name;
  bool transposed;
};

std::optional<Theirs> find(const Architecture& architecture, const std::string& ours) {
  for (const Row& row : architecture.rows)
    if (const auto number = block_in(row.ours, ours)) {
      const bool bare = std::string_view(row.theirs) == architecture.without_prefix;
      return Theirs{(bare ? "" : architecture.prefix) + with_block(row.theirs, *number), row.transposed};
    }
  return {};
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

void load_theirs(Model& model, const Architecture& architecture, const WeightFiles& files) {
  std::set<std::string> known;
  model.load([&](const std::string& path, const Shape& shape) {
    const std::optional<Theirs> theirs = find(architecture, path);
    if (!theirs) fail("{}: a {} model has no parameter {}", {files.path(), architecture.name, path});
    const Shape expected = theirs->transposed ? Shape{shape[1], shape[0]} : shape;
    if (!files.contains(theirs->name)) fail("{}: tensor {} {} is missing", {files.path(), theirs->name, show(expected)});
    const SafetensorsFile& file = files.file_of(theirs->name);
    if (!(file.shape(theirs->name) == expected))
      fail("{}: tensor {} is {}, expected {}", {file.path(), theirs->name, show(file.shape(theirs->name)), show(expected)});
    known.insert(theirs->name);
    const Tensor loaded = file.load_f32(theirs->name);
    return theirs->transposed ? transpose(loaded) : loaded;
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
    tensors.emplace_back(theirs->name, theirs->transposed ? transpose(value) : value);
  });
  return tensors;
}

}  // namespace ricci::apps
