// The checksum of a file: what it notices.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "core/files/safetensors.h"
#include "core/memory/memory.h"
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

TEST_CASE("safetensors: a file that is written to while it is read is an error, whatever is read of it next") {
  const ScratchFolder folder;
  const std::string path = folder / "a.safetensors";
  save_checked_safetensors(path, some_tensors());
  const std::string sound = read_file(path), error = path + ": it was overwritten or cut short while it was read";
  const std::function<void()> changes[] = {[&] { std::filesystem::resize_file(path, sound.size() - 20); },
      [&] { folder.write("a.safetensors", ""); }, [&] { folder.write("a.safetensors", sound + "more"); },
      [&] { folder.write("a.safetensors", std::string(sound.size(), 'x')); }};
  for (const auto& change : changes) {
    folder.write("a.safetensors", sound);
    ::usleep(20'000);  // a clock of the file system ticks
    const SafetensorsFile file(path);
    CHECK_NOTHROW(file.verify());
    CHECK_NOTHROW(file.load("w"));
    change();
    CHECK(error_of([&] { file.verify(); }) == error);
    CHECK(error_of([&] { file.load("w"); }) == error);
    CHECK(error_of([&] { file.load_f32("w"); }) == error);
  }
}

TEST_CASE("safetensors: tensors that are loaded one at a time make the same file") {
  const ScratchFolder folder;
  const auto tensors = some_tensors();
  save_checked_safetensors(folder / "a", tensors, {{"step", "12"}});
  std::vector<std::string> order;
  std::vector<TensorSource> sources;
  for (const auto& [name, tensor] : tensors)
    sources.push_back({name, tensor.shape(), tensor.dtype(), [&, name = name, tensor = tensor] {
                         order.push_back(name);
                         return tensor;
                       }});
  save_checked_safetensors_from(folder / "b", sources, {{"step", "12"}});
  CHECK(read_file(folder / "a") == read_file(folder / "b"));
  CHECK(order == SafetensorsFile(folder / "b").names());  // each once
  sort_in_file_order(sources);
  CHECK(sources[0].name == "n");

  const std::string before = read_file(folder / "b");
  const auto fault = [&](const TensorSource& wrong) {
    std::vector<TensorSource> with = sources;
    with.push_back(wrong);
    const std::string error = error_of([&] { save_checked_safetensors_from(folder / "b", with); });
    CHECK(read_file(folder / "b") == before);
    return error.substr((folder / "b: ").size());
  };
  const auto empty = [] { return Tensor(); };
  const auto two = [] { return Tensor({2}, Dtype::f32); };
  CHECK(fault({"x", {2}, Dtype::f32, empty}) == "tensor 'x' is empty");
  CHECK(fault({"x", {3}, Dtype::f32, two}) == "tensor 'x' is f32 [2], expected f32 [3]");
  CHECK(fault({"x", {2}, Dtype::f64, two}) == "tensor 'x' is f32 [2], expected f64 [2]");
  CHECK(fault({"w", {2}, Dtype::f32, two}) == "tensor 'w' is given twice");
}

TEST_CASE("safetensors: no more than one loaded tensor is in memory at a time") {
  const ScratchFolder folder;
  const int64_t before = memory_use(Device::cpu).current;
  std::vector<TensorSource> sources;
  for (const char* name : {"a", "b", "c"})
    sources.push_back({name, {1 << 18}, Dtype::f32, [&] {
                         CHECK(memory_use(Device::cpu).current == before);
                         return Tensor({1 << 18}, Dtype::f32);
                       }});
  save_checked_safetensors_from(folder / "a", sources);
  SafetensorsFile(folder / "a").verify();
}
