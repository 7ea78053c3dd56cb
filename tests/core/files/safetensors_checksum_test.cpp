// The checksum of a file: what it notices.
#include <doctest/doctest.h>

#include "core/files/safetensors.h"
#include "tests/data/files.h"

using namespace ricci;
using namespace test_data;

namespace {

std::vector<std::pair<std::string, Tensor>> some_tensors() {
  Tensor w({2, 3}, Dtype::f32), n({2}, Dtype::i64);
  for (int i = 0; i < 6; ++i) w.data<float>()[i] = static_cast<float>(i) - 3.5f;
  n.data<int64_t>()[0] = INT64_MAX, n.data<int64_t>()[1] = -1;
  return {{"w", w}, {"none", Tensor({0, 5}, Dtype::f32)}, {"n", n}};
}

}  // namespace

TEST_CASE("safetensors: a checksum notices every damaged byte, and a file without one") {
  const ScratchFolder folder;
  const std::string path = folder / "a.safetensors";
  save_checked_safetensors(path, some_tensors(), {{"step", "12"}, {"z", "\"checksum\":\"0000000000000000\""}});
  const std::string sound = read_file(path);
  const SafetensorsFile file(path);
  file.verify();
  CHECK(file.metadata().at("step") == "12");
  CHECK(file.metadata().at("checksum") != "0000000000000000");
  CHECK(file.load("w").data<float>()[5] == 1.5f);

  for (size_t i = 0; i < sound.size(); ++i) {
    std::string damaged = sound;
    for (const int change : {1, 0x20, 0x80}) {
      damaged[i] = static_cast<char>(sound[i] ^ change);
      folder.write("b.safetensors", damaged);
      CAPTURE(i);
      CHECK(error_of([&] { SafetensorsFile(folder / "b.safetensors").verify(); }) != "no error");
    }
  }
  std::string last = sound;
  last.back() = static_cast<char>(last.back() ^ 1);
  CHECK(error_of([&] { SafetensorsFile(folder.write("b.safetensors", last)).verify(); }) ==
        folder / "b.safetensors" + ": damaged: its bytes do not match its checksum");
  save_safetensors(path, some_tensors());
  CHECK(error_of([&] { SafetensorsFile(path).verify(); }) == path + ": it has no checksum");
}
