// Shared by the tests that train a small model of every family with every mixer.
#pragma once
#include "models/training/train_step.h"
#include "tests/models/families/scale_cases.h"

namespace ricci {

inline std::vector<Variant> every_model() {
  std::vector<Variant> all = all_variants();
  for (Variant& v : variants_of(family_of<Coarse>)) all.push_back(std::move(v));
  for (const Family family : {family_of<Decoder>, family_of<Classifier>})
    for (size_t i = 0; i < choices(MixerKind()).size(); ++i)
      for (const Preset preset : {Preset::gpt, Preset::msa}) {
        ModelConfig c;
        c.family = family, c.preset = preset, c.mixer = static_cast<MixerKind>(i);
        apply_preset(c);
        c.vocab = 11, c.ctx = 26, c.d = 12, c.layers = 2, c.settings<Classifier>().classes = 3;
        const bool on_emulator = family == family_of<Decoder> && preset == Preset::gpt;
        all.push_back(
            {std::string(name_of(family)) + ", " + choices(MixerKind())[i] + ", " + std::string(name_of(preset)), c, on_emulator});
      }
  for (Variant& v : all) resolve(v.config);
  return all;
}

// Of three sequences each, with other tokens and the same number of targets.
inline std::vector<MicroBatch> small_micro_batches(const ModelConfig& config, int64_t count, Device device) {
  constexpr int64_t kSequences = 3;
  std::vector<MicroBatch> all;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int64_t> tokens, targets;
    const bool classifier = config.family == family_of<Classifier>;
    const int64_t positions = kSequences * config.ctx, scored = classifier ? kSequences : positions;
    for (int64_t t = 0; t < positions; ++t) tokens.push_back((t * 7 + t * t / 3 + i * 5) % 11);
    for (int64_t t = 0; t < scored; ++t)
      targets.push_back(classifier ? i % 3 : (t * 5 + i) % 11);  // one class: sums that cancel are short numbers
    const Tensor ids_bc = ids_of(tokens, {kSequences, config.ctx}, device);
    if (classifier) all.push_back({{ids_bc, ids_of(targets, {kSequences}, device), ids_of({config.ctx, 20, 9}, {3}, device)}, scored});
    else all.push_back({{ids_bc, ids_of(targets, ids_bc.shape(), device)}, scored});
  }
  return all;
}

}  // namespace ricci
