// Writing: header and data go out as they come, so that memory does not grow with the file. And the checksum, which ties
// writing and reading together.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/files/checksum.h"
#include "core/files/safetensors.h"

namespace ricci {
namespace {

using json = nlohmann::json;
using NamedTensor = std::pair<std::string, Tensor>;

void check_tensors(const std::string& path, const std::vector<NamedTensor>& tensors) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    if (name == "__metadata__") fail("{}: a tensor cannot be called '__metadata__'", {path});
    if (!names.insert(name).second) fail("{}: tensor '{}' is given twice", {path, name});
    if (!tensor) fail("{}: tensor '{}' is empty", {path, name});
    if (tensor.device() != Device::cpu) fail("{}: tensor '{}' is on {}, expected cpu", {path, name, name_of(tensor.device())});
  }
}

// Falling element size keeps every tensor aligned to its elements.
std::vector<const NamedTensor*> in_file_order(const std::vector<NamedTensor>& tensors) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(),
      [](const NamedTensor* a, const NamedTensor* b) { return size_of(a->second.dtype()) > size_of(b->second.dtype()); });
  return order;
}

std::string entry_of(const Tensor& tensor, int64_t offset) {
  std::string shape;
  for (int i = 0; i < tensor.shape().rank(); ++i) shape += (i ? "," : "") + std::to_string(tensor.shape()[i]);
  return fmt::format(R"({{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", SafetensorsFile::type_of(tensor.dtype()), shape, offset,
      offset + tensor.bytes());
}

std::string header_of(const std::string& path, const std::vector<const NamedTensor*>& order, const Metadata& metadata) {
  try {
    std::string text = "{";
    if (!metadata.empty()) text += R"("__metadata__":)" + json(metadata).dump();
    int64_t offset = 0;
    for (const NamedTensor* named : order) {
      const auto& [name, tensor] = *named;
      text += (text.size() > 1 ? "," : "") + json(name).dump() + ":" + entry_of(tensor, offset);
      offset += tensor.bytes();
    }
    text += "}";
    text.resize((text.size() + 7) / 8 * 8, ' ');
    return text;
  } catch (const json::type_error&) {
    fail("{}: a tensor's name or its metadata is not UTF-8", {path});
  }
}

// ---- The checksum: 16 digits in the metadata, zeros while the file is hashed
constexpr std::string_view kBeforeDigits = "\"checksum\":\"", kNoDigits = "0000000000000000";

std::string_view bytes_of(const Tensor& tensor) { return {static_cast<const char*>(tensor.raw()), static_cast<size_t>(tensor.bytes())}; }

// The place where the digits start in the header, or npos. A quotation mark inside a name or text would have a backslash before it.
size_t find_digits(std::string_view header) {
  const size_t found = header.find(kBeforeDigits);
  const size_t digits = found + kBeforeDigits.size();
  return found == header.npos || digits + kNoDigits.size() > header.size() ? header.npos : digits;
}

uint64_t hash_of_header(const std::string& header) {
  const uint64_t length = header.size();
  return xxh64(header, xxh64({reinterpret_cast<const char*>(&length), sizeof length}));
}

std::string digits_of(uint64_t hash) { return fmt::format("{:016x}", hash); }

void store_checksum(std::string& header, const std::vector<const NamedTensor*>& order) {
  uint64_t hash = hash_of_header(header);
  for (const NamedTensor* named : order) hash = xxh64(bytes_of(named->second), hash);
  header.replace(find_digits(header), kNoDigits.size(), digits_of(hash));
}

void save(const FilePlace& place, const std::vector<NamedTensor>& tensors, const Metadata& metadata, bool checked) {
  check_tensors(place.path, tensors);
  const std::vector<const NamedTensor*> order = in_file_order(tensors);
  std::string header = header_of(place.path, order, metadata);
  if (checked) store_checksum(header, order);
  const uint64_t length = header.size();
  write_file_atomically(place, [&](FileWriter& file) {
    file.write({reinterpret_cast<const char*>(&length), sizeof length});
    file.write(header);
    for (const NamedTensor* named : order) file.write(bytes_of(named->second));
  });
}

}  // namespace

void save_safetensors(const FilePlace& place, const std::vector<NamedTensor>& tensors, const Metadata& metadata) {
  save(place, tensors, metadata, false);
}

void save_checked_safetensors(const FilePlace& place, const std::vector<NamedTensor>& tensors, const Metadata& metadata) {
  Metadata with_checksum = metadata;
  with_checksum["checksum"] = kNoDigits;
  save(place, tensors, with_checksum, true);
}

void SafetensorsFile::verify() const {
  const std::string_view bytes = file_.bytes();
  std::string header(bytes.substr(8, static_cast<size_t>(data_start_) - 8));
  const size_t at = find_digits(header);
  if (at == header.npos) fail("{}: it has no checksum", {path()});
  const std::string digits = header.substr(at, kNoDigits.size());
  header.replace(at, kNoDigits.size(), kNoDigits);
  uint64_t hash = hash_of_header(header);
  for (const std::string& name : names_) {
    const Entry& e = entries_.at(name);
    hash = xxh64(bytes.substr(static_cast<size_t>(data_start_ + e.begin), static_cast<size_t>(e.end - e.begin)), hash);
  }
  if (digits_of(hash) != digits) fail("{}: damaged: its bytes do not match its checksum", {path()});
}

}  // namespace ricci
