// What a model is: the keys of `model:` in a run file. A key that a mixer, a block or a family reads stands beside its code;
// here is the list of them, and which ones the chosen model reads.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/choice.h"
#include "core/fields.h"
#include "models/block.h"
#include "models/embedding.h"
#include "models/families/bottomup.h"
#include "models/families/classifier.h"
#include "models/families/coarse.h"
#include "models/families/decoder.h"
#include "models/families/retina.h"
#include "models/families/topdown.h"
#include "models/mixers/mixers.h"

namespace ricci {

enum class Family : uint8_t { decoder, classifier, topdown, bottomup, retina, coarse };
constexpr auto choices(Family) { return std::array{"decoder", "classifier", "topdown", "bottomup", "retina", "coarse"}; }

struct ModelConfig {
  Family family = Family::decoder;
  Preset preset = Preset::gpt;
  MixerKind mixer = kind_of<Sdp>;
  int64_t vocab = 0;
  int64_t ctx = 64;
  int64_t d = 128;
  int64_t layers = 4;
  bool causal = true;
  BlockConfig block;
  EmbeddingConfig embedding;
  OutputConfig output;
  ClassifierConfig classifier;
  ScalesConfig scales;
  StackLayersConfig stack_layers;
  DownConfig down;
  TopDownConfig topdown;
  BottomUpConfig bottomup;
  RetinaConfig retina;
  CoarseConfig coarse;
  Mixers::Configs mixers;

  // The keys of one mixer: config.of<Sdp>().heads
  template <class M> typename M::Config& of() { return mixers.of<M>(); }
  template <class M> const typename M::Config& of() const { return mixers.of<M>(); }

  bool operator==(const ModelConfig&) const = default;
};

// The families that learn from the tokens of a text.
inline constexpr std::initializer_list<Family> kLanguageModels = {
    Family::decoder, Family::topdown, Family::bottomup, Family::retina, Family::coarse};

void visit_fields(ModelConfig& config, const Fields& field);

// The list for keys that some families read.
Fields read_by(const Fields& field, const ModelConfig& config, std::initializer_list<Family> families);

// Whether the model is one of several scales, whose attention is its own.
bool has_scales(Family family);
// A coarse model says which tokens come next, but not in which order.
inline bool writes_text(Family family) { return family != Family::classifier && family != Family::coarse; }

// What the mixers of such a model are told.
MixerShape place_of(const ModelConfig& config);

// Gives the keys marked (preset) or (family) the defaults of the preset and the family. To be called on a config whose other
// keys still have theirs.
void apply_preset(ModelConfig& config);

// Error: the first value that cannot be, as "model.heads: 3 does not divide d = 64". vocab must be known by now.
void check(const ModelConfig& config);

// What a user should know of a config that can be trained, a line each: levels that hear less than the context, scales that have
// no cells.
std::vector<std::string> warnings(const ModelConfig& config);

// Fills in what follows from other keys: ff; where scales are read, their blocks, windows and heads.
void resolve(ModelConfig& config);

}  // namespace ricci
