#include "apps/run/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <optional>

#include "apps/run/config.h"

namespace ricci::apps {
namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.";
constexpr int64_t kLatest = 9'999'999'999;  // seconds since 1970 in 10 digits

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0x82f63b78u : 0u);
    table[byte] = value;
  }
  return table;
}

template <class T> std::string little_endian(T value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

std::string masked_crc(std::string_view bytes) { return little_endian(std::rotr(crc32c(bytes), 15) + 0xa282ead8u); }

// ---- Protocol buffers: a field is its number and kind in one integer, then the value
enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>((value & 127) | 128);
  return bytes + static_cast<char>(value);
}
std::string field(uint32_t number, Wire kind) { return varint(number << 3 | kind); }
std::string field(uint32_t number, int64_t value) { return field(number, kVarint) + varint(static_cast<uint64_t>(value)); }
std::string field(uint32_t number, double value) { return field(number, kFixed64) + little_endian(std::bit_cast<uint64_t>(value)); }
std::string field(uint32_t number, float value) { return field(number, kFixed32) + little_endian(std::bit_cast<uint32_t>(value)); }
std::string field(uint32_t number, std::string_view value) { return field(number, kBytes) + varint(value.size()).append(value); }

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || !name[0]) return "localhost";
  std::replace(std::begin(name), std::end(name), '/', '_');
  return name;
}

// TIME of the newest event file of the folder, 0 where there is none. Names of more digits than times have are not ours.
int64_t newest(const Folder& folder) {
  int64_t latest = 0;
  for (const std::string& name : folder.names()) {
    int64_t time = 0;
    if (name.starts_with(kPrefix)) std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), time);
    if (time < kLatest) latest = std::max(latest, time);
  }
  return latest;
}

using HyperValue = decltype(HyperParameter::value);

// True for keys about places, not about the training.
bool is_place(const Field& field) {
  if (field.key == "name" || field.key == "runs") return true;
  const std::string* const* const text = std::get_if<std::string*>(&field.value);
  return field.names_file && (!text || (*text)->empty() || field.names_file(**text));
}

std::optional<HyperValue> hyper_value(const Field& field) {
  return std::visit(
      [&]<class Member>(const Member& member) -> std::optional<HyperValue> {
        if constexpr (std::is_same_v<Member, bool*> || std::is_same_v<Member, std::string*>) return *member;
        else if constexpr (std::is_same_v<Member, int64_t*> || std::is_same_v<Member, uint64_t*> || std::is_same_v<Member, double*>)
          return static_cast<double>(*member);
        else if constexpr (std::is_same_v<Member, std::optional<int64_t>*>)
          return *member ? std::optional<HyperValue>(static_cast<double>(**member)) : std::nullopt;
        else return value_text(field);
      },
      field.value);
}

// After the others by name, whatever the clock shows.
FilePlace next_place(const Folder& folder, double time) {
  const int64_t second = std::max(static_cast<int64_t>(time), newest(folder) + 1);
  return {folder, fmt::format("{}{:010}.{}", kPrefix, second, host_name())};
}

}  // namespace

std::vector<HyperParameter> hyper_parameters(const std::vector<Field>& fields) {
  std::vector<HyperParameter> parameters;
  for (const Field& field : fields) {
    if (!field.is_read || is_place(field)) continue;
    if (std::optional<HyperValue> value = hyper_value(field)) parameters.push_back({field.key, std::move(*value)});
  }
  return parameters;
}

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = crc_table();
  uint32_t crc = ~0u;
  for (const char byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

std::string tfrecord(std::string_view data) {
  const std::string length = little_endian(static_cast<uint64_t>(data.size()));
  return (length + masked_crc(length)).append(data) + masked_crc(data);
}

std::string version_event(double time) { return field(1, time) + field(3, "brain.Event:2"); }

std::string restart_event(double time, int64_t first_step) {
  return field(1, time) + field(2, first_step) + field(7, field(1, int64_t{1}));  // session_log: status START
}

std::string scalars_event(double time, int64_t step, std::span<const Scalar> scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) summary += field(1, field(1, scalar.tag) + field(2, scalar.value));
  return field(1, time) + field(2, step) + field(5, summary);
}

// HParamsPluginData: session_start_info, a map from keys to values of google.protobuf.Value (number 2, string 3, bool 4); entries of a
// map are messages of key and value.
std::string hyper_parameters_event(double time, std::span<const HyperParameter> parameters) {
  std::string session;
  for (const HyperParameter& parameter : parameters) {
    std::string value;
    if (const auto* number = std::get_if<double>(&parameter.value)) value = field(2, *number);
    else if (const auto* text = std::get_if<std::string>(&parameter.value)) value = field(3, *text);
    else value = field(4, int64_t{std::get<bool>(parameter.value)});
    session += field(1, field(1, parameter.key) + field(2, value));
  }
  session += field(5, time);
  const std::string metadata = field(1, field(1, "hparams") + field(2, field(3, session)));  // the plugin and its data
  const std::string tensor = field(1, int64_t{1}) + field(2, field(2, ""));                  // f32 of shape [0]
  const std::string value = field(1, "_hparams_/session_start_info") + field(8, tensor) + field(9, metadata);
  return field(1, time) + field(5, field(1, value));
}

EventFile::EventFile(const Folder& folder, double time, int64_t first_step) : file_(next_place(folder, time), AppendFile::Old::refuse) {
  file_.append(tfrecord(version_event(time)) + tfrecord(restart_event(time, first_step)));
}

}  // namespace ricci::apps
