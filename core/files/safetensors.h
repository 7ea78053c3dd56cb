// Named tensors in a file, in the safetensors format (github.com/huggingface/safetensors):
//   8 bytes: length n of the header, little-endian
//   n bytes: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ..., "__metadata__": {"key": "text"}}
//   the rest: the elements, row-major and little-endian, without holes; offsets count from its start
// Weights come from strangers, so the whole header is checked before a tensor is made: otherwise a wrong shape or offset would decide
// how much memory is taken and which bytes are read.
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

// A file opened for reading. Tensors are read when they are loaded. It stays readable when its name is given to another file, or removed.
class SafetensorsFile {
 public:
  struct Entry {
    std::string type;  // as the file names it: F32, F64, BF16, I64, or one that only its size is known of
    Shape shape;
    int64_t begin = 0, end = 0;  // bytes from the start of the data
  };

  // Reads and checks the header, in time and memory in proportion to its length. Errors: unreadable, or anything that breaks the format;
  // each names the file and the fault in one line.
  explicit SafetensorsFile(const std::string& path) : SafetensorsFile(File(path)) {}
  static std::optional<SafetensorsFile> find(const std::string& path);  // nothing if there is no file

  const std::string& path() const { return file_.path(); }
  const Metadata& metadata() const { return metadata_; }
  const std::vector<std::string>& names() const { return names_; }  // in the order of the data
  bool contains(const std::string& name) const { return entries_.count(name) > 0; }

  // Errors of all: no tensor of this name. Loading: the file was cut short. Of dtype and load: a type that Tensor does not have, such as
  // F16.
  const Shape& shape(const std::string& name) const { return entry(name).shape; }
  Dtype dtype(const std::string& name) const;
  Tensor load(const std::string& name) const;  // a copy on the CPU
  // The same as f32, which holds every value of F32, BF16 and F16 exactly. Error: no such tensor, or one of another type.
  Tensor load_f32(const std::string& name) const;

  // Checks that the file is, byte for byte, as save_safetensors wrote it; reads all of it. Error: no checksum, or damaged.
  void verify() const {
    if (!verify_if_checked()) fail("{}: it has no checksum", {path()});
  }
  // The same, but false if the file has no checksum of 16 digits, because files of other programs have none, or one of their own kind.
  bool verify_if_checked() const;

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

// Replaces the file atomically. The data is ordered by falling element size (else as given) and starts at a multiple of 8, because readers
// that map the file want every tensor aligned. The metadata gets a checksum over the whole file, its header included. The same tensors and
// metadata give the same bytes. With `to_host` tensors can be on any device: it copies each to the CPU, only when its turn to be written
// comes. Errors: a tensor that is not on the CPU, an empty one, a name given twice or not UTF-8, a file that cannot be written.
using ToHost = std::function<Tensor(const Tensor&)>;
void save_safetensors(const std::string& path, NamedTensors tensors, Metadata metadata = {}, const ToHost& to_host = {});

}  // namespace ricci
