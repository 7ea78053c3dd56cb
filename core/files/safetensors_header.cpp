// Reading the header: it is checked completely before anything else is believed. Time and memory grow in proportion to its
// length, whatever it holds: the parser hands over one value after the other, and only the values of one tensor are kept at a time.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/error.h"
#include "core/files/safetensors.h"

namespace ricci {
namespace {

using json = nlohmann::json;

constexpr uint64_t kLargestHeader = 100'000'000;  // the limit of the reference implementation
constexpr int64_t kMaxValues = 1 << 16;           // in a tensor's entry, or texts in the metadata

// A JSON value for a message: one line, not too long.
std::string show(const json& value) {
  const std::string text = value.dump(-1, ' ', true);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

}  // namespace

class SafetensorsHeader final : public nlohmann::json_sax<json> {
 public:
  explicit SafetensorsHeader(SafetensorsFile& file) : file_(file) {}

  void read() {
    text_ = text();
    if (const size_t zero = text_.find('\0'); zero != text_.npos)  // to the parser it is the end
      reject("the header is not JSON: fault at byte {} of {}", {zero + 1, text_.size()});
    json::sax_parse(text_.begin(), text_.end(), this);
    check_cover();
  }

  // ---- What the parser calls, in the order of the text
  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(int64_t value) override { return put(value); }
  bool number_unsigned(uint64_t value) override { return put(value); }
  bool number_float(double value, const std::string&) override { return put(value); }
  bool string(std::string& value) override { return put(value); }
  bool binary(json::binary_t&) override { return false; }  // JSON has none
  bool start_object(size_t) override {
    if (depth_ == 0) return ++depth_;
    return open(json::object());
  }
  bool start_array(size_t) override {
    if (depth_ == 0) reject("the header is not a JSON object");
    return open(json::array());
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& key) override {
    const bool known =
        open_.empty() ? file_.entries_.contains(key) || (key == "__metadata__" && has_metadata_) : open_.back()->contains(key);
    if (known) reject("the header has {} twice", {show(key)});
    (open_.empty() ? name_ : key_) = key;
    return true;
  }
  bool parse_error(size_t byte, const std::string&, const nlohmann::detail::exception& error) override {
    if (dynamic_cast<const json::out_of_range*>(&error)) reject("the header has a number beyond the range of f64");
    reject("the header is not JSON: fault at byte {} of {}", {byte, text_.size()});
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

  std::string where() const { return "tensor " + show(name_); }

  // A value takes its place: in the list or object that is open, or else it is the whole entry of a name.
  bool put(json value) {
    if (depth_ == 0) reject("the header is not a JSON object");
    if (open_.empty()) {
      finish(value);
      return true;
    }
    if (++values_ > kMaxValues) reject("{}: more than {} values", {show(name_), kMaxValues});
    if (open_.back()->is_array()) open_.back()->push_back(std::move(value));
    else (*open_.back())[key_] = std::move(value);
    return true;
  }

  bool open(json empty) {
    if (++depth_ > 3) reject("the header is nested too deeply");
    if (open_.empty()) {
      value_ = std::move(empty);
      values_ = 0;
      open_.push_back(&value_);
      return true;
    }
    json& holder = *open_.back();
    put(std::move(empty));
    open_.push_back(holder.is_array() ? &holder.back() : &holder[key_]);
    return true;
  }

  bool close() {
    --depth_;
    if (open_.empty()) return true;  // the header itself
    open_.pop_back();
    if (open_.empty()) finish(value_);
    return true;
  }

  void finish(const json& value) {
    if (name_ == "__metadata__") read_metadata(value);
    else file_.entries_.emplace(name_, read_entry(where(), value));
  }

  void read_metadata(const json& value) {
    has_metadata_ = true;
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
    if (!type.is_string() || !SafetensorsFile::is_type(type.get<std::string>())) reject("{}: unknown dtype {}", {where, show(type)});
    entry.type = type.get<std::string>();
    entry.shape = read_shape(where, value["shape"]);

    const json& offsets = value["data_offsets"];
    if (!offsets.is_array() || offsets.size() != 2) reject("{}: data_offsets is {}, expected two integers", {where, show(offsets)});
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
  std::string text_;
  int64_t data_bytes_ = 0;

  int depth_ = 0;            // lists and objects that are open, the header included
  std::string name_, key_;   // the tensor's, and the one inside of its entry
  json value_;               // the entry of the name
  std::vector<json*> open_;  // the lists and objects of value_ that are open
  int64_t values_ = 0;       // in value_
  bool has_metadata_ = false;
};

SafetensorsFile::SafetensorsFile(OpenFile file) : file_(std::move(file)), size_(file_.size()), changed_(file_.changed()) {
  SafetensorsHeader(*this).read();
}

}  // namespace ricci
