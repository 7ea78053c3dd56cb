#include "models/inspection/masks.h"

#include "core/error.h"
#include "models/inspection/layers.h"

namespace ricci {
namespace {

Mask mask_of(const MixingLayer& layer, const MixingLayer::Heads& heads, int64_t tokens) {
  const int64_t queries = tokens / layer.tokens, scale = heads.sees.cell;
  Mask mask{layer.kind, layer.tokens, layer.tokens * scale, heads.first, heads.count, {}, queries / scale};
  for (int64_t t = 0; t < queries; ++t) mask.rows.push_back({heads.sees.first_key(t), heads.sees.end_key(t, mask.keys)});
  return mask;
}

// Row t of the finer scale uses the coarse cell (t - shift) / ratio (ops/scales/cells.h), if it exists.
Mask mask_of_join(const MixingLayer& layer, int64_t tokens) {
  const int64_t key_tokens = layer.join.coarser_tokens, ratio = key_tokens / layer.tokens;
  Mask mask{layer.kind, layer.tokens, key_tokens, 0, 0, {}, tokens / key_tokens};
  for (int64_t t = 0; t < tokens / layer.tokens; ++t) {
    const int64_t cell = (t - layer.join.shift) / ratio;
    mask.rows.push_back(t < layer.join.shift || cell >= mask.keys ? Mask::Row{} : Mask::Row{cell, cell + 1});
  }
  return mask;
}

}  // namespace

std::vector<Mask> masks(const Model& model, int64_t tokens) {
  std::vector<Mask> all;
  for (const MixingLayer& layer : model.layers()) {
    if (layer.block > 0 || layer.tokens > tokens) continue;  // all blocks of a stack have the same mask
    if (layer.kind == "join") {
      if (layer.join.coarser_tokens <= tokens) all.push_back(mask_of_join(layer, tokens));
    } else if (layer.heads.empty()) fail("masks: the {} mixer has no attention, so it has no mask", {layer.mixer});
    for (const MixingLayer::Heads& heads : layer.heads) all.push_back(mask_of(layer, heads, tokens));
  }
  return all;
}

}  // namespace ricci
