// Fuzzes safetensors files: unchanged, and as a header with the right length followed by data.
#include "core/files/safetensors.h"

#include "tests/fuzz/input.h"

using namespace ricci;

namespace {

void read(const std::string& path) {
  const SafetensorsFile file(path);
  int64_t bytes = 0;
  for (const std::string& name : file.names()) {
    fuzz::attempt([&] {
      const Tensor tensor = file.load(name);
      fuzz::require(
          tensor.shape() == file.shape(name) && tensor.dtype() == file.dtype(name), "a tensor has the type and shape of its file");
      bytes += tensor.bytes();
    });
    fuzz::attempt([&] { fuzz::require(file.load_f32(name).shape() == file.shape(name), "widened, it has the same shape"); });
  }
  fuzz::require(bytes <= (1 << 24), "tensors are not larger than their file");
  file.verify();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::InputFile input;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  fuzz::attempt([&] { read(input.write(bytes)); });
  const uint64_t length = size;
  for (const size_t behind : {0, 4, 24, 64})
    fuzz::attempt(
        [&] { read(input.write(std::string(reinterpret_cast<const char*>(&length), sizeof length) + bytes + std::string(behind, '\1'))); });
  return 0;
}
