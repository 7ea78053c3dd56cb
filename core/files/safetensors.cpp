// Reading: the header is checked completely before anything else is believed.
#include "core/files/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "core/error.h"

namespace ricci {

static_assert(std::endian::native == std::endian::little, "elements are copied as they lie in the file");

using json = nlohmann::json;

namespace {

constexpr uint64_t kLargestHeader = 100'000'000;  // the limit of the reference implementation

struct ElementType {
  const char* name;
  int64_t bytes;
  int dtype;  // a Dtype, or -1: Tensor has no such type
};
constexpr ElementType kElementTypes[] = {
    {"F32", 4, int(Dtype::f32)}, {"F64", 8, int(Dtype::f64)}, {"BF16", 2, int(Dtype::bf16)},
    {"I64", 8, int(Dtype::i64)}, {"F16", 2, -1},              {"I32", 4, -1},
    {"I16", 2, -1},              {"I8", 1, -1},               {"U64", 8, -1},
    {"U32", 4, -1},              {"U16", 2, -1},              {"U8", 1, -1},
    {"BOOL", 1, -1},             {"C64", 8, -1},              {"F8_E4M3", 1, -1},
    {"F8_E5M2", 1, -1}};

const ElementType* find_type(const std::string& name) {
  for (const ElementType& type : kElementTypes)
    if (name == type.name) return &type;
  return nullptr;
}

// A JSON value for a message: one line, not too long.
std::string show(const json& value) {
  const std::string text = value.dump(-1, ' ', true);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

}  // namespace

// The checks of a header, in the order in which they are made.
class SafetensorsHeader {
 public:
  explicit SafetensorsHeader(SafetensorsFile& file) : file_(file), bytes_(file.file_.bytes()) {}

  void read() {
    const json header = parse(text());
    for (const auto& [name, value] : header.items()) {
      if (name == "__metadata__") {
        read_metadata(value);
      } else {
        file_.entries_[name] = read_entry("tensor " + show(name), value);
        file_.names_.push_back(name);
      }
    }
    check_cover();
  }

 private:
  [[noreturn]] void reject(const std::string& fault) const { fail("{}: {}", {file_.path(), fault}); }
  [[noreturn]] void reject(const char* pattern, std::initializer_list<ErrorValue> values) const {
    reject(format_message(pattern, values));
  }

  std::string_view text() {
    uint64_t length = 0;
    if (bytes_.size() < sizeof length) reject("not a safetensors file: it has {} bytes, fewer than 8", {bytes_.size()});
    std::memcpy(&length, bytes_.data(), sizeof length);
    if (length > kLargestHeader)
      reject("not a safetensors file: a header of {} bytes, at most {} are allowed",
             {std::to_string(length), kLargestHeader});
    const uint64_t rest = bytes_.size() - sizeof length;
    if (length > rest) reject("cut off: the header has {} bytes, but only {} follow its length", {length, rest});
    file_.data_start_ = static_cast<int64_t>(sizeof length + length);
    data_bytes_ = static_cast<int64_t>(rest - length);
    return bytes_.substr(sizeof length, length);
  }

  // nlohmann keeps the last of equal keys, so they are watched while it parses; and so is the depth, as a header of
  // nothing but brackets would need a hundred times its size in memory.
  json parse(std::string_view text) const {
    std::vector<std::set<std::string>> keys;
    const auto watch = [&](int depth, json::parse_event_t event, json& value) {
      using Event = json::parse_event_t;
      if (event == Event::object_start || event == Event::array_start) {
        if (depth == 0 && event == Event::array_start) reject("the header is not a JSON object");
        if (depth > 2) reject("the header is nested too deeply");
      }
      if (event == Event::object_start) keys.emplace_back();
      if (event == Event::object_end) keys.pop_back();
      if (event == Event::key && !keys.back().insert(value.get<std::string>()).second)
        reject("the header has {} twice", {show(value)});
      return true;
    };
    if (const size_t zero = text.find('\0'); zero != text.npos)  // to the parser it is the end
      reject("the header is not JSON: fault at byte {} of {}", {zero + 1, text.size()});
    try {
      json header = json::parse(text.begin(), text.end(), watch);
      if (!header.is_object()) reject("the header is not a JSON object");
      return header;
    } catch (const json::parse_error& error) {
      reject("the header is not JSON: fault at byte {} of {}", {error.byte, text.size()});
    } catch (const json::out_of_range&) {
      reject("the header has a number beyond the range of f64", {});
    }
  }

  void read_metadata(const json& value) {
    if (!value.is_object()) reject("__metadata__ is {}, expected an object", {show(value)});
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) reject("__metadata__: {} is {}, expected a string", {show(key), show(text)});
      file_.metadata_[key] = text.get<std::string>();
    }
  }

  SafetensorsFile::Entry read_entry(const std::string& where, const json& value) const {
    if (!value.is_object()) reject("{}: expected an object, got {}", {where, show(value)});
    for (const char* key : {"dtype", "shape", "data_offsets"})
      if (!value.contains(key)) reject("{}: no {}", {where, key});
    SafetensorsFile::Entry entry;
    const json& type = value["dtype"];
    if (!type.is_string() || !find_type(type.get<std::string>())) reject("{}: unknown dtype {}", {where, show(type)});
    entry.type = type.get<std::string>();
    entry.shape = read_shape(where, value["shape"]);

    const json& offsets = value["data_offsets"];
    if (!offsets.is_array() || offsets.size() != 2)
      reject("{}: data_offsets is {}, expected two integers", {where, show(offsets)});
    entry.begin = read_integer(where, "data_offsets", offsets[0]);
    entry.end = read_integer(where, "data_offsets", offsets[1]);
    if (entry.begin > entry.end || entry.end > data_bytes_)
      reject("{}: data_offsets is {}, outside the {} bytes of data", {where, show(offsets), data_bytes_});
    check_size(where, entry);
    return entry;
  }

  int64_t read_integer(const std::string& where, const char* what, const json& value) const {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > INT64_MAX)
      reject("{}: {} has {}, expected an integer from 0 to 2^63 - 1", {where, what, show(value)});
    return value.get<int64_t>();
  }

  Shape read_shape(const std::string& where, const json& value) const {
    if (!value.is_array()) reject("{}: shape is {}, expected a list of integers", {where, show(value)});
    if (value.size() > Shape::kMaxRank)
      reject("{}: shape has {} extents, at most {} are supported", {where, value.size(), Shape::kMaxRank});
    Shape shape;
    for (const json& extent : value) shape.push_back(read_integer(where, "shape", extent));
    return shape;
  }

  void check_size(const std::string& where, const SafetensorsFile::Entry& entry) const {
    int64_t bytes = find_type(entry.type)->bytes;
    std::string shape;
    bool overflow = false;
    for (int i = 0; i < entry.shape.rank(); ++i) {
      overflow = overflow || __builtin_mul_overflow(bytes, entry.shape[i], &bytes);
      shape += (i ? ", " : "") + std::to_string(entry.shape[i]);
    }
    if (overflow) reject("{}: shape [{}] overflows", {where, shape});
    if (bytes != entry.end - entry.begin)
      reject("{}: {} of shape [{}] takes {} bytes, but data_offsets has {}",
             {where, entry.type, shape, bytes, entry.end - entry.begin});
  }

  // Laid end to end, the tensors are the data: no overlap, no hole.
  void check_cover() {
    const auto position = [&](const std::string& name) {
      const auto& entry = file_.entries_.at(name);
      return std::tuple(entry.begin, entry.end, name);
    };
    std::sort(file_.names_.begin(), file_.names_.end(),
              [&](const std::string& a, const std::string& b) { return position(a) < position(b); });
    int64_t covered = 0;
    for (const std::string& name : file_.names_) {
      const auto& entry = file_.entries_.at(name);
      if (entry.begin < covered) reject("tensor {}: its data overlaps that of another tensor", {show(name)});
      if (entry.begin > covered) reject("bytes {} to {} of the data belong to no tensor", {covered, entry.begin});
      covered = entry.end;
    }
    if (covered != data_bytes_) reject("bytes {} to {} of the data belong to no tensor", {covered, data_bytes_});
  }

  SafetensorsFile& file_;
  std::string_view bytes_;
  int64_t data_bytes_ = 0;
};

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(path) { SafetensorsHeader(*this).read(); }

const SafetensorsFile::Entry& SafetensorsFile::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) fail("{}: no tensor '{}'", {path(), name});
  return found->second;
}

Dtype SafetensorsFile::dtype(const std::string& name) const {
  const std::string& type = entry(name).type;
  const int dtype = find_type(type)->dtype;
  if (dtype < 0) fail("{}: tensor '{}' is {}; F32, F64, BF16 and I64 can be loaded", {path(), name, type});
  return static_cast<Dtype>(dtype);
}

Tensor SafetensorsFile::load(const std::string& name) const {
  Tensor tensor(shape(name), dtype(name));
  const Entry& where = entry(name);
  if (tensor.bytes() > 0)
    std::memcpy(tensor.raw(), file_.bytes().data() + data_start_ + where.begin, static_cast<size_t>(tensor.bytes()));
  return tensor;
}

}  // namespace ricci
