// Models of a different program (tests/interop), with its logits, and copies to change.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "apps/interop/interop.h"
#include "apps/run/run_folder.h"
#include "core/files/safetensors.h"
#include "core/json.h"
#include "cuda/device/device.h"
#include "tests/data/files.h"

namespace ricci::apps {

inline const std::string kModels = RICCI_TESTS_FOLDER "/interop/models/";

inline Model load_run(const std::string& run) { return RunFolder::open(run, RunFolder::Vocabulary::optional).load_model(Device::cpu); }

// The largest difference from the stored logits of a model, times a factor; NaN if any is NaN.
inline double largest_error(const Model& model, const std::string& name, double factor = 1) {
  const SafetensorsFile file(kModels + "logits.safetensors");
  const Tensor logits = model.logits({.ids_bc = file.load(name + "/ids")}), expected = file.load(name + "/logits");
  REQUIRE(logits.shape() == expected.shape());
  double worst = 0;
  for (int64_t i = 0; i < logits.size(); ++i) {
    const double error = std::abs(static_cast<double>(logits.data<float>()[i]) - factor * expected.data<double>()[i]);
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

inline void check_same_values(
    const SafetensorsFile& ours, const std::string& our_name, const SafetensorsFile& theirs, const std::string& their_name) {
  const Tensor a = ours.load_f32(our_name), b = theirs.load_f32(their_name);
  REQUIRE(a.shape() == b.shape());
  CHECK(std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.bytes())) == 0);
}

// A copy of a stored folder. Tests change its config.json.
struct Copy {
  test_data::ScratchFolder folder;
  explicit Copy(const std::string& name) { std::filesystem::copy(kModels + name, folder / "theirs"); }
  std::string theirs() const { return folder / "theirs"; }
  void replace(const std::string& from, const std::string& to) const {
    std::string text = test_data::read_file(theirs() + "/config.json");
    REQUIRE(text.find(from) != text.npos);
    folder.write("theirs/config.json", text.replace(text.find(from), from.size(), to));
  }
  // Rewrites the weights.
  void weights(const std::function<void(std::vector<std::pair<std::string, Tensor>>&)>& change,
      const std::string& name = "model.safetensors") const {
    std::vector<std::pair<std::string, Tensor>> tensors;
    {
      const SafetensorsFile file(theirs() + "/model.safetensors");
      for (const std::string& each : file.names()) tensors.emplace_back(each, file.load_f32(each));
    }
    change(tensors);
    save_safetensors(theirs() + "/" + name, tensors, {{"format", "pt"}});
  }
  std::string refused() const {
    const std::string error = test_data::error_of([&] { import_hugging_face(theirs(), folder / "run", {}); });
    CHECK(!std::filesystem::exists(folder / "run"));
    const size_t at = error.find(theirs());
    return at == error.npos ? error : error.substr(0, at) + std::string("FOLDER") + error.substr(at + theirs().size());
  }
};

// Replaces or adds a member of any type.
inline void replace_member(const Copy& copy, const std::string& key, const std::string& value) {
  Json config = read_json(copy.theirs() + "/config.json");
  config[key] = parse_json(value, value);
  copy.folder.write("theirs/config.json", to_text(config));
}

}  // namespace ricci::apps
