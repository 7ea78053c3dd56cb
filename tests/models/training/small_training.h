// Shared by the tests of training: a small model and a text that can be learned.
#pragma once
#include "apps/run/batches.h"
#include "models/config.h"
#include "tests/data/ids.h"
#include "tests/ops/values.h"
#include "tests/sanitized.h"

namespace ricci {

inline constexpr int64_t kVocabulary = 11;

struct SmallModel {
  Preset preset = Preset::gpt;
  int64_t context = 7, d = 12, heads = 3, layers = 2;
  double dropout = 0;
};

inline ModelConfig small_model(const SmallModel& of) {
  ModelConfig c;
  c.preset = of.preset;
  apply_preset(c);
  c.vocab = kVocabulary, c.ctx = of.context, c.d = of.d, c.settings<Sdp>().heads = of.heads, c.layers = of.layers,
  c.block.dropout = of.dropout;
  return c;
}

// Ids that repeat after 33 tokens.
inline Tokens small_text() {
  static const Tokens text = [] {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < 500; ++i) ids.push_back((i * i / 3 + i * 7) % kVocabulary);
    return test_data::tokens_of(ids, kVocabulary);
  }();
  return text;
}

// The crops of a training run with this config, and those in a step.
inline RandomCrops crops_of(const apps::TrainConfig& config, int64_t context) {
  const int64_t sequences = config.sequences(), micro_batches = config.micro_batches();
  return RandomCrops(small_text(), sequences, context, config.seed, micro_batches);
}
inline std::vector<Batch> micro_batches_of(RandomCrops crops, const apps::TrainConfig& config, int64_t step, Device device) {
  std::vector<Batch> all;
  crops.go_to(step, "");
  for (int64_t i = 0; i < config.micro_batches(); ++i) all.push_back(to(crops.next(), device));
  return all;
}

// Steps on the emulator take minutes under a sanitizer. Their kernels run under it in ops/gradients, and a step in step_graph.
inline void on_training_devices(const std::function<void(Device)>& f) {
  on_every_device([&](Device device) {
    if (!test::kSanitized || device != Device::cuda_emulated) f(device);
  });
}

}  // namespace ricci
