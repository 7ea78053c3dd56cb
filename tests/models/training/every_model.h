// Shared by the tests that train a small model of every family with every mixer.
#pragma once
#include "models/training/train_step.h"
#include "tests/models/model_cases.h"

namespace ricci {

inline std::vector<Variant> every_model() {
  std::vector<Variant> all = scale_variants();
  for (Variant& v : variants_of(family_of<Coarse>)) all.push_back(std::move(v));
  for (Variant& v : all) v.config.ctx = 19;
  for (const Family family : {family_of<Decoder>, family_of<Classifier>})
    for (size_t i = 0; i < choices(MixerKind()).size(); ++i)
      for (const Preset preset : {Preset::gpt, Preset::msa})
        all.push_back({std::string(name_of(family)) + ", " + choices(MixerKind())[i] + ", " + std::string(name_of(preset)),
            small_config(static_cast<MixerKind>(i), preset, family), family == family_of<Decoder> && preset == Preset::gpt});
  for (const Family family : {family_of<Decoder>, family_of<Classifier>}) {
    ModelConfig mixed = small_config(kind_of<Dispatcher>, Preset::gpt, family);
    mixed.mixer = {kind_of<Dispatcher>, kind_of<Sdp>}, mixed.layers = 3;
    all.push_back({std::string(name_of(family)) + ", dispatcher and sdp", mixed, family == family_of<Decoder>});
  }
  return all;
}

// Three sequences each, with different tokens and the same number of targets.
inline std::vector<Batch> small_micro_batches(const ModelConfig& config, int64_t count, Device device) {
  constexpr int64_t kSequences = 3;
  std::vector<Batch> all;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int64_t> tokens, targets;
    const bool classifier = config.family == family_of<Classifier>;
    const int64_t positions = kSequences * config.ctx, scored = classifier ? kSequences : positions;
    for (int64_t t = 0; t < positions; ++t) tokens.push_back((t * 7 + t * t / 3 + i * 5) % 11);
    for (int64_t t = 0; t < scored; ++t)
      targets.push_back(classifier ? i % 3 : (t * 5 + i) % 11);  // one class: sums that cancel are short numbers
    const Tensor ids_bc = ids_of(tokens, {kSequences, config.ctx}, device);
    if (classifier) all.push_back({ids_bc, ids_of(targets, {kSequences}, device), ids_of({config.ctx, 9, 4}, {3}, device), scored});
    else all.push_back({ids_bc, ids_of(targets, ids_bc.shape(), device), {}, scored});
  }
  return all;
}

}  // namespace ricci
