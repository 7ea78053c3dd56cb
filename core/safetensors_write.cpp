// Writing: header and data go out as they come, so that memory does not grow with the file.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/safetensors.h"

namespace ricci {
namespace {

using json = nlohmann::ordered_json;
using NamedTensor = std::pair<std::string, Tensor>;

const char* type_name(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return "F32";
    case Dtype::f64: return "F64";
    case Dtype::bf16: return "BF16";
    case Dtype::i64: return "I64";
  }
  return "";
}

void check_tensors(const std::string& path, const std::vector<NamedTensor>& tensors) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    if (name == "__metadata__") fail("{}: a tensor cannot be called '__metadata__'", {path});
    if (!names.insert(name).second) fail("{}: tensor '{}' is given twice", {path, name});
    if (!tensor) fail("{}: tensor '{}' is empty", {path, name});
    if (tensor.device() != Device::cpu)
      fail("{}: tensor '{}' is on {}, expected cpu", {path, name, name_of(tensor.device())});
  }
}

// Falling element size keeps every tensor aligned to its elements.
std::vector<const NamedTensor*> in_file_order(const std::vector<NamedTensor>& tensors) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    return size_of(a->second.dtype()) > size_of(b->second.dtype());
  });
  return order;
}

std::string header_of(const std::string& path, const std::vector<const NamedTensor*>& order, const Metadata& metadata) {
  json header = json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  int64_t offset = 0;
  for (const NamedTensor* named : order) {
    const auto& [name, tensor] = *named;
    json shape = json::array();
    for (int i = 0; i < tensor.shape().rank(); ++i) shape.push_back(tensor.shape()[i]);
    const int64_t end = offset + tensor.bytes();
    header[name] = {{"dtype", type_name(tensor.dtype())}, {"shape", shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  try {
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    return text;
  } catch (const json::type_error&) {
    fail("{}: a tensor's name or its metadata is not UTF-8", {path});
  }
}

}  // namespace

void save_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors, const Metadata& metadata) {
  check_tensors(path, tensors);
  const std::vector<const NamedTensor*> order = in_file_order(tensors);
  const std::string header = header_of(path, order, metadata);
  const uint64_t length = header.size();
  write_file_atomically(path, [&](FileWriter& file) {
    file.write({reinterpret_cast<const char*>(&length), sizeof length});
    file.write(header);
    for (const NamedTensor* named : order)
      file.write({static_cast<const char*>(named->second.raw()), static_cast<size_t>(named->second.bytes())});
  });
}

}  // namespace ricci
