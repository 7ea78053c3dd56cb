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

// (q_i - q_j) . (p_i - p_j) for the tokens i of `maps` and j of `others`, the vocabulary from `first` on.
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

// sum over C of table_bncC v_bCgk, as [b c d], in the dtype and on the device of v. Each of the `groups` heads of v serves
// n / groups neighbouring heads of the table.
Tensor times_values(const Tensor& table_bncC, const Tensor& v_bcd, int64_t groups) {
  const Shape& s = table_bncC.shape();
  const int64_t k = v_bcd.shape()[2] / groups;
  const Tensor v_bCgk = reshape(v_bcd, {s[0], s[3], groups, k});
  const Tensor table = to(convert(table_bncC, v_bcd.dtype()), v_bcd.device());
  const Tensor table_bgncC = reshape(table, {s[0], groups, s[1] / groups, s[2], s[3]});
  return reshape(contract("bgncC,bCgk->bcgnk", table_bgncC, v_bCgk), {s[0], s[2], s[1] * k});
}

// The factors of the values in shift_and_sum: its results where the values are unit vectors.
Tensor dispatching_table(const Tensor& coef_bcx, int64_t heads) {
  const int64_t b = coef_bcx.shape()[0], c = coef_bcx.shape()[1];
  const Tensor units_bcnC = zeros({b, c, heads, c}, Dtype::f64, Device::cpu);
  for (int64_t i = 0; i < b * c * heads; ++i) units_bcnC.data<double>()[i * c + i / heads % c] = 1;
  const Tensor table_bcx = shift_and_sum(reshape(units_bcnC, {b, c, heads * c}), on_host(coef_bcx), {.heads = heads});
  return permute(reshape(table_bcx, {b, c, heads, c}), {0, 2, 1, 3});
}

struct StackOutputs final : Watch {
  std::map<const void*, Tensor> h_bmd;
  void leave(const void* stack, const Tensor& output_bmd) override { h_bmd[stack] = output_bmd; }
};

Mask mask_of(const MixingLayer& layer, const MixingLayer::Heads& heads, int64_t tokens) {
  const int64_t queries = tokens / layer.tokens, scale = heads.sees.scale;
  Mask mask{layer.kind, layer.tokens, layer.tokens * scale, heads.first, heads.count, {}, queries / scale};
  for (int64_t t = 0; t < queries; ++t) mask.rows.push_back({heads.sees.first_key(t), heads.sees.end_key(t, mask.keys)});
  return mask;
}

// Every coarse cell gives its number, counted from 1; a row that reads none is 0.
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

Tensor columns_of(const Rows& rows) {
  const int64_t width = rows.width ? rows.width : rows.tensor.shape()[2] - rows.offset;
  return slice(rows.tensor, 2, rows.offset, width);
}

Tensor Observing::attend(const Rows& q, const Rows& k, const Rows& v, const Visibility& sees, const AttentionOptions& options) {
  const Tensor table_bncC = attention_weights(q, k, sees, options);
  add_heads(table_bncC, sees.scale);
  if (!replaces_) return Watch::attend(q, k, v, sees, options);
  return times_values(table_bncC, columns_of(v), options.kv_heads > 0 ? options.kv_heads : options.heads);
}

Tensor Observing::dispatch(const Arg& v_bcd, const Arg& coef_bcx, const ShiftAndSumOptions& options) {
  const int64_t b = coef_bcx.shape()[0], c = coef_bcx.shape()[1], levels = coef_bcx.shape()[2] / options.heads;
  const Tensor table_bncC = dispatching_table(coef_bcx, options.heads);
  seen[layer_].coefficients_bncr = permute(reshape(on_host(coef_bcx), {b, c, options.heads, levels}), {0, 2, 1, 3});
  add_heads(table_bncC, 1);
  return replaces_ ? times_values(table_bncC, v_bcd, options.heads) : Watch::dispatch(v_bcd, coef_bcx, options);
}

void Observing::skip_heads(int64_t heads) {
  auto& all = seen[layer_].heads;
  all.resize(all.size() + static_cast<size_t>(heads));
}

void Observing::add_heads(const Tensor& table_bncC, int64_t key_scale) {
  const Shape& s = table_bncC.shape();
  for (int64_t n = 0; n < s[1]; ++n) seen[layer_].heads.push_back({reshape(slice(table_bncC, 1, n, 1), {s[0], s[2], s[3]}), key_scale});
}

std::vector<Observation> observe(const Model& model, const Inputs& inputs) {
  Observing watch;
  model.hidden(inputs);
  std::vector<Observation> all;
  for (const MixingLayer& layer : model.layers())
    if (layer.kind != "join") all.push_back(std::move(watch.seen[layer.layer]));
  return all;
}

std::vector<Representation> representations(const Model& model, const Inputs& inputs) {
  StackOutputs outputs;
  model.hidden(inputs);
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
    if (layer.block > 0 || layer.tokens > tokens) continue;  // the blocks of a stack have one mask
    if (layer.kind == "join") {
      if (layer.join.coarser_tokens <= tokens) all.push_back(mask_of_join(layer, tokens));
    } else if (layer.heads.empty()) fail("masks: the {} mixer has no attention, and so no mask", {layer.mixer});
    for (const MixingLayer::Heads& heads : layer.heads) all.push_back(mask_of(layer, heads, tokens));
  }
  return all;
}

}  // namespace ricci
