// Named tensors in a file, in the safetensors format (github.com/huggingface/safetensors):
//   8 bytes: length n of the header, little-endian
//   n bytes: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ..., "__metadata__": {"key": "text"}}
//   the rest: the elements, row-major and little-endian, without holes; offsets count from its start
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/files/file.h"
#include "core/tensor.h"

namespace ricci {

using Metadata = std::map<std::string, std::string>;
// The number under this key, an int64_t, uint64_t or double. Error: names the path; it is missing or not a number.
template <class Number> Number number_in(const Metadata& metadata, const std::string& path, const char* key);

// A file opened for reading. Tensors are read when they are loaded. It stays readable when its name is given to another file, or removed;
// where it is itself written to, reading on is an error.
class SafetensorsFile {
 public:
  // Reads and checks the whole header, in time and memory in proportion to its length. Errors: unreadable, or anything that
  // breaks the format; each names the file and the fault in one line.
  explicit SafetensorsFile(const FilePlace& place) : SafetensorsFile(OpenFile(place)) {}
  // Nothing where there is no file.
  static std::optional<SafetensorsFile> find(const FilePlace& place);

  const std::string& path() const { return file_.path(); }
  const Metadata& metadata() const { return metadata_; }
  const std::vector<std::string>& names() const { return names_; }  // in the order of the data
  bool contains(const std::string& name) const { return entries_.count(name) > 0; }

  // Errors of all: no tensor of this name. Loading: the file was overwritten or cut short. Of dtype and load: a type that Tensor does not
  // have, such as F16.
  const Shape& shape(const std::string& name) const { return entry(name).shape; }
  Dtype dtype(const std::string& name) const;
  Tensor load(const std::string& name) const;  // a copy on the CPU
  // The same as f32, which holds every value of F32, BF16 and F16 exactly. Error: no such tensor, or one of another type.
  Tensor load_f32(const std::string& name) const;

  static const char* type_of(Dtype dtype);  // as the format names it: F32

  // Checks that the file is, byte for byte, what save_checked_safetensors wrote; reads all of it. Error: no checksum, or
  // damaged.
  void verify() const;
  // Calls verify() if the file has a checksum of 16 digits, as ours are; does nothing for other files.
  void verify_if_checked() const;

 private:
  friend class SafetensorsHeader;
  explicit SafetensorsFile(OpenFile file);
  void read(int64_t position, void* into, int64_t bytes) const;
  // Calls use(bytes) for the bytes from `begin` to `end` of the file, block by block.
  void for_each_block(int64_t begin, int64_t end, const std::function<void(std::string_view)>& use) const;
  struct Entry {
    std::string type;  // as the file names it: F32, F64, BF16, I64, or one that only its size is known of
    Shape shape;
    int64_t begin = 0, end = 0;  // bytes from the start of the data
  };
  const Entry& entry(const std::string& name) const;
  static bool is_type(const std::string& name);           // one that the format has
  static int64_t bytes_of_type(const std::string& name);  // an element's

  OpenFile file_;
  int64_t size_, changed_;  // when it was opened
  int64_t data_start_ = 0;
  Metadata metadata_;
  std::unordered_map<std::string, Entry> entries_;
  std::vector<std::string> names_;
};

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// Replaces the file atomically. The data is ordered by falling element size (else as given), and starts at a multiple
// of 8, so that every tensor is aligned. The same tensors and metadata give the same bytes.
// Errors: a tensor not on the CPU, an empty one, a name given twice or not UTF-8, a file that cannot be written.
void save_safetensors(const FilePlace& place, const NamedTensors& tensors, const Metadata& metadata = {});

// The same with a checksum over the whole file, its header included, in the metadata: any damaged byte is noticed by
// SafetensorsFile::verify. With `to_host` tensors can be on any device: it copies each to the CPU, only when its turn to be written comes.
using ToHost = std::function<Tensor(const Tensor&)>;
void save_checked_safetensors(
    const FilePlace& place, const NamedTensors& tensors, const Metadata& metadata = {}, const ToHost& to_host = {});

}  // namespace ricci
