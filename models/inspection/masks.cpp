#include "models/inspection/masks.h"

#include "autograd/tape.h"
#include "core/error.h"
#include "cuda/device/device.h"
#include "models/inspection/layers.h"
#include "ops/scales/cells.h"

namespace ricci {
namespace {

Mask mask_of(const MixingLayer& layer, const MixingLayer::Heads& heads, int64_t tokens) {
  const int64_t queries = tokens / layer.tokens, scale = heads.sees.scale;
  Mask mask{layer.kind, layer.tokens, layer.tokens * scale, heads.first, heads.count, {}, queries / scale};
  for (int64_t t = 0; t < queries; ++t) mask.rows.push_back({heads.sees.first_key(t), heads.sees.end_key(t, mask.keys)});
  return mask;
}

// Every coarse cell gives its number, counted from 1; a row that hears none is 0.
Mask mask_of_join(const MixingLayer& layer, int64_t tokens) {
  const int64_t key_tokens = layer.join.coarser_tokens, queries = tokens / layer.tokens, keys = tokens / key_tokens;
  const int64_t ratio = key_tokens / layer.tokens;
  Mask mask{layer.kind, layer.tokens, key_tokens, 0, 0, {}, keys};
  const NoTape unrecorded;
  const Tensor numbers_bmx({1, keys, ratio}, Dtype::f64);
  for (int64_t i = 0; i < keys * ratio; ++i) numbers_bmx.data<double>()[i] = static_cast<double>(i / ratio + 1);
  const Tensor joined_bce =
      join_upsampled(zeros({1, queries, 1}, Dtype::f64, Device::cpu), numbers_bmx, zeros({1}, Dtype::f64, Device::cpu), layer.join.shift);
  for (int64_t t = 0; t < queries; ++t) {
    const auto number = static_cast<int64_t>(joined_bce.data<double>()[2 * t + 1]);
    mask.rows.push_back({number - 1 < 0 ? 0 : number - 1, number});
  }
  return mask;
}

}  // namespace

std::vector<Mask> masks(const Model& model, int64_t tokens) {
  std::vector<Mask> all;
  for (const MixingLayer& layer : model.layers()) {
    if (layer.block > 0 || layer.tokens > tokens) continue;  // the blocks of a stack have one mask
    if (layer.kind == "join") {
      if (layer.join.coarser_tokens <= tokens) all.push_back(mask_of_join(layer, tokens));
    } else if (layer.heads.empty()) fail("masks: the {} mixer has no attention, and so no mask", {layer.mixer});
    for (const MixingLayer::Heads& heads : layer.heads) all.push_back(mask_of(layer, heads, tokens));
  }
  return all;
}

}  // namespace ricci
