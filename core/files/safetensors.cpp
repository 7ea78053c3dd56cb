// Checks the full header before reading any tensor, and writes files with a checksum.
#include "core/files/safetensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>

#include "core/choice.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/files/checksum.h"
#include "core/json.h"

namespace ricci {

static_assert(std::endian::native == std::endian::little, "elements are copied in the byte order of the file");

namespace {

constexpr uint64_t kLargestHeader = 100'000'000;  // the limit of the reference implementation

struct ElementType {
  std::string_view name;
  int64_t bytes;
};
// The types that Tensor supports come first, in the order of Dtype.
constexpr ElementType kElementTypes[] = {{"F32", 4}, {"F64", 8}, {"BF16", 2}, {"I64", 8}, {"F16", 2}, {"I32", 4}, {"I16", 2}, {"I8", 1},
    {"U64", 8}, {"U32", 4}, {"U16", 2}, {"U8", 1}, {"BOOL", 1}, {"C64", 8}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};

// Returns the end of the list if the name is not in it.
const ElementType* find_type(std::string_view name) {
  return std::find_if(std::begin(kElementTypes), std::end(kElementTypes), [&](const ElementType& type) { return type.name == name; });
}

std::string show(const Json& value) { return one_line(to_text(value)); }

Shape integers_of(const Json& list, const std::string& where, const char* key) {
  const auto is_natural = [](const Json& number) { return number.is_number_integer() && number.get<int64_t>() >= 0; };
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), is_natural))
    fail("{}: {} is {}, expected a list of integers from 0 to 2^63 - 1", {where, key, show(list)});
  if (list.size() > Shape::kMaxRank) fail("{}: {} has {} numbers, expected at most {}", {where, key, list.size(), Shape::kMaxRank});
  Shape integers;
  for (const Json& number : list) integers.push_back(number.get<int64_t>());
  return integers;
}

// Reads and checks an entry. `where` names the file and the tensor in messages.
SafetensorsFile::Entry entry_of(const Json& value, const std::string& where, int64_t data_bytes) {
  if (!value.is_object()) fail("{}: expected an object, got {}", {where, show(value)});
  const Json &dtype = member(value, "dtype"), &shape = member(value, "shape"), &offsets = member(value, "data_offsets");
  const ElementType* const type = find_type(dtype.is_string() ? dtype.get<std::string>() : "");
  if (type == std::end(kElementTypes)) fail("{}: unknown dtype {}", {where, show(dtype)});
  const Shape range = integers_of(offsets, where, "data_offsets");
  if (range.rank() != 2 || range[0] > range[1] || range[1] > data_bytes)
    fail("{}: data_offsets is {}, expected the tensor's start and end in the {} bytes of data", {where, show(offsets), data_bytes});
  SafetensorsFile::Entry e{std::string(type->name), integers_of(shape, where, "shape"), range[0], range[1]};
  int64_t bytes = type->bytes;
  for (int i = 0; i < e.shape.rank(); ++i)
    if (__builtin_mul_overflow(bytes, e.shape[i], &bytes)) fail("{}: shape {} overflows 64 bits", {where, show(shape)});
  if (bytes != e.end - e.begin)
    fail("{}: {} of shape {} needs {} bytes, but data_offsets gives {}", {where, e.type, show(shape), bytes, e.end - e.begin});
  return e;
}

// ---- The checksum: 16 digits in the metadata, replaced by zeros while the file is hashed. The text before the digits occurs only once.
// Inside a name, a quotation mark has a backslash before it.
constexpr std::string_view kBeforeDigits = "\"checksum\":\"", kNoDigits = "0000000000000000";

uint64_t hash_of_header(const std::string& header) {
  const uint64_t length = header.size();
  return xxh64(header, xxh64({reinterpret_cast<const char*>(&length), sizeof length}));
}

std::string digits_of(uint64_t hash) { return format_message("{:016x}", {hash}); }

// ---- Elements
// IEEE 754 binary16: a sign, 5 exponent bits, 10 fraction bits.
float float_of_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const uint32_t sign = static_cast<uint32_t>(bits >> 15) << 31;
  if (exponent == 0) return std::copysign(std::ldexp(static_cast<float>(fraction), -24), sign ? -1.0f : 1.0f);
  const auto wide_exponent = static_cast<uint32_t>(exponent == 31 ? 255 : exponent - 15 + 127);
  return std::bit_cast<float>(sign | wide_exponent << 23 | static_cast<uint32_t>(fraction) << 13);
}

// ---- Writing
std::string header_of(const std::string& path, const NamedTensors& tensors, const Metadata& metadata, bool on_any_device) {
  Json header = {{"__metadata__", metadata}};
  int64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    if (header.contains(name)) fail("{}: duplicate tensor '{}'", {path, name});
    if (!tensor) fail("{}: tensor '{}' is empty", {path, name});
    if (tensor.device() != Device::cpu && !on_any_device)
      fail("{}: tensor '{}' is on {}, expected cpu", {path, name, name_of(tensor.device())});
    Json extents = Json::array();
    for (int i = 0; i < tensor.shape().rank(); ++i) extents.push_back(tensor.shape()[i]);
    const std::string_view type = kElementTypes[static_cast<size_t>(tensor.dtype())].name;
    header[name] = {{"dtype", type}, {"shape", extents}, {"data_offsets", {offset, offset + tensor.bytes()}}};
    offset += tensor.bytes();
  }
  try {
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    return text;
  } catch (const Json::type_error&) {
    fail("{}: a tensor name or the metadata is not UTF-8", {path});
  }
}

}  // namespace

// Writes the header, then one tensor after another. A copy of all tensors might not fit into memory. The checksum in the header covers the
// tensors, so it is written last.
void save_safetensors(const std::string& path, NamedTensors tensors, Metadata metadata, const ToHost& to_host) {
  std::stable_sort(
      tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return size_of(a.second.dtype()) > size_of(b.second.dtype()); });
  metadata["checksum"] = kNoDigits;
  const std::string header = header_of(path, tensors, metadata, to_host != nullptr);
  const uint64_t length = header.size();
  write_atomically(path, [&](FileWriter& file) {
    file.write({reinterpret_cast<const char*>(&length), sizeof length});
    file.write(header);
    uint64_t hash = hash_of_header(header);
    for (const auto& [name, tensor] : tensors) {
      const Tensor on_host = to_host ? to_host(tensor) : tensor;
      const std::string_view bytes(static_cast<const char*>(on_host.raw()), static_cast<size_t>(on_host.bytes()));
      hash = xxh64(bytes, hash);
      file.write(bytes);
    }
    file.overwrite(static_cast<int64_t>(sizeof length + header.find(kBeforeDigits) + kBeforeDigits.size()), digits_of(hash));
  });
}

std::optional<SafetensorsFile> SafetensorsFile::find(const std::string& path) {
  std::optional<File> file = File::find(path);
  return file ? std::optional<SafetensorsFile>(SafetensorsFile(std::move(*file))) : std::nullopt;
}

SafetensorsFile::SafetensorsFile(File file) : file_(std::move(file)) {
  const int64_t size = file_.size(), rest = size - 8;
  uint64_t length = 0;
  if (rest < 0) fail("{}: is not a safetensors file (it has {} bytes, expected at least 8)", {path(), size});
  read(0, &length, sizeof length);
  if (std::memcmp(&length, "GGUF", 4) == 0) fail("{}: is a GGUF file, expected a safetensors file", {path()});
  if (length > kLargestHeader)
    fail("{}: is not a safetensors file (its header has {} bytes, expected at most {})", {path(), length, kLargestHeader});
  data_start_ = 8 + static_cast<int64_t>(length);
  const int64_t data_bytes = size - data_start_;
  if (data_bytes < 0) fail("{}: is cut short; the header has {} bytes, but the file contains only {} of them", {path(), length, rest});

  const Json root = parse_json(read_header(), path() + ": the header", {.bytes = kLargestHeader, .depth = 3});
  if (!root.is_object()) fail("{}: the header is not a JSON object", {path()});
  metadata_ = read_member<Metadata>(root, "__metadata__", path() + ": the header").value_or(Metadata());
  for (const auto& [name, value] : root.items()) {
    if (name == "__metadata__") continue;
    entries_.emplace(name, entry_of(value, path() + ": tensor " + show(name), data_bytes));
    names_.push_back(name);
  }
  // The tensors must fill the data without overlaps or gaps.
  const auto range_of = [&](const std::string& name) { return std::pair(entry(name).begin, entry(name).end); };
  std::stable_sort(names_.begin(), names_.end(), [&](const auto& a, const auto& b) { return range_of(a) < range_of(b); });
  int64_t covered = 0;
  for (const std::string& name : names_) {
    const Entry& e = entry(name);
    if (e.begin < covered) fail("{}: the data of tensor {} overlaps the data of another tensor", {path(), show(name)});
    if (e.begin > covered) fail("{}: bytes {} to {} of the data belong to no tensor", {path(), covered, e.begin});
    covered = e.end;
  }
  if (covered != data_bytes) fail("{}: bytes {} to {} of the data belong to no tensor", {path(), covered, data_bytes});
}

std::string SafetensorsFile::read_header() const {
  std::string header(static_cast<size_t>(data_start_) - 8, '\0');
  read(8, header.data(), data_start_ - 8);
  return header;
}

void SafetensorsFile::read(int64_t position, void* into, int64_t bytes) const {
  if (file_.read(into, static_cast<size_t>(bytes), position) < static_cast<size_t>(bytes))
    fail("{}: the file was cut short during reading", {path()});
}

const SafetensorsFile::Entry& SafetensorsFile::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) fail("{}: no tensor '{}'", {path(), name});
  return found->second;
}

Dtype SafetensorsFile::dtype(const std::string& name) const {
  const std::string& type = entry(name).type;
  const auto number = static_cast<size_t>(find_type(type) - std::begin(kElementTypes));
  if (number >= choices(Dtype()).size()) fail("{}: tensor '{}' is {}, expected F32, F64, BF16 or I64", {path(), name, type});
  return static_cast<Dtype>(number);
}

Tensor SafetensorsFile::load(const std::string& name) const {
  Tensor tensor(shape(name), dtype(name));
  read(data_start_ + entry(name).begin, tensor.raw(), tensor.bytes());
  return tensor;
}

Tensor SafetensorsFile::load_f32(const std::string& name) const {
  const Entry& e = entry(name);
  if (e.type == "F32") return load(name);
  const bool is_bf16 = e.type == "BF16";
  if (!is_bf16 && e.type != "F16") fail("{}: tensor '{}' is {}, expected F32, BF16 or F16", {path(), name, e.type});
  const Tensor tensor(e.shape, Dtype::f32);
  float* const values = tensor.data<float>();
  // Values are read into the second half of the tensor and then widened in order, so none is overwritten before it is widened.
  char* const narrow = static_cast<char*>(tensor.raw()) + tensor.bytes() / 2;
  read(data_start_ + e.begin, narrow, tensor.bytes() / 2);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, narrow + 2 * i, sizeof bits);
    values[i] = is_bf16 ? static_cast<float>(std::bit_cast<bf16>(bits)) : float_of_half(bits);
  }
  return tensor;
}

bool SafetensorsFile::verify_if_checked() const {
  const auto found = metadata_.find("checksum");
  const std::string digits = found == metadata_.end() ? "" : found->second;
  std::string header = read_header();
  const size_t text = header.find(std::string(kBeforeDigits) + digits + '"');
  if (digits.size() != kNoDigits.size() || text == header.npos) return false;
  uint64_t hash = hash_of_header(header.replace(text + kBeforeDigits.size(), kNoDigits.size(), kNoDigits));
  int64_t largest = 0;
  for (const auto& [name, e] : entries_) largest = std::max(largest, e.end - e.begin);
  const auto data = std::make_unique_for_overwrite<char[]>(static_cast<size_t>(largest));
  for (const std::string& name : names_) {
    const Entry& e = entry(name);
    read(data_start_ + e.begin, data.get(), e.end - e.begin);
    hash = xxh64({data.get(), static_cast<size_t>(e.end - e.begin)}, hash);
  }
  if (digits_of(hash) != digits) fail("{}: damaged: its bytes do not match its checksum", {path()});
  return true;
}

std::string SafetensorsFile::hash() const {
  const auto found = metadata_.find("checksum");
  const bool is_checked = found != metadata_.end() && found->second.size() == kNoDigits.size();
  return is_checked ? found->second : digits_of(hash_of_file(file_, 0, file_.size()));
}

}  // namespace ricci
