// Tables of attention and dispatching, masks and token distances, computed apart from the ops because the ops never store them.
#include "models/inspection/observation.h"

#include <algorithm>

#include "autograd/tape.h"
#include "core/cpu/parallel.h"
#include "core/error.h"
#include "models/inspection/layers.h"
#include "ops/scales/cells.h"

namespace ricci {
namespace {

constexpr int64_t kTokensAtOnce = 4096;

Tensor ids_from(int64_t first, int64_t count, Device device) {
  const Tensor ids_bc({1, count}, Dtype::i64);
  for (int64_t i = 0; i < count; ++i) ids_bc.data<int64_t>()[i] = first + i;
  return to(ids_bc, device);
}

// Writes (q_i - q_j) . (p_i - p_j) for the tokens i of `maps` and j of `others`, the part of the vocabulary from `first` on.
void write_distances(
    const std::array<Tensor, 2>& maps, const std::array<Tensor, 2>& others, int64_t heads, int64_t first, const Tensor& distances_ntv) {
  const Tensor &q = maps[0], &p = maps[1];
  const int64_t tokens = q.shape()[1], count = others[0].shape()[1], d = q.shape()[2], k = d / heads, vocab = distances_ntv.shape()[2];
  parallel_for(heads * tokens, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t begin_i = row % tokens * d + row / tokens * k;
      for (int64_t j = 0; j < count; ++j) {
        double sum = 0;
        for (int64_t x = 0; x < k; ++x) {
          const int64_t other = j * d + row / tokens * k + x;
          sum += (q.data<double>()[begin_i + x] - others[0].data<double>()[other]) *
                 (p.data<double>()[begin_i + x] - others[1].data<double>()[other]);
        }
        distances_ntv.data<double>()[row * vocab + first + j] = sum;
      }
    }
  });
}

// The factors of the values in shift_and_sum. They are its results for unit vectors, because it is linear in the values.
Tensor dispatching_table(const Tensor& coef_bcx, int64_t heads) {
  const int64_t b = coef_bcx.shape()[0], c = coef_bcx.shape()[1];
  const Tensor units_bcnC = zeros({b, c, heads, c}, Dtype::f64, Device::cpu);
  for (int64_t i = 0; i < b * c * heads; ++i) units_bcnC.data<double>()[i * c + i / heads % c] = 1;
  const Tensor table_bcx = shift_and_sum(reshape(units_bcnC, {b, c, heads * c}), on_host(coef_bcx), {.heads = heads});
  return permute(reshape(table_bcx, {b, c, heads, c}), {0, 2, 1, 3});
}

struct StackOutputs final : Watch {
  std::map<const void*, Tensor> h_bmd;
  void take_output(const void* stack, const Tensor& output_bmd) override { h_bmd[stack] = output_bmd; }
};

Mask mask_of(const MixingLayer& layer, const MixingLayer::Heads& heads, int64_t tokens) {
  const int64_t queries = tokens / layer.tokens, scale = heads.sees.cell;
  Mask mask{layer.kind, layer.tokens, layer.tokens * scale, heads.first, heads.count, {}, queries / scale};
  for (int64_t t = 0; t < queries; ++t) mask.rows.push_back({heads.sees.first_key(t), heads.sees.end_key(t, mask.keys)});
  return mask;
}

// Row t of the finer scale reads the coarse cell (t - shift) / ratio (ops/scales/cells.h), if there is one.
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

Tensor Observing::attend(const void* layer, const ColumnSlice& q, const ColumnSlice& k, const ColumnSlice& v, const Visibility& sees,
    const AttentionOptions& options) {
  add_heads(layer, attention_weights(q, k, sees, options), sees.cell);
  return Watch::attend(layer, q, k, v, sees, options);
}

Tensor Observing::dispatch(const void* layer, const Arg& v_bcd, const Arg& coef_bcx, const ShiftAndSumOptions& options) {
  const int64_t b = coef_bcx.shape()[0], c = coef_bcx.shape()[1], levels = coef_bcx.shape()[2] / options.heads;
  seen[layer].coefficients_bncr = permute(reshape(on_host(coef_bcx), {b, c, options.heads, levels}), {0, 2, 1, 3});
  add_heads(layer, dispatching_table(coef_bcx, options.heads), 1);
  return Watch::dispatch(layer, v_bcd, coef_bcx, options);
}

void Observing::skip_heads(const void* layer, int64_t heads) {
  auto& all = seen[layer].heads;
  all.resize(all.size() + static_cast<size_t>(heads));
}

void Observing::add_heads(const void* layer, const Tensor& table_bncC, int64_t key_scale) {
  const Shape& s = table_bncC.shape();
  for (int64_t n = 0; n < s[1]; ++n) seen[layer].heads.push_back({reshape(slice(table_bncC, 1, n, 1), {s[0], s[2], s[3]}), key_scale});
}

std::vector<Observation> observe(const Model& model, const Batch& batch) {
  Observing watch;
  model.hidden(batch);
  std::vector<Observation> all;
  for (const MixingLayer& layer : model.layers())
    if (layer.kind != "join") all.push_back(std::move(watch.seen[layer.layer]));
  return all;
}

std::vector<Representation> representations(const Model& model, const Batch& batch) {
  StackOutputs outputs;
  model.hidden(batch);
  std::vector<Representation> all;
  for (const MixingLayer& layer : model.layers())
    if (const auto found = outputs.h_bmd.find(layer.stack); layer.block == 0 && found != outputs.h_bmd.end())
      all.push_back({layer.tokens, found->second});
  return all;
}

Tensor token_distances(const Model& model, const MixingLayer& layer, const Tensor& ids_t) {
  if (!layer.metric_maps) return {};
  const auto projected = [&](const Tensor& ids_bc) {
    const auto [q_bcd, p_bcd] = layer.metric_maps(model.token_embeddings(ids_bc));
    return std::array{on_host(q_bcd), on_host(p_bcd)};
  };
  const int64_t vocab = model.config().vocab, heads = layer.heads[0].count;
  const std::array<Tensor, 2> maps = projected(reshape(ids_t, {1, ids_t.size()}));
  const Tensor distances_ntv({heads, ids_t.size(), vocab}, Dtype::f64);
  for (int64_t first = 0; first < vocab; first += kTokensAtOnce)
    write_distances(maps, projected(ids_from(first, std::min(kTokensAtOnce, vocab - first), ids_t.device())), heads, first, distances_ntv);
  return distances_ntv;
}

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
