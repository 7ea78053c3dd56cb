// Reading the header: it is checked completely before anything else is believed.
#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>

#include "core/error.h"
#include "core/files/safetensors.h"
#include "core/json/value.h"

namespace ricci {
namespace {

constexpr uint64_t kLargestHeader = 100'000'000;  // the limit of the reference implementation

// A JSON value for a message: one line, not too long.
std::string show(const JsonValue& value) { return one_line(value.to_json()); }
std::string show(const std::string& text) { return one_line(quoted_json(text)); }

}  // namespace

class SafetensorsHeader {
 public:
  explicit SafetensorsHeader(SafetensorsFile& file) : file_(file) {}

  void read() {
    const std::string header = text();
    const JsonLimits limits{.bytes = kLargestHeader, .depth = 3, .values = 1 << 24};
    const JsonValue root = parse_json(header, (file_.path() + ": the header").c_str(), limits);
    if (!root.is_object()) reject("the header is not a JSON object");
    check_keys(root);
    for (size_t i = 0; i < root.keys().size(); ++i) {
      const std::string& name = root.keys()[i];
      if (name == "__metadata__") read_metadata(root.items()[i]);
      else file_.entries_.emplace(name, read_entry("tensor " + show(name), root.items()[i]));
    }
    check_cover();
  }

 private:
  [[noreturn]] void reject(const std::string& fault) const { fail("{}: {}", {file_.path(), fault}); }
  [[noreturn]] void reject(const char* pattern, std::initializer_list<ErrorValue> values = {}) const {
    reject(format_message(pattern, values));
  }

  std::string text() {
    uint64_t length = 0;
    if (file_.size_ < static_cast<int64_t>(sizeof length)) reject("not a safetensors file: it has {} bytes, fewer than 8", {file_.size_});
    file_.read(0, &length, sizeof length);
    if (std::memcmp(&length, "GGUF", 4) == 0) reject("a GGUF file; ricci reads safetensors");
    if (length > kLargestHeader)
      reject("not a safetensors file: a header of {} bytes, at most {} are allowed", {std::to_string(length), kLargestHeader});
    const uint64_t rest = static_cast<uint64_t>(file_.size_) - sizeof length;
    if (length > rest) reject("cut off: the header has {} bytes, but only {} follow its length", {length, rest});
    file_.data_start_ = static_cast<int64_t>(sizeof length + length);
    data_bytes_ = static_cast<int64_t>(rest - length);
    std::string text(length, '\0');
    file_.read(sizeof length, text.data(), static_cast<int64_t>(length));
    return text;
  }

  void check_keys(const JsonValue& object) const {
    std::set<std::string_view> keys;
    for (const std::string& key : object.keys())
      if (!keys.insert(key).second) reject("the header has {} twice", {show(key)});
  }

  void read_metadata(const JsonValue& value) {
    if (!value.is_object()) reject("__metadata__ is {}, expected an object", {show(value)});
    check_keys(value);
    for (size_t i = 0; i < value.keys().size(); ++i) {
      const JsonValue& text = value.items()[i];
      if (!text.is_text()) reject("__metadata__: {} is {}, expected a string", {show(value.keys()[i]), show(text)});
      file_.metadata_[value.keys()[i]] = text.text();
    }
  }

  SafetensorsFile::Entry read_entry(const std::string& where, const JsonValue& value) const {
    if (!value.is_object()) reject("{}: expected an object, got {}", {where, show(value)});
    check_keys(value);
    for (const char* key : {"dtype", "shape", "data_offsets"})
      if (std::find(value.keys().begin(), value.keys().end(), key) == value.keys().end()) reject("{}: no {}", {where, key});
    SafetensorsFile::Entry entry;
    const JsonValue& type = value["dtype"];
    if (!type.is_text() || !SafetensorsFile::is_type(type.text())) reject("{}: unknown dtype {}", {where, show(type)});
    entry.type = type.text();
    entry.shape = read_shape(where, value["shape"]);

    const JsonValue& offsets = value["data_offsets"];
    if (!offsets.is_list() || offsets.items().size() != 2) reject("{}: data_offsets is {}, expected two integers", {where, show(offsets)});
    entry.begin = read_integer(where, "data_offsets", offsets.items()[0]);
    entry.end = read_integer(where, "data_offsets", offsets.items()[1]);
    if (entry.begin > entry.end || entry.end > data_bytes_)
      reject("{}: data_offsets is {}, outside the {} bytes of data", {where, show(offsets), data_bytes_});
    check_size(where, entry);
    return entry;
  }

  int64_t read_integer(const std::string& where, const char* what, const JsonValue& value) const {
    if (!value.is_integer() || value.integer() < 0)
      reject("{}: {} has {}, expected an integer from 0 to 2^63 - 1", {where, what, show(value)});
    return value.integer();
  }

  Shape read_shape(const std::string& where, const JsonValue& value) const {
    if (!value.is_list()) reject("{}: shape is {}, expected a list of integers", {where, show(value)});
    if (value.items().size() > Shape::kMaxRank)
      reject("{}: shape has {} extents, at most {} are supported", {where, value.items().size(), Shape::kMaxRank});
    Shape shape;
    for (const JsonValue& extent : value.items()) shape.push_back(read_integer(where, "shape", extent));
    return shape;
  }

  void check_size(const std::string& where, const SafetensorsFile::Entry& entry) const {
    int64_t bytes = SafetensorsFile::bytes_of_type(entry.type);
    std::string shape;
    bool overflow = false;
    for (int i = 0; i < entry.shape.rank(); ++i) {
      overflow = overflow || __builtin_mul_overflow(bytes, entry.shape[i], &bytes);
      shape += (i ? ", " : "") + std::to_string(entry.shape[i]);
    }
    if (overflow) reject("{}: shape [{}] overflows", {where, shape});
    if (bytes != entry.end - entry.begin)
      reject("{}: {} of shape [{}] takes {} bytes, but data_offsets has {}", {where, entry.type, shape, bytes, entry.end - entry.begin});
  }

  // Laid end to end, the tensors are the data: no overlap, no hole.
  void check_cover() {
    std::vector<const std::pair<const std::string, SafetensorsFile::Entry>*> order;
    for (const auto& named : file_.entries_) order.push_back(&named);
    std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
      return std::tie(a->second.begin, a->second.end, a->first) < std::tie(b->second.begin, b->second.end, b->first);
    });
    int64_t covered = 0;
    for (const auto* named : order) {
      const auto& [name, entry] = *named;
      if (entry.begin < covered) reject("tensor {}: its data overlaps the data of another tensor", {show(name)});
      if (entry.begin > covered) reject("bytes {} to {} of the data belong to no tensor", {covered, entry.begin});
      covered = entry.end;
      file_.names_.push_back(name);
    }
    if (covered != data_bytes_) reject("bytes {} to {} of the data belong to no tensor", {covered, data_bytes_});
  }

  SafetensorsFile& file_;
  int64_t data_bytes_ = 0;
};

SafetensorsFile::SafetensorsFile(OpenFile file) : file_(std::move(file)), size_(file_.size()), changed_(file_.changed()) {
  SafetensorsHeader(*this).read();
}

}  // namespace ricci
