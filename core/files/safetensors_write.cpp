// Writing: the header goes out first, then one tensor after another, because a copy of all of them may not fit into memory. Last, the
// checksum is written into the header, because it covers the tensors. Reading looks for it at the same place.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/dims.h"
#include "core/error.h"
#include "core/files/checksum.h"
#include "core/files/safetensors.h"

namespace ricci {
namespace {

using json = nlohmann::json;

void check(const std::string& path, const NamedTensors& tensors, bool on_any_device) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    if (name == "__metadata__") fail("{}: a tensor cannot be called '__metadata__'", {path});
    if (!names.insert(name).second) fail("{}: tensor '{}' is given twice", {path, name});
    if (!tensor) fail("{}: tensor '{}' is empty", {path, name});
    if (tensor.device() != Device::cpu && !on_any_device)
      fail("{}: tensor '{}' is on {}, expected cpu", {path, name, name_of(tensor.device())});
  }
}

std::string entry_of(const Tensor& tensor, int64_t offset) {
  std::string shape;
  for (int i = 0; i < tensor.shape().rank(); ++i) shape += (i ? "," : "") + std::to_string(tensor.shape()[i]);
  return fmt::format(R"({{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", SafetensorsFile::type_of(tensor.dtype()), shape, offset,
      offset + tensor.bytes());
}

std::string header_of(const std::string& path, const NamedTensors& tensors, const Metadata& metadata) {
  try {
    std::string text = "{";
    if (!metadata.empty()) text += R"("__metadata__":)" + json(metadata).dump();
    int64_t offset = 0;
    for (const auto& [name, tensor] : tensors) {
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

void save(const FilePlace& place, NamedTensors tensors, const Metadata& metadata, const ToHost& to_host, bool checked) {
  check(place.path, tensors, to_host != nullptr);
  std::stable_sort(
      tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return size_of(a.second.dtype()) > size_of(b.second.dtype()); });
  const std::string header = header_of(place.path, tensors, metadata);
  const uint64_t length = header.size();
  write_file_atomically(place, [&](FileWriter& file) {
    file.write({reinterpret_cast<const char*>(&length), sizeof length});
    file.write(header);
    uint64_t hash = hash_of_header(header);
    for (const auto& [name, tensor] : tensors) {
      const Tensor on_host = to_host ? to_host(tensor) : tensor;
      if (checked) hash = xxh64(bytes_of(on_host), hash);
      file.write(bytes_of(on_host));
    }
    if (checked) file.overwrite(static_cast<int64_t>(sizeof length + find_digits(header)), digits_of(hash));
  });
}

}  // namespace

void save_safetensors(const FilePlace& place, const NamedTensors& tensors, const Metadata& metadata) {
  save(place, tensors, metadata, {}, false);
}

void save_checked_safetensors(const FilePlace& place, const NamedTensors& tensors, const Metadata& metadata, const ToHost& to_host) {
  Metadata with_checksum = metadata;
  with_checksum["checksum"] = kNoDigits;
  save(place, tensors, with_checksum, to_host, true);
}

void SafetensorsFile::verify() const {
  std::string header(static_cast<size_t>(data_start_) - 8, '\0');
  read(8, header.data(), static_cast<int64_t>(header.size()));
  const size_t position = find_digits(header);
  if (position == header.npos) fail("{}: it has no checksum", {path()});
  const std::string digits = header.substr(position, kNoDigits.size());
  header.replace(position, kNoDigits.size(), kNoDigits);
  uint64_t hash = hash_of_header(header);
  for (const std::string& name : names_) {
    const Entry& e = entries_.at(name);
    StreamHash of_tensor(hash);
    for_each_block(data_start_ + e.begin, data_start_ + e.end, [&](std::string_view bytes) { of_tensor.add(bytes); });
    hash = of_tensor.finish();
  }
  if (digits_of(hash) != digits) fail("{}: damaged: its bytes do not match its checksum", {path()});
}

void SafetensorsFile::verify_if_checked() const {
  const auto found = metadata_.find("checksum");
  if (found != metadata_.end() && found->second.size() == kNoDigits.size()) verify();
}

}  // namespace ricci
