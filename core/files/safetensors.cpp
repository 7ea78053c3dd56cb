// The tensors of a file whose header has been read.
#include "core/files/safetensors.h"

#include <bit>
#include <cstring>

#include "core/error.h"

namespace ricci {

static_assert(std::endian::native == std::endian::little, "elements are copied as they lie in the file");

namespace {

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

}  // namespace

bool SafetensorsFile::is_type(const std::string& name) { return find_type(name) != nullptr; }

int64_t SafetensorsFile::bytes_of_type(const std::string& name) { return find_type(name)->bytes; }

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
