// Named tensors in a file, in the safetensors format (github.com/huggingface/safetensors):
//   8 bytes: length n of the header, little-endian
//   n bytes: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ..., "__metadata__": {"key": "text"}}
//   the rest: the elements, row-major and little-endian, without gaps; offsets are relative to its start
// Weights can come from strangers, so the full header is checked before any memory is allocated for its shapes and offsets.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/files/file.h"
#include "core/tensor.h"

namespace ricci {

using Metadata = std::map<std::string, std::string>;

// A file opened for reading. Each tensor is read when it is loaded, even if the file has been replaced or removed.
class SafetensorsFile {
 public:
  struct Entry {
    std::string type;  // the name in the file: F32, F64, BF16, I64, or a type that Tensor lacks
    Shape shape;
    int64_t begin = 0, end = 0;  // bytes from the start of the data
  };

  // Reads and checks the header, in time and memory proportional to its length. Errors: the file cannot be read, its header violates the
  // format.
  explicit SafetensorsFile(const std::string& path) : SafetensorsFile(File(path)) {}
  static std::optional<SafetensorsFile> find(const std::string& path);  // nothing if it does not exist

  const std::string& path() const { return file_.path(); }
  const Metadata& metadata() const { return metadata_; }
  const std::vector<std::string>& names() const { return names_; }  // in the order of the data
  bool contains(const std::string& name) const { return entries_.count(name) > 0; }

  // Errors of these functions: no tensor has this name, Tensor does not support its type (such as F16), the file was cut short.
  const Shape& shape(const std::string& name) const { return entry(name).shape; }
  Dtype dtype(const std::string& name) const;
  Tensor load(const std::string& name) const;  // a copy on the CPU
  // Like load, but converts BF16 and F16 to f32 without rounding. Error: the type is not F32, BF16 or F16.
  Tensor load_f32(const std::string& name) const;

  // Reads the file and compares it with the checksum of save_safetensors. Errors: the file has no checksum or is damaged.
  void verify() const {
    if (!verify_if_checked()) fail("{}: has no checksum", {path()});
  }
  // Like verify, but returns false if the file has no checksum of 16 digits. Other programs write no checksum or one of a different kind.
  bool verify_if_checked() const;
  // The checksum, or a hash of the bytes if the file has none. Equal files give equal results.
  std::string hash() const;

 private:
  explicit SafetensorsFile(File file);
  const Entry& entry(const std::string& name) const;
  void read(int64_t position, void* into, int64_t bytes) const;
  std::string read_header() const;

  File file_;
  int64_t data_start_ = 0;
  Metadata metadata_;
  std::unordered_map<std::string, Entry> entries_;
  std::vector<std::string> names_;
};

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// Replaces the file atomically (core/files/file.h). Tensors with larger elements come first; apart from this, the order is kept. The data
// starts at a multiple of 8, to align tensors in mapped files. A checksum of the file is added to the metadata. Equal tensors and metadata
// give equal bytes. `to_host` copies a tensor that is on a different device just before it is written. Errors: a tensor is empty or not on
// the CPU; a name is a duplicate or not UTF-8; the file cannot be written.
using ToHost = std::function<Tensor(const Tensor&)>;
void save_safetensors(const std::string& path, NamedTensors tensors, Metadata metadata = {}, const ToHost& to_host = {});

}  // namespace ricci
