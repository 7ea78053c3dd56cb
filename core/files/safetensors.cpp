// The tensors of a file whose header has been read.
#include "core/files/safetensors.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "core/bf16.h"
#include "core/choice.h"
#include "core/error.h"

namespace ricci {

static_assert(std::endian::native == std::endian::little, "elements are copied in the byte order of the file");

namespace {

constexpr int64_t kBlock = 1 << 20;  // bytes, a multiple of every element's

struct ElementType {
  const char* name;
  int64_t bytes;
  int dtype;  // a Dtype, or -1: Tensor has no such type
};
// The types that Tensor has are first, in the order of Dtype.
constexpr ElementType kElementTypes[] = {{"F32", 4, int(Dtype::f32)}, {"F64", 8, int(Dtype::f64)}, {"BF16", 2, int(Dtype::bf16)},
    {"I64", 8, int(Dtype::i64)}, {"F16", 2, -1}, {"I32", 4, -1}, {"I16", 2, -1}, {"I8", 1, -1}, {"U64", 8, -1}, {"U32", 4, -1},
    {"U16", 2, -1}, {"U8", 1, -1}, {"BOOL", 1, -1}, {"C64", 8, -1}, {"F8_E4M3", 1, -1}, {"F8_E5M2", 1, -1}};

constexpr bool begin_with_dtypes() {
  for (size_t i = 0; i < choices(Dtype()).size(); ++i)
    if (kElementTypes[i].dtype != static_cast<int>(i)) return false;
  return true;
}
static_assert(begin_with_dtypes(), "type_of finds a type by the number of its Dtype");

const ElementType* find_type(const std::string& name) {
  for (const ElementType& type : kElementTypes)
    if (name == type.name) return &type;
  return nullptr;
}

// IEEE 754 binary16: a sign, 5 bits of exponent, 10 bits of fraction.
float float_of_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const uint32_t sign = static_cast<uint32_t>(bits >> 15) << 31;
  if (exponent == 0) return std::copysign(std::ldexp(static_cast<float>(fraction), -24), sign ? -1.0f : 1.0f);
  const auto wide_exponent = static_cast<uint32_t>(exponent == 31 ? 255 : exponent - 15 + 127);
  return std::bit_cast<float>(sign | wide_exponent << 23 | static_cast<uint32_t>(fraction) << 13);
}

// Elements are in the file without alignment. Returns the place after the last value.
template <class Bits, class Convert> float* widen(std::string_view from, float* values, const Convert& value_of) {
  for (; !from.empty(); from.remove_prefix(sizeof(Bits))) {
    Bits bits;
    std::memcpy(&bits, from.data(), sizeof bits);
    *values++ = value_of(bits);
  }
  return values;
}

}  // namespace

template <class Number> Number number_in(const Metadata& metadata, const std::string& path, const char* key) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) fail("{}: its metadata has no {}", {path, key});
  const std::string& text = found->second;
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    fail("{}: its metadata has {} = '{}', expected a number", {path, key, text});
  return value;
}
template int64_t number_in(const Metadata&, const std::string&, const char*);
template uint64_t number_in(const Metadata&, const std::string&, const char*);
template double number_in(const Metadata&, const std::string&, const char*);

bool SafetensorsFile::is_type(const std::string& name) { return find_type(name) != nullptr; }

int64_t SafetensorsFile::bytes_of_type(const std::string& name) { return find_type(name)->bytes; }

const char* SafetensorsFile::type_of(Dtype dtype) { return kElementTypes[static_cast<size_t>(dtype)].name; }

std::optional<SafetensorsFile> SafetensorsFile::find(const FilePlace& place) {
  std::optional<OpenFile> file = OpenFile::find(place);
  return file ? std::optional<SafetensorsFile>(SafetensorsFile(std::move(*file))) : std::nullopt;
}

// write_file_atomically puts a new file in the place of an old one, but cp writes into the old one; size and time show it.
void SafetensorsFile::read(int64_t position, void* into, int64_t bytes) const {
  const size_t got = file_.read(into, static_cast<size_t>(bytes), position);
  if (got < static_cast<size_t>(bytes) || file_.size() != size_ || file_.changed() != changed_)
    fail("{}: it was overwritten or cut short while it was read", {path()});
}

void SafetensorsFile::for_each_block(int64_t begin, int64_t end, const std::function<void(std::string_view)>& use) const {
  std::string block(static_cast<size_t>(std::min(end - begin, kBlock)), '\0');
  for (; begin < end; begin += static_cast<int64_t>(block.size())) {
    block.resize(static_cast<size_t>(std::min(end - begin, kBlock)));
    read(begin, block.data(), static_cast<int64_t>(block.size()));
    use(block);
  }
}

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
  read(data_start_ + where.begin, tensor.raw(), tensor.bytes());
  return tensor;
}

Tensor SafetensorsFile::load_f32(const std::string& name) const {
  const Entry& where = entry(name);
  if (where.type == "F32") return load(name);
  const bool is_bf16 = where.type == "BF16";
  if (!is_bf16 && where.type != "F16") fail("{}: tensor '{}' is {}; F32, BF16 and F16 can be read as f32", {path(), name, where.type});
  const Tensor tensor(where.shape, Dtype::f32);
  float* values = tensor.data<float>();
  for_each_block(data_start_ + where.begin, data_start_ + where.end, [&](std::string_view bytes) {
    values =
        is_bf16 ? widen<bf16>(bytes, values, [](bf16 x) { return static_cast<float>(x); }) : widen<uint16_t>(bytes, values, float_of_half);
  });
  return tensor;
}

}  // namespace ricci
